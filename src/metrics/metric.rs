//! The list of metrics.

use super::{RankMetrics, SetMetrics};
use super::{examples, labels, rank_metrics};
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

/// What a metric is derived from.
enum Measure {
    /// Rows of label sets (at least one), given the number of labels.
    Sets(fn(&SetMetrics, usize) -> f64),
    /// Rows of true labels and scores (at least one).
    Ranks(fn(&RankMetrics) -> f64),
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

use Measure::{Ranks, Sets};

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
    RankingLoss, "ranking_loss", Lower, Ranks(rank_metrics::ranking_loss),
        "share of pairs of a true and another label in the wrong order, mean of rows";
    OneError, "one_error", Lower, Ranks(rank_metrics::one_error),
        "share of rows whose best label is not true";
    Coverage, "coverage", Lower, Ranks(rank_metrics::coverage),
        "steps down the ranking to the last true label, mean of rows";
    AveragePrecision, "average_precision", Higher, Ranks(rank_metrics::average_precision),
        "precision of the ranking down to each true label, mean of them, mean of rows";
    PrecisionAt1, "precision_at_1", Higher, Ranks(rank_metrics::precision_at_1),
        "share of rows whose best label is true";
    PrecisionAt3, "precision_at_3", Higher, Ranks(rank_metrics::precision_at_3),
        "true labels among the best three over three, mean of rows";
    PrecisionAt5, "precision_at_5", Higher, Ranks(rank_metrics::precision_at_5),
        "true labels among the best five over five, mean of rows";
    NdcgAt5, "ndcg_at_5", Higher, Ranks(rank_metrics::ndcg_at_5),
        "discounted gain of the best five over the best possible, mean of rows";
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

    /// Whether it measures scores (a [`RankMetrics`]) and not label sets (a [`SetMetrics`]).
    pub const fn of_scores(self) -> bool {
        matches!(self.entry().measure, Measure::Ranks(_))
    }

    /// The value over `sets`, which hold at least one row, among `label_count` labels.
    pub(super) fn of_sets(self, sets: &SetMetrics, label_count: usize) -> Option<f64> {
        match self.entry().measure {
            Measure::Sets(measure) => Some(measure(sets, label_count)),
            Measure::Ranks(_) => None,
        }
    }

    /// The value over `ranks`, which hold at least one row.
    pub(super) fn of_ranks(self, ranks: &RankMetrics) -> Option<f64> {
        match self.entry().measure {
            Measure::Sets(_) => None,
            Measure::Ranks(measure) => Some(measure(ranks)),
        }
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
