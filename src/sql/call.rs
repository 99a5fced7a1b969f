//! How each function is called: names, parameters, documentation.
//!
//! The SQL layer knows its functions from the table in this file: named arguments (`=>`), entries
//! of `information_schema`, `SHOW FUNCTIONS`, and the "write ..." of error messages.

use crate::error::{Error, Result};
use datafusion::logical_expr::{
    DocSection, Documentation, DocumentationBuilder, Signature, Volatility,
};
use std::sync::LazyLock;

/// One function.
pub(super) struct Definition {
    name: &'static str,
    aliases: &'static [&'static str],
    pub(super) syntax: &'static str,
    summary: &'static str,
    /// Parameters in order with what they are; the last of them may be left out.
    parameters: &'static [(&'static str, &'static str)],
    required: usize,
    /// The parameter from which all arguments are features.
    pub(super) first_feature: Option<usize>,
    /// Whether the first argument is a spec, to be checked when a query is planned.
    pub(super) learns: bool,
    /// Whether a row weight may stand among the features.
    pub(super) takes_weight: bool,
}

const MODEL: (&str, &str) =
    ("model", "A model: the value of train_labels, or the name of a model file.");
const SPEC: (&str, &str) = ("spec", "The algorithm and its parameters as a constant text.");
const LABELS: (&str, &str) = (
    "labels",
    "The labels of a row: a list of texts or integers, or a struct of 0/1 columns. NULL is unlabelled.",
);
const FEATURES: (&str, &str) =
    ("features", "Any number of columns, or one struct, map, list of numbers or list of tokens.");
const WEIGHT: (&str, &str) = ("weight", "How much a row counts: row_weight(number).");

const fn define(
    name: &'static str,
    syntax: &'static str,
    summary: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    required: usize,
) -> Definition {
    Definition {
        name,
        aliases: &[],
        syntax,
        summary,
        parameters,
        required,
        first_feature: None,
        learns: false,
        takes_weight: false,
    }
}

const fn with_features(mut definition: Definition, first: usize) -> Definition {
    definition.first_feature = Some(first);
    definition
}

const fn learning(mut definition: Definition) -> Definition {
    definition.learns = true;
    definition
}

const fn with_weight(mut definition: Definition) -> Definition {
    definition.takes_weight = true;
    definition
}

const fn also(mut definition: Definition, aliases: &'static [&'static str]) -> Definition {
    definition.aliases = aliases;
    definition
}

const DEFINITIONS: &[Definition] = &[
    also(
        with_weight(learning(with_features(
            define(
                "train_labels",
                "train_labels('algorithm', labels, features...)",
                "Learns a model from the labelled rows of a group.",
                &[SPEC, LABELS, FEATURES, WEIGHT],
                3,
            ),
            2,
        ))),
        &["fit_labels"],
    ),
    learning(with_features(
        define(
            "learn_and_predict",
            "learn_and_predict('algorithm', labels, features...) OVER (ORDER BY ...)",
            "Predicts each row with what was learned from the rows before it in the frame.",
            &[SPEC, LABELS, FEATURES],
            3,
        ),
        2,
    )),
    define(
        "split_labels",
        "split_labels(text, ';')",
        "Returns the labels in a text as a list; blanks around them and empty ones are dropped.",
        &[
            ("text", "Labels with a separator."),
            ("separator", "What stands between them: a constant text."),
        ],
        2,
    ),
    define(
        "row_weight",
        "row_weight(number)",
        "Marks a number as the weight of a row among the features of train_labels.",
        &[("weight", "How much the row counts: a number from 0.")],
        1,
    ),
    define(
        "merge_models",
        "merge_models(model)",
        "Returns the model of everything the models of a group have seen.",
        &[MODEL],
        1,
    ),
    define(
        "subtract_model",
        "subtract_model(model, part)",
        "Returns the model without what the part has seen.",
        &[MODEL, ("part", "A model of rows that were added to the first.")],
        2,
    ),
    define(
        "decay_model",
        "decay_model(model, factor)",
        "Returns the model with all weights multiplied by the factor.",
        &[MODEL, ("factor", "A number from 0 to 1.")],
        2,
    ),
    also(
        define(
            "model_info",
            "model_info(model)",
            "Tells what a model is: algorithm, spec, rows, labels, features, version, digest.",
            &[MODEL],
            1,
        ),
        &["inspect_model"],
    ),
    with_features(
        define(
            "predict_labels",
            "predict_labels(model, features...)",
            "Returns the predicted label set of a row, in name order.",
            &[MODEL, FEATURES],
            2,
        ),
        1,
    ),
    with_features(
        define(
            "score_labels",
            "score_labels(model, features...)",
            "Returns every label with its probability, best first.",
            &[MODEL, FEATURES],
            2,
        ),
        1,
    ),
    also(
        with_features(
            define(
                "top_labels",
                "top_labels(model, k, features...)",
                "Returns the k most probable labels, best first.",
                &[MODEL, ("k", "How many: a constant whole number."), FEATURES],
                3,
            ),
            2,
        ),
        &["top_k_labels"],
    ),
    with_features(
        define(
            "predict_sets",
            "predict_sets(model, k, features...)",
            "Returns the k most probable label sets with their probabilities, best first.",
            &[MODEL, ("k", "How many: a constant whole number."), FEATURES],
            3,
        ),
        2,
    ),
];

const SECTION: DocSection = DocSection {
    include: true,
    label: "Multi-label classification",
    description: Some("Models as SQL values, by labelflow."),
};

/// The names of all functions, metrics included.
pub(super) fn names() -> Vec<&'static str> {
    let metrics = METRICS.iter().chain(RANK_METRICS).map(|m| m.0);
    DEFINITIONS.iter().map(|d| d.name).chain(metrics).collect()
}

/// The function called `name`, which is not an alias.
pub(super) fn definition(name: &str) -> Option<&'static Definition> {
    DEFINITIONS.iter().find(|d| d.name == name)
}

/// `signature` with names for its parameters, also where their number is not fixed.
pub(super) fn with_names(mut signature: Signature, parameters: &[(&str, &str)]) -> Signature {
    signature.parameter_names = Some(parameters.iter().map(|p| p.0.to_string()).collect());
    signature
}

/// The parameters of a metric.
pub(super) const METRIC_PARAMETERS: &[(&str, &str)] = &[
    ("truth", "The true labels of a row: a list."),
    ("predicted", "The predicted labels of the row: a list."),
    ("label_count", "How many labels there can be; those that occur when it is left out."),
];

/// The parameters of a metric of scores.
pub(super) const RANK_PARAMETERS: &[(&str, &str)] = &[
    METRIC_PARAMETERS[0],
    ("scores", "The labels of the row with their scores, as score_labels returns them."),
    METRIC_PARAMETERS[2],
];

/// The documentation of the metric called `name` in SQL.
pub(super) fn metric_documentation(name: &str) -> Option<&'static Documentation> {
    static ALL: LazyLock<Vec<(&str, Documentation)>> = LazyLock::new(|| {
        let of_sets = METRICS.iter().map(|m| (m, METRIC_PARAMETERS));
        let of_scores = RANK_METRICS.iter().map(|m| (m, RANK_PARAMETERS));
        let entry = |((name, summary), parameters): (&(&'static str, &str), _)| {
            (*name, metric_entry(name, summary, parameters))
        };
        of_sets.chain(of_scores).map(entry).collect()
    });
    ALL.iter().find(|m| m.0 == name).map(|m| &m.1)
}

const METRICS: &[(&str, &str)] = &[
    ("hamming_score", "The share of right decisions over all rows and labels."),
    ("exact_match", "The share of rows whose predicted set is the true one."),
    ("jaccard_score", "Labels in both sets among those in either, mean of rows."),
    ("example_precision", "Right labels among the predicted ones of a row, mean of rows."),
    ("example_recall", "Right labels among the true ones of a row, mean of rows."),
    ("example_f1", "Harmonic mean of precision and recall of a row, mean of rows."),
    ("micro_precision", "Right labels among the predicted ones of all rows."),
    ("micro_recall", "Right labels among the true ones of all rows."),
    ("micro_f1", "Harmonic mean of micro precision and micro recall."),
    ("macro_precision", "Precision of each label, mean of labels."),
    ("macro_recall", "Recall of each label, mean of labels."),
    ("macro_f1", "F1 of each label, mean of labels."),
    ("label_cardinality", "The mean size of the predicted sets."),
    ("empty_share", "The share of rows with an empty predicted set."),
    ("label_report", "Counts of each label: true and predicted, only predicted, only true."),
];

const RANK_METRICS: &[(&str, &str)] = &[
    ("ranking_loss", "The share of pairs of a true and another label that are in the wrong order."),
    ("one_error", "The share of rows whose best label is not a true one."),
    ("coverage", "How many labels stand before the last true one of a row, mean of rows."),
    ("average_precision", "The share of true labels down to each true label, mean of rows."),
    ("precision_at_1", "The share of rows whose best label is a true one."),
    ("precision_at_3", "The share of true labels among the 3 best, mean of rows."),
    ("precision_at_5", "The share of true labels among the 5 best, mean of rows."),
    ("ndcg_at_5", "Discounted gain of the 5 best labels over the best there can be, mean of rows."),
];

fn metric_entry(name: &str, summary: &str, parameters: &[(&str, &str)]) -> Documentation {
    let taken = if name == "label_report" { 2 } else { parameters.len() };
    let parameters = &parameters[..taken];
    let optional = if taken > 2 { "[, label_count]" } else { "" };
    let syntax = format!("{name}({}, {}{optional})", parameters[0].0, parameters[1].0);
    let mut entry = DocumentationBuilder::new_with_details(SECTION, summary, syntax);
    for (name, what) in parameters {
        entry = entry.with_argument(*name, *what);
    }
    entry.build()
}

/// The parts of a function object that say how it is called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) aliases: Vec<String>,
    pub(super) signature: Signature,
    pub(super) documentation: Documentation,
    syntax: &'static str,
    required: usize,
    most: Option<usize>,
}

impl Call {
    /// How the function `name` of the table is called.
    pub(super) fn new(name: &str, volatility: Volatility) -> Self {
        const NONE: Definition = define("", "", "", &[], 0);
        Call::of(definition(name).unwrap_or(&NONE), volatility)
    }

    fn of(definition: &Definition, volatility: Volatility) -> Self {
        // Counts and types are checked by the functions, whose messages say what to write.
        let signature = with_names(Signature::user_defined(volatility), definition.parameters);
        let mut documentation =
            DocumentationBuilder::new_with_details(SECTION, definition.summary, definition.syntax);
        for (name, what) in definition.parameters {
            documentation = documentation.with_argument(*name, *what);
        }
        let variadic = definition.first_feature.is_some();
        Call {
            name: definition.name,
            aliases: definition.aliases.iter().map(|a| a.to_string()).collect(),
            signature,
            documentation: documentation.build(),
            syntax: definition.syntax,
            required: definition.required,
            most: (!variadic).then_some(definition.parameters.len()),
        }
    }

    /// An error in the way the function is called.
    pub(super) fn misuse(&self, problem: impl std::fmt::Display) -> Error {
        Error::usage(format!("{}: {problem}; write {}", self.name, self.syntax))
    }

    /// Whether it may have `count` arguments.
    ///
    /// # Errors
    ///
    /// What is missing, or that there are too many.
    pub(super) fn check_count(&self, count: usize) -> Result<()> {
        if count < self.required {
            let missing = match &self.signature.parameter_names {
                Some(names) => names.get(count).map_or("argument", |n| n.as_str()),
                None => "argument",
            };
            let missing = if missing == "features" { "feature" } else { missing };
            return Err(self.misuse(format!("there is no {missing}")));
        }
        match self.most {
            Some(most) if count > most => {
                Err(self.misuse(format!("there are {count} arguments, at most {most} are taken")))
            }
            _ => Ok(()),
        }
    }
}

/// The methods of a function object that tell how it is called, from its field `call`.
macro_rules! as_called {
    () => {
        fn name(&self) -> &str {
            self.call.name
        }

        fn aliases(&self) -> &[String] {
            &self.call.aliases
        }

        fn signature(&self) -> &::datafusion::logical_expr::Signature {
            &self.call.signature
        }

        fn documentation(&self) -> Option<&::datafusion::logical_expr::Documentation> {
            Some(&self.call.documentation)
        }

        // Types are looked at where the return type is asked for, with a message of our own.
        fn coerce_types(
            &self,
            types: &[::datafusion::arrow::datatypes::DataType],
        ) -> ::datafusion::error::Result<Vec<::datafusion::arrow::datatypes::DataType>> {
            Ok(types.to_vec())
        }
    };
}
pub(super) use as_called;
