//! The list of metrics.

use super::SetMetrics;
use super::{examples, labels};
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// Which way a metric should move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Goal {
    /// Higher is better.
    Higher,
    /// Lower is better.
    Lower,
    /// Neither: the metric describes the predictions.
    Neutral,
}

/// What a metric is derived from; measures of rankings will be another variant.
enum Measure {
    /// Rows of label sets (at least one), given the number of labels.
    Sets(fn(&SetMetrics, usize) -> f64),
}

/// One line of the list.
struct Entry {
    name: &'static str,
    help: &'static str,
    goal: Goal,
    measure: Measure,
}

/// Turns the list into the enum, `ALL` and the entries, so that a metric is one line.
macro_rules! metrics {
    ($($variant:ident, $name:literal, $goal:ident, $measure:expr, $help:literal;)*) => {
        /// A measure of predictions, by the name a user types.
        ///
        /// # Examples
        ///
        /// ```
        /// use labelflow::metrics::{Goal, Metric};
        ///
        /// let metric: Metric = "micro_f1".parse()?;
        /// assert_eq!(metric, Metric::MicroF1);
        /// assert_eq!(metric.goal(), Goal::Higher);
        /// assert!("accuracy".parse::<Metric>().is_err());
        /// # Ok::<(), labelflow::Error>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Metric {
            $(#[doc = concat!("`", $name, "`: ", $help, ".")] $variant,)*
        }

        impl Metric {
            /// Every metric, in the order of reports.
            pub const ALL: &[Metric] = &[$(Metric::$variant),*];

            const fn entry(self) -> Entry {
                match self {
                    $(Metric::$variant => Entry {
                        name: $name,
                        help: $help,
                        goal: Goal::$goal,
                        measure: $measure,
                    },)*
                }
            }
        }
    };
}

use Measure::Sets;

metrics! {
    HammingScore, "hamming_score", Higher, Sets(labels::hamming_score),
        "share of right decisions over all rows and labels";
    ExactMatch, "exact_match", Higher, Sets(examples::exact_match),
        "share of rows whose set is predicted exactly";
    Jaccard, "jaccard", Higher, Sets(examples::jaccard),
        "common labels over true or predicted labels, mean of rows";
    Precision, "precision", Higher, Sets(examples::precision),
        "common labels over predicted labels, mean of rows";
    Recall, "recall", Higher, Sets(examples::recall),
        "common labels over true labels, mean of rows";
    F1, "f1", Higher, Sets(examples::f1),
        "harmonic mean of precision and recall of a row, mean of rows";
    MicroPrecision, "micro_precision", Higher, Sets(labels::micro_precision),
        "precision of all decisions pooled";
    MicroRecall, "micro_recall", Higher, Sets(labels::micro_recall),
        "recall of all decisions pooled";
    MicroF1, "micro_f1", Higher, Sets(labels::micro_f1),
        "F1 of all decisions pooled";
    MacroPrecision, "macro_precision", Higher, Sets(labels::macro_precision),
        "precision of a label, mean of labels";
    MacroRecall, "macro_recall", Higher, Sets(labels::macro_recall),
        "recall of a label, mean of labels";
    MacroF1, "macro_f1", Higher, Sets(labels::macro_f1),
        "F1 of a label, mean of labels";
    LabelCardinality, "label_cardinality", Neutral, Sets(labels::label_cardinality),
        "mean size of the predicted sets";
    EmptyShare, "empty_share", Neutral, Sets(examples::empty_share),
        "share of rows with nothing predicted";
}

impl Metric {
    /// The name in SQL, on the command line and in reports.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// One line of help, without a full stop.
    pub const fn help(self) -> &'static str {
        self.entry().help
    }

    /// Which way it should move.
    pub const fn goal(self) -> Goal {
        self.entry().goal
    }

    /// The value over `sets`, which hold at least one row, among `label_count` labels.
    pub(super) fn of_sets(self, sets: &SetMetrics, label_count: usize) -> f64 {
        let Measure::Sets(measure) = self.entry().measure;
        measure(sets, label_count)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Metric {
    type Err = Error;

    /// The metric called `name`.
    ///
    /// # Errors
    ///
    /// `Usage` when there is none of that name; the message lists all names.
    fn from_str(name: &str) -> Result<Self> {
        let found = Metric::ALL.iter().copied().find(|m| m.name() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Metric::ALL.iter().map(|m| m.name()).collect();
            Error::usage(format!("unknown metric `{name}`: use one of {}", names.join(", ")))
        })
    }
}
