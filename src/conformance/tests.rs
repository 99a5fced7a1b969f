//! Every check can fail: an algorithm with one fault at a time, and the checks that find it.

use super::{CHECKS, Subject, verdict};
use crate::data::{LabelId, LabelSets, Remap, Rows, Space, Used};
use crate::error::{Error, Result};
use crate::models::{
    Algorithm, Allowed, Capabilities, CheckedSpec, Insight, Learner, Parameter, RankedSet,
    Registry, Scorer, same_kind,
};
use crate::stats::{State, StateReader, StateWriter};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Each fault, and the checks that must find it (others may too).
const FAULTS: &[(&str, &[&str])] = &[
    ("none", &[]),
    ("refuses_all", &["accepts_a_table"]),
    ("first_wins", &["merge_is_commutative", "any_cut_equals_one_pass"]),
    (
        "mean_merge",
        &[
            "merge_with_empty_is_identity",
            "merge_is_associative",
            "any_merge_tree_equals_one_pass",
            "a_cut_gives_the_same_state",
            "finished_models_merge_like_states",
            "new_labels_may_appear",
        ],
    ),
    ("counts_batches", &["learning_row_by_row_equals_batch", "any_cut_equals_one_pass"]),
    ("minds_order", &["learning_shuffled_equals_batch", "label_arrival_order_is_irrelevant"]),
    ("forgets_nothing", &["forget_undoes_observe", "forgetting_the_unknown_is_refused"]),
    ("keeps_names", &["forgotten_names_disappear"]),
    ("decays_to_nan", &["decay_keeps_scores_finite"]),
    (
        "modest",
        &[
            "a_closed_model_refuses_to_learn",
            "forgetting_is_refused_where_not_declared",
            "decaying_is_refused_where_not_declared",
            "ranking_sets_is_refused_where_not_declared",
        ],
    ),
    ("loses_bytes", &["bytes_and_back_are_lossless", "a_reopened_model_goes_on_learning"]),
    (
        "restless_bytes",
        &[
            "equal_rows_give_equal_bytes",
            "a_refused_batch_changes_nothing",
            "column_order_is_irrelevant",
            "infinite_values_are_refused",
            "repeated_labels_count_once",
            "unlike_columns_refuse_to_merge",
            "unlike_specs_refuse_to_merge",
            "zero_rows_are_no_model",
        ],
    ),
    ("trusts_states", &["a_foreign_state_is_corrupt"]),
    ("boasts", &["insight_is_well_formed"]),
    ("ranks_backwards", &["ranked_sets_are_sorted_probabilities"]),
    (
        "scores_change",
        &[
            "scoring_is_pure",
            "a_state_answers_like_its_model",
            "top_agrees_with_scores",
            "extra_columns_are_ignored",
            "unlabelled_rows_are_not_learned",
        ],
    ),
    (
        "scores_by_place",
        &[
            "scoring_row_by_row_equals_batch",
            "scoring_shuffled_equals_batch",
            "nulls_are_learned_and_scored",
        ],
    ),
    ("scores_infinite", &["log_odds_are_finite"]),
    (
        "scores_nan",
        &[
            "scores_are_ranked_probabilities",
            "one_row_is_enough",
            "unseen_features_are_scored",
            "huge_values_keep_scores_finite",
            "constant_features_are_learned",
        ],
    ),
    ("scores_against", &["always_on_labels_are_learned"]),
    ("prefers_label_0", &["relabelling_permutes"]),
    ("predicts_nothing", &["beats_the_label_prior"]),
    ("predicts_unknown", &["predictions_are_in_the_vocabulary", "empty_sets_are_learned"]),
    ("counts_threads", &["threads_do_not_matter"]),
    ("needs_rows", &["zero_rows_are_scored"]),
    ("needs_two_labels", &["one_label_is_enough"]),
];

/// Checks of code that algorithms share and cannot break: the trainer's columns and the digest.
const SHARED: &[&str] =
    &["a_missing_column_is_named", "truncated_bytes_are_corrupt", "flipped_bits_are_corrupt"];

/// Whether `spec` (or `modest`) passes `check`.
fn passes(subject: &Subject, name: &str) -> bool {
    let check = CHECKS.iter().find(|c| c.name == name);
    let check = check.unwrap_or_else(|| panic!("there is no check `{name}`"));
    verdict(check, subject, &[]).is_ok()
}

fn subject(fault: &str) -> Subject {
    let algorithm = match fault {
        "modest" => Algorithm {
            capabilities: |_| Capabilities {
                forgets: false,
                decays: false,
                ranks_sets: false,
                reopens: false,
            },
            ..FAULTY
        },
        _ => FAULTY,
    };
    let registry = Registry::default().with(algorithm);
    Subject::try_new(&registry, &format!("faulty(fault={fault})")).unwrap()
}

#[test]
fn a_faultless_algorithm_passes() {
    let subject = subject("none");
    for check in super::applicable(&subject) {
        verdict(check, &subject, &[]).unwrap_or_else(|e| panic!("{}: {e}", check.name));
    }
}

#[test]
fn every_fault_is_found() {
    for (fault, checks) in FAULTS {
        let subject = subject(fault);
        for check in *checks {
            assert!(!passes(&subject, check), "`{check}` does not find the fault `{fault}`");
        }
    }
}

#[test]
fn every_check_can_fail() {
    for check in CHECKS {
        let found = FAULTS.iter().any(|(_, checks)| checks.contains(&check.name));
        let shared = SHARED.contains(&check.name);
        assert!(found != shared, "`{}` must find a fault, or guard shared code", check.name);
    }
}

const FAULTY: Algorithm = Algorithm {
    name: "faulty",
    summary: "naibx with a fault",
    parameters: &[Parameter {
        name: "fault",
        default: "none",
        allowed: Allowed::Custom("the name of a fault", |_| true),
        help: "what it does wrong",
    }],
    capabilities: |_| Capabilities { forgets: true, decays: true, ranks_sets: true, reopens: true },
    reference: "",
    features: |_| {
        let (naibx, spec) = naibx()?;
        (naibx.features)(&spec)
    },
    start: |spec| {
        let (naibx, inner) = naibx()?;
        Ok(Box::new(Faulty::new(spec, (naibx.start)(&inner)?)))
    },
    resume: |spec, space, state| {
        let (naibx, inner) = naibx()?;
        let read = || {
            let reader = StateReader::new(state);
            let [mark, seen] = *reader.f64s("mark")? else {
                return Err(Error::corrupt("a mark is two numbers"));
            };
            let inner = (naibx.resume)(&inner, space, reader.nested("inner")?)?;
            Ok(Faulty { mark, seen, ..Faulty::new(spec, inner) })
        };
        match read() {
            Err(_) if Faulty::is(spec, "trusts_states") => (FAULTY.start)(spec),
            read => Ok(Box::new(read?)),
        }
    },
};

fn naibx() -> Result<(Algorithm, CheckedSpec)> {
    Registry::default().resolve("naibx(sets=3)")
}

/// A learner that passes everything on, and does one thing wrong.
#[derive(Debug)]
struct Faulty {
    fault: String,
    inner: Box<dyn Learner>,
    /// A number that faults spoil; it is added to all scores.
    mark: f64,
    /// Rows seen.
    seen: f64,
}

/// Goes up with every use.
static RESTLESS: AtomicU32 = AtomicU32::new(0);

impl Faulty {
    fn new(spec: &CheckedSpec, inner: Box<dyn Learner>) -> Self {
        let fault = spec.value("fault").map_or_else(|_| String::new(), |v| v.to_string());
        Faulty { fault, inner, mark: 0.0, seen: 0.0 }
    }

    fn is(spec: &CheckedSpec, fault: &str) -> bool {
        spec.value("fault").is_ok_and(|v| v.to_string() == fault)
    }
}

impl Learner for Faulty {
    fn observe(&mut self, rows: &Rows, space: &Space) -> Result<()> {
        if self.fault == "refuses_all" {
            return Err(Error::data("no row is good enough"));
        }
        self.inner.observe(rows, space)?;
        let ids = || rows.labels.ids().iter().map(|y| f64::from(y.0 + 1));
        match self.fault.as_str() {
            "first_wins" if self.seen == 0.0 => self.mark = ids().sum::<f64>() + rows.len as f64,
            "mean_merge" | "loses_bytes" => self.mark += rows.len as f64,
            "counts_batches" => self.mark += 1.0,
            "minds_order" => self.mark = ids().fold(self.mark, |m, y| (3.0 * m + y) % 1009.0),
            _ => {}
        }
        self.seen += rows.len as f64;
        Ok(())
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        let other = same_kind::<Faulty>(other)?;
        self.inner.merge(&*other.inner)?;
        self.mark = match self.fault.as_str() {
            "first_wins" if self.seen == 0.0 => other.mark,
            "first_wins" => self.mark,
            "mean_merge" => (self.mark + other.mark) / 2.0,
            _ => self.mark + other.mark,
        };
        self.seen += other.seen;
        Ok(())
    }

    fn forget(&mut self, other: &dyn Learner) -> Result<()> {
        let other = same_kind::<Faulty>(other)?;
        if self.fault == "forgets_nothing" {
            return Ok(());
        }
        self.inner.forget(&*other.inner)?;
        self.mark -= other.mark;
        self.seen -= other.seen;
        Ok(())
    }

    fn decay(&mut self, factor: f64) -> Result<()> {
        if self.fault == "decays_to_nan" && factor < 1.0 {
            self.mark = f64::NAN;
        }
        self.inner.decay(factor)
    }

    fn used(&self, space: &Space) -> Used {
        if self.fault == "keeps_names" { Used::all(space) } else { self.inner.used(space) }
    }

    fn remap(&self, ids: &Remap) -> Box<dyn Learner> {
        let fault = self.fault.clone();
        Box::new(Faulty { fault, inner: self.inner.remap(ids), mark: self.mark, seen: self.seen })
    }

    fn encode(&self) -> Result<State> {
        let mut writer = StateWriter::default();
        let mark = match self.fault.as_str() {
            "loses_bytes" => 0.0,
            "restless_bytes" => f64::from(RESTLESS.fetch_add(1, Ordering::Relaxed)),
            _ => self.mark,
        };
        writer.f64s("mark", [mark, self.seen]);
        writer.nested("inner", self.inner.encode()?);
        Ok(writer.finish())
    }

    fn fit(&self, space: &Space) -> Result<Box<dyn Scorer>> {
        let mark = match self.fault.as_str() {
            "counts_threads" => rayon::current_num_threads() as f64,
            "needs_two_labels" if space.labels.len() == 1 => {
                return Err(Error::data("one label is no choice"));
            }
            "restless_bytes" => 0.0,
            _ => self.mark,
        };
        let inner = Arc::from(self.inner.fit(space)?);
        Ok(Box::new(FaultyScorer { fault: self.fault.clone(), inner, mark }))
    }

    fn insight(&self, space: &Space, most: usize) -> Insight {
        let mut insight = self.inner.insight(space, most);
        if self.fault == "boasts" {
            insight.label_counts.iter_mut().for_each(|n| *n += 1.0);
        }
        insight
    }

    fn heap_size(&self) -> usize {
        self.inner.heap_size()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
struct FaultyScorer {
    fault: String,
    inner: Arc<dyn Scorer>,
    mark: f64,
}

impl Scorer for FaultyScorer {
    fn score(&self, rows: &Rows, out: &mut Vec<f64>) -> Result<()> {
        if self.fault == "needs_rows" && rows.len == 0 {
            return Err(Error::data("there is no row"));
        }
        self.inner.score(rows, out)?;
        let labels = out.len().checked_div(rows.len).unwrap_or(0);
        let change = f64::from(RESTLESS.fetch_add(1, Ordering::Relaxed) % 1000);
        for (i, score) in out.iter_mut().enumerate() {
            // Small enough not to drown in saturated probabilities.
            *score = 0.01 * *score + 1e-4 * self.mark;
            match self.fault.as_str() {
                "scores_change" => *score += 1e-3 * change * (i % labels) as f64,
                "scores_by_place" => *score += 1e-3 * (i / labels) as f64,
                "scores_infinite" => *score = f64::INFINITY,
                "scores_nan" => *score = f64::NAN,
                "scores_against" => *score = -*score,
                "prefers_label_0" if i % labels == 0 => *score += 0.5,
                _ => {}
            }
        }
        Ok(())
    }

    fn predict(&self, rows: &Rows, out: &mut LabelSets) -> Result<()> {
        let mut sets = LabelSets::default();
        self.inner.predict(rows, &mut sets)?;
        for set in sets.iter() {
            match self.fault.as_str() {
                "predicts_nothing" => out.push([]),
                "predicts_unknown" => out.push(set.iter().copied().chain([LabelId(1_000_000)])),
                _ => out.push(set.iter().copied()),
            }
        }
        Ok(())
    }

    fn rank_sets(&self, rows: &Rows, most: usize) -> Result<Vec<Vec<RankedSet>>> {
        let mut ranked = self.inner.rank_sets(rows, most)?;
        if self.fault == "ranks_backwards" {
            ranked.iter_mut().for_each(|sets| sets.reverse());
        }
        Ok(ranked)
    }
}
