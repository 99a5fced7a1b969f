//! How each function is called: names, parameters, documentation.
//!
//! The SQL layer knows its functions from the table in this file: named arguments (`=>`), entries
//! of `information_schema.routines`, and the "write ..." of error messages. `SHOW FUNCTIONS` has
//! functions with a list of types alone; these look at types themselves.

use crate::error::{Error, Result};
use crate::metrics::Metric;
use datafusion::logical_expr::{
    DocSection, Documentation, DocumentationBuilder, Signature, Volatility,
};
use std::borrow::Cow;
use std::sync::LazyLock;

/// What is said of DISTINCT, which would leave out equal rows.
pub(super) const NO_DISTINCT: &str = "DISTINCT is not supported: remove duplicates in a subquery";

/// One function.
#[derive(Clone)]
pub(super) struct Definition {
    name: &'static str,
    aliases: &'static [&'static str],
    pub(super) syntax: Cow<'static, str>,
    summary: Cow<'static, str>,
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
        syntax: Cow::Borrowed(syntax),
        summary: Cow::Borrowed(summary),
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

/// The name of a metric in SQL: where the short one would be too general, it says what it is of.
pub(super) fn metric_name(metric: Metric) -> &'static str {
    match metric {
        Metric::Jaccard => "jaccard_score",
        Metric::Precision => "example_precision",
        Metric::Recall => "example_recall",
        Metric::F1 => "example_f1",
        other => other.name(),
    }
}

fn define_metric(metric: Metric) -> Definition {
    let (parameters, second) =
        if metric.of_scores() { (OF_SCORES, "scores") } else { (OF_SETS, "predicted") };
    let name = metric_name(metric);
    let mut definition = define(name, "", "", parameters, 2);
    definition.syntax = Cow::Owned(format!("{name}(truth, {second}[, label_count])"));
    let (first, rest) = metric.help().split_at(1);
    definition.summary = Cow::Owned(format!("{}{rest}.", first.to_uppercase()));
    definition
}

const OF_SETS: &[(&str, &str)] = &[
    ("truth", "The true labels of a row: a list."),
    ("predicted", "The predicted labels of the row: a list."),
    ("label_count", "How many labels there can be; those that occur when it is left out."),
];

const OF_SCORES: &[(&str, &str)] = &[
    OF_SETS[0],
    ("scores", "The labels of the row with their scores, as score_labels returns them."),
    OF_SETS[2],
];

static DEFINITIONS: LazyLock<Vec<Definition>> = LazyLock::new(|| {
    let metrics = Metric::ALL.iter().map(|&metric| define_metric(metric));
    OTHERS.iter().cloned().chain(metrics).collect()
});

/// All functions but the metrics.
const OTHERS: &[Definition] = &[
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
    define(
        "label_report",
        "label_report(truth, predicted)",
        "Counts of each label: true and predicted, only predicted, only true.",
        OF_SETS.split_at(2).0,
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
    DEFINITIONS.iter().map(|d| d.name).collect()
}

/// The function called `name`, which is not an alias.
pub(super) fn definition(name: &str) -> Option<&'static Definition> {
    DEFINITIONS.iter().find(|d| d.name == name)
}

/// The parts of a function object that say how it is called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) aliases: Vec<String>,
    pub(super) signature: Signature,
    pub(super) documentation: Documentation,
    syntax: Cow<'static, str>,
    required: usize,
    most: Option<usize>,
}

impl Definition {
    /// The parameters that are models, by their place.
    pub(super) fn models(&self) -> impl Iterator<Item = usize> {
        let is_model = |p: &(&str, &str)| matches!(p.0, "model" | "part");
        self.parameters.iter().enumerate().filter(move |(_, p)| is_model(p)).map(|(at, _)| at)
    }
}

impl Call {
    /// How the function `name` of the table is called.
    pub(super) fn new(name: &'static str, volatility: Volatility) -> Self {
        let unknown = || define(name, "", "", &[], 0);
        let definition = definition(name).cloned().unwrap_or_else(unknown);
        // Counts and types are checked by the functions, whose messages say what to write.
        let mut signature = Signature::user_defined(volatility);
        let names = definition.parameters.iter().map(|p| p.0.to_string());
        signature.parameter_names = Some(names.collect());
        let mut documentation = DocumentationBuilder::new_with_details(
            SECTION,
            definition.summary,
            &*definition.syntax,
        );
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
            let names = self.signature.parameter_names.as_deref().unwrap_or_default();
            return Err(match names.get(count).map(String::as_str) {
                Some("features") => self.misuse("there is no feature"),
                name => self.misuse(format!("`{}` is missing", name.unwrap_or("argument"))),
            });
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
