//! Named checks that every algorithm must pass, in the registry of labelflow or in yours.
//!
//! # When to use it
//!
//! In the tests of an algorithm of your own: one call of [`run`] says whether it keeps the promises
//! that SQL, streams and model files rely on. What an algorithm computes is for its own tests; here
//! is what all of them have in common.
//!
//! | file | checks |
//! |---|---|
//! | `statistics` | merging, cutting, forgetting, decaying: learning is aggregation |
//! | `rows` | batches, columns, labels and their order: what must not matter does not |
//! | `models` | scores, rankings, sets: what comes out is well formed, pure and of use |
//! | `edges` | tables at the edge: nothing, one, always, NULL, huge, never seen |
//! | `artefacts` | bytes: lossless, stable, and damage is an error |
//!
//! # Definition
//!
//! Checks run on small tables of several shapes: numbers, mixed columns, texts, tokens, maps. A
//! table that the spec refuses with a `Data` or `Unsupported` error is left out; one must be left.
//! [`Capabilities`] decide which checks apply. A check that an algorithm cannot pass by definition
//! is an [`Exception`] with a reason; an exception whose check passes is a failure, so that
//! exceptions do not outlive their reason.
//!
//! # Cost
//!
//! Less than a second for a fast algorithm: a few hundred models of at most 160 rows.
//!
//! # Examples
//!
//! ```
//! use labelflow::conformance::{Subject, verdict, CHECKS};
//! use labelflow::models::Registry;
//!
//! let subject = Subject::try_new(&Registry::default(), "naibx")?;
//! let check = CHECKS.iter().find(|c| c.name == "bytes_and_back_are_lossless").unwrap();
//! assert!(verdict(check, &subject, &[]).is_ok());
//! # Ok::<(), labelflow::Error>(())
//! ```

mod answers;
mod artefacts;
mod edges;
mod models;
mod rows;
mod states;
mod statistics;
mod subject;
mod table;
#[cfg(test)]
mod tests;

pub use answers::{Answers, TOLERANCE};
pub use states::same_states;
pub use subject::Subject;
pub use table::Table;

use crate::error::Result;
use crate::models::{Capabilities, Registry};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// One promise and the way to see whether it is kept.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// What holds when it passes, in snake case.
    pub name: &'static str,
    /// Tries it; the text says where it does not hold.
    pub run: fn(&Subject) -> Result<(), String>,
    /// Whether it applies to an algorithm that can do this.
    pub needs: fn(&Capabilities) -> bool,
}

/// A check that an algorithm cannot pass, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exception {
    /// The name of the check.
    pub check: &'static str,
    /// Why it cannot hold.
    pub reason: &'static str,
}

/// What became of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The name of the check.
    pub check: &'static str,
    /// Why it was expected to fail, when it was.
    pub excepted: Option<&'static str>,
    /// What is wrong, if something is.
    pub result: Result<(), String>,
}

/// Every check, by theme.
pub const CHECKS: &[Check] = &[
    always("accepts_a_table", models::accepts_a_table),
    always("merge_with_empty_is_identity", statistics::merge_with_empty_is_identity),
    always("merge_is_commutative", statistics::merge_is_commutative),
    always("merge_is_associative", statistics::merge_is_associative),
    always("any_cut_equals_one_pass", statistics::any_cut_equals_one_pass),
    always("any_merge_tree_equals_one_pass", statistics::any_merge_tree_equals_one_pass),
    always("a_cut_gives_the_same_state", statistics::a_cut_gives_the_same_state),
    when(
        |c| c.reopens,
        "a_reopened_model_goes_on_learning",
        statistics::a_reopened_model_goes_on_learning,
    ),
    when(
        |c| c.reopens,
        "finished_models_merge_like_states",
        statistics::finished_models_merge_like_states,
    ),
    when(
        |c| !c.reopens,
        "a_closed_model_refuses_to_learn",
        statistics::a_closed_model_refuses_to_learn,
    ),
    always("a_state_answers_like_its_model", statistics::a_state_answers_like_its_model),
    always("unlike_specs_refuse_to_merge", statistics::unlike_specs_refuse_to_merge),
    always("unlike_columns_refuse_to_merge", statistics::unlike_columns_refuse_to_merge),
    always("a_refused_batch_changes_nothing", statistics::a_refused_batch_changes_nothing),
    when(|c| c.forgets, "forget_undoes_observe", statistics::forget_undoes_observe),
    when(|c| c.forgets, "forgotten_names_disappear", statistics::forgotten_names_disappear),
    when(
        |c| c.forgets,
        "forgetting_the_unknown_is_refused",
        statistics::forgetting_the_unknown_is_refused,
    ),
    when(
        |c| !c.forgets,
        "forgetting_is_refused_where_not_declared",
        statistics::forgetting_is_refused,
    ),
    when(|c| c.decays, "decay_keeps_scores_finite", statistics::decay_keeps_scores_finite),
    when(|c| !c.decays, "decaying_is_refused_where_not_declared", statistics::decaying_is_refused),
    always("learning_row_by_row_equals_batch", rows::learning_row_by_row_equals_batch),
    always("learning_shuffled_equals_batch", rows::learning_shuffled_equals_batch),
    always("scoring_row_by_row_equals_batch", rows::scoring_row_by_row_equals_batch),
    always("scoring_shuffled_equals_batch", rows::scoring_shuffled_equals_batch),
    always("column_order_is_irrelevant", rows::column_order_is_irrelevant),
    always("extra_columns_are_ignored", rows::extra_columns_are_ignored),
    always("a_missing_column_is_named", rows::a_missing_column_is_named),
    always("label_arrival_order_is_irrelevant", rows::label_arrival_order_is_irrelevant),
    always("relabelling_permutes", rows::relabelling_permutes),
    always("repeated_labels_count_once", rows::repeated_labels_count_once),
    always("unlabelled_rows_are_not_learned", rows::unlabelled_rows_are_not_learned),
    always("scores_are_ranked_probabilities", models::scores_are_ranked_probabilities),
    always("log_odds_are_finite", models::log_odds_are_finite),
    always("top_agrees_with_scores", models::top_agrees_with_scores),
    always("predictions_are_in_the_vocabulary", models::predictions_are_in_the_vocabulary),
    always("beats_the_label_prior", models::beats_the_label_prior),
    always("scoring_is_pure", models::scoring_is_pure),
    always("threads_do_not_matter", models::threads_do_not_matter),
    always("insight_is_well_formed", models::insight_is_well_formed),
    when(
        |c| c.ranks_sets,
        "ranked_sets_are_sorted_probabilities",
        models::ranked_sets_are_sorted_probabilities,
    ),
    when(
        |c| !c.ranks_sets,
        "ranking_sets_is_refused_where_not_declared",
        models::ranking_sets_is_refused,
    ),
    always("zero_rows_are_no_model", edges::zero_rows_are_no_model),
    always("zero_rows_are_scored", edges::zero_rows_are_scored),
    always("one_row_is_enough", edges::one_row_is_enough),
    always("one_label_is_enough", edges::one_label_is_enough),
    always("always_on_labels_are_learned", edges::always_on_labels_are_learned),
    always("empty_sets_are_learned", edges::empty_sets_are_learned),
    always("new_labels_may_appear", edges::new_labels_may_appear),
    always("unseen_features_are_scored", edges::unseen_features_are_scored),
    always("huge_values_keep_scores_finite", edges::huge_values_keep_scores_finite),
    always("infinite_values_are_refused", edges::infinite_values_are_refused),
    always("nulls_are_learned_and_scored", edges::nulls_are_learned_and_scored),
    always("constant_features_are_learned", edges::constant_features_are_learned),
    always("bytes_and_back_are_lossless", artefacts::bytes_and_back_are_lossless),
    always("equal_rows_give_equal_bytes", artefacts::equal_rows_give_equal_bytes),
    always("truncated_bytes_are_corrupt", artefacts::truncated_bytes_are_corrupt),
    always("flipped_bits_are_corrupt", artefacts::flipped_bits_are_corrupt),
    always("a_foreign_state_is_corrupt", artefacts::a_foreign_state_is_corrupt),
];

const fn always(name: &'static str, run: fn(&Subject) -> Result<(), String>) -> Check {
    when(|_| true, name, run)
}

const fn when(
    needs: fn(&Capabilities) -> bool,
    name: &'static str,
    run: fn(&Subject) -> Result<(), String>,
) -> Check {
    Check { name, run, needs }
}

/// Runs every check that applies to the algorithm `spec` names.
///
/// # Errors
///
/// A spec the registry does not know. Failed checks are no errors but [`Outcome`]s.
///
/// # Examples
///
/// ```
/// use labelflow::conformance::{Exception, run};
/// use labelflow::models::Registry;
///
/// let exceptions =
///     [Exception { check: "beats_the_label_prior", reason: "a set of size 0 has no labels" }];
/// let outcomes = run(&Registry::default(), "naibx(size=0)", &exceptions)?;
/// let excepted = outcomes.iter().find(|o| o.excepted.is_some()).unwrap();
/// assert_eq!(excepted.result, Ok(()));
/// # Ok::<(), labelflow::Error>(())
/// ```
pub fn run(registry: &Registry, spec: &str, exceptions: &[Exception]) -> Result<Vec<Outcome>> {
    let subject = Subject::try_new(registry, spec)?;
    let mut outcomes: Vec<Outcome> = unknown(exceptions).collect();
    outcomes.extend(applicable(&subject).map(|check| Outcome {
        check: check.name,
        excepted: exceptions.iter().find(|e| e.check == check.name).map(|e| e.reason),
        result: verdict(check, &subject, exceptions),
    }));
    Ok(outcomes)
}

/// The checks that apply to `subject`.
pub fn applicable(subject: &Subject) -> impl Iterator<Item = &'static Check> + use<> {
    let capabilities = subject.capabilities();
    CHECKS.iter().filter(move |check| (check.needs)(&capabilities))
}

/// Runs one check: fails when the check fails without an exception, or passes despite one.
///
/// A panic is a failure like any other.
pub fn verdict(check: &Check, subject: &Subject, exceptions: &[Exception]) -> Result<(), String> {
    let tried = catch_unwind(AssertUnwindSafe(|| (check.run)(subject)));
    let result = tried.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(format!("panicked: {text}"))
    });
    match (exceptions.iter().find(|e| e.check == check.name), result) {
        (None, result) => result,
        (Some(_), Err(_)) => Ok(()),
        (Some(exception), Ok(())) => Err(format!(
            "passes, although it is excepted because `{}`: remove the exception",
            exception.reason
        )),
    }
}

/// Exceptions of checks that do not exist.
fn unknown(exceptions: &[Exception]) -> impl Iterator<Item = Outcome> {
    let known = |name: &str| CHECKS.iter().any(|c| c.name == name);
    exceptions.iter().filter(move |e| !known(e.check)).map(|e| Outcome {
        check: e.check,
        excepted: Some(e.reason),
        result: Err("is excepted, but there is no such check".to_string()),
    })
}
