//! What comes out of a model: well formed, pure and of use.

use super::answers::name_lists;
use super::subject::{bytes, ensure, refused, text};
use super::{Answers, Subject, TOLERANCE, Table};
use crate::data::{Id, LabelId};
use crate::error::ErrorKind;
use crate::models::{Model, RankedSet};
use std::collections::BTreeMap;

pub(super) fn accepts_a_table(subject: &Subject) -> Result<(), String> {
    if let Some((name, error)) = subject.odd_refusals().next() {
        return Err(format!(
            "table `{name}` is refused with `{error:?}`, expected kind Data or Unsupported"
        ));
    }
    ensure(!subject.tables().is_empty(), || "every table is refused".to_string())
}

pub(super) fn scores_are_ranked_probabilities(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        // Answers that are not ranked probabilities of all labels do not come into being.
        subject.learn_and_answer(table)?;
        let few = subject.learn(&table.slice(0, 3))?;
        Answers::of(&few, &table.features).map_err(|e| table.say(format!("3 rows seen: {e}")))?;
    }
    Ok(())
}

pub(super) fn log_odds_are_finite(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        for rows in [1, 3, table.len()] {
            let model = subject.learn(&table.slice(0, rows))?;
            let input = model.read(&table.features).map_err(text)?;
            let mut scores = Vec::new();
            model.scorer().and_then(|s| s.score(&input, &mut scores)).map_err(text)?;
            let expected = table.len() * model.space().labels.len();
            ensure(scores.len() == expected, || {
                table.say(format!("{} scores, expected {expected}", scores.len()))
            })?;
            let odd = scores.iter().find(|score| !score.is_finite());
            ensure(odd.is_none(), || {
                table.say(format!("{rows} rows seen: a log-odds is {odd:?}"))
            })?;
        }
    }
    Ok(())
}

pub(super) fn top_agrees_with_scores(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let (model, answers) = subject.learn_and_answer(table)?;
        for k in [0, 1, 3, 1000] {
            let top = name_lists(&model.top(&table.features, k).map_err(text)?);
            for (row, (top, scores)) in top.iter().zip(&answers.scores).enumerate() {
                let best: Vec<&str> = scores.iter().take(k).map(|s| s.0.as_str()).collect();
                ensure(*top == best, || {
                    table.say(format!("row {row}: top {k} is {top:?}, the scores say {best:?}"))
                })?;
            }
        }
    }
    Ok(())
}

pub(super) fn predictions_are_in_the_vocabulary(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let (model, answers) = subject.learn_and_answer(&table.slice(0, 20))?;
        let seen: Vec<String> = {
            let mut all = table.slice(0, 20).sets().concat();
            all.sort_unstable();
            all.dedup();
            all
        };
        let names: Vec<&str> = model.space().labels.names().collect();
        ensure(names == seen, || table.say(format!("labels are {names:?}, seen were {seen:?}")))?;
        let odd = answers.sets.iter().flatten().find(|label| !seen.contains(label));
        ensure(odd.is_none(), || table.say(format!("label {odd:?} is predicted but not seen")))?;
    }
    Ok(())
}

pub(super) fn beats_the_label_prior(subject: &Subject) -> Result<(), String> {
    let options = (subject.algorithm().features)(subject.spec()).map_err(text)?;
    let tells = |table: &&Table| options.force.is_none_or(|kind| table.kinds.contains(&kind));
    let telling: Vec<&Table> = subject.tables().iter().filter(tells).collect();
    ensure(!telling.is_empty(), || "no accepted table holds evidence of the forced kind".into())?;
    for table in telling {
        let (train, test) = (table.slice(0, 110), table.slice(110, table.len() - 110));
        let model = subject.learn(&train)?;
        let found = Answers::of(&model, &test.features)?.sets;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        train.sets().into_iter().flatten().for_each(|label| *counts.entry(label).or_default() += 1);
        let most = counts.iter().max_by_key(|(_, n)| **n).map(|(label, _)| vec![label.clone()]);
        let always = vec![most.unwrap_or_default(); test.len()];
        let truth = test.sets();
        let (found, prior) = (jaccard(&truth, &found), jaccard(&truth, &always));
        ensure(found > prior, || {
            table
                .say(format!("jaccard is {found:.3}, the most frequent label alone has {prior:.3}"))
        })?;
    }
    Ok(())
}

pub(super) fn scoring_is_pure(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let model = subject.learn(table)?;
        let before = bytes(&model)?;
        let first = Answers::of(&model, &table.features)?;
        let second = Answers::of(&model, &table.features)?;
        ensure(first == second, || table.say("the second answer is not the first"))?;
        ensure(bytes(&model)? == before, || table.say("scoring changes the bytes of the model"))?;
    }
    Ok(())
}

pub(super) fn threads_do_not_matter(subject: &Subject) -> Result<(), String> {
    let learned_with = |threads: usize, table: &Table| -> Result<(Vec<u8>, Answers), String> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.map_err(|e| e.to_string())?.install(|| {
            let (model, answers) = subject.learn_and_answer(table)?;
            Ok((bytes(&model)?, answers))
        })
    };
    for table in subject.tables() {
        let one = learned_with(1, table)?;
        ensure(one == learned_with(4, table)?, || table.say("1 thread and 4 learn differently"))?;
        let model = subject.learn(table)?;
        let answer = || Answers::of(&model, &table.features);
        let (a, b) = std::thread::scope(|scope| {
            let (a, b) = (scope.spawn(answer), scope.spawn(answer));
            (a.join(), b.join())
        });
        let panicked = |_| table.say("scoring in a thread panicked");
        let (a, b) = (a.map_err(panicked)??, b.map_err(panicked)??);
        ensure(a == one.1 && b == one.1, || table.say("two threads score differently"))?;
    }
    Ok(())
}

pub(super) fn insight_is_well_formed(subject: &Subject) -> Result<(), String> {
    const MOST: usize = 3;
    for table in subject.tables() {
        let model = subject.learn(table)?;
        let (insight, labels) = (model.insight(MOST), model.space().labels.len());
        let counts = &insight.label_counts;
        let expected: Vec<f64> = model
            .space()
            .labels
            .names()
            .map(|label| table.sets().iter().flatten().filter(|l| *l == label).count() as f64)
            .collect();
        ensure(*counts == expected, || {
            table.say(format!("label counts are {counts:?}, expected {expected:?}"))
        })?;
        let telling = &insight.telling;
        ensure([0, labels].contains(&telling.len()), || {
            table.say(format!("telling features of {} labels, there are {labels}", telling.len()))
        })?;
        let fine = |list: &Vec<(String, f64)>| {
            list.len() <= MOST
                && list.iter().all(|(_, weight)| weight.is_finite() && *weight != 0.0)
                && list.is_sorted_by(|a, b| a.1.abs() >= b.1.abs())
        };
        ensure(telling.iter().all(fine), || {
            table.say(format!(
                "telling features are too many, not ranked, zero or not finite: {telling:?}"
            ))
        })?;
        let pairs = &insight.pairs;
        let inside = |id: LabelId| id.index() < labels;
        let fine =
            pairs.iter().all(|p| p.0 != p.1 && inside(p.0) && inside(p.1) && p.2.is_finite());
        let ranked = pairs.is_sorted_by(|a, b| a.2 >= b.2);
        ensure(fine && ranked && pairs.len() <= MOST, || {
            table.say(format!("pairs are too many, not ranked or of unknown labels: {pairs:?}"))
        })?;
    }
    Ok(())
}

pub(super) fn ranked_sets_are_sorted_probabilities(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let model = subject.learn(table)?;
        for most in [1, 4] {
            let ranked = model.rank_sets(&table.features, most).map_err(text)?;
            ensure(ranked.len() == table.len(), || {
                table.say(format!("{} rows ranked of {}", ranked.len(), table.len()))
            })?;
            for (row, sets) in ranked.iter().enumerate() {
                check_ranking(&model, sets, most)
                    .map_err(|e| table.say(format!("row {row}: {e}: {sets:?}")))?;
            }
        }
    }
    Ok(())
}

fn check_ranking(model: &Model, sets: &[RankedSet], most: usize) -> Result<(), String> {
    let fail = |text: &str| text.to_string();
    let labels = model.space().labels.len();
    ensure(!sets.is_empty() && sets.len() <= most, || format!("{} sets ranked", sets.len()))?;
    ensure(sets.iter().all(|s| (0.0..=1.0).contains(&s.probability)), || fail("no probability"))?;
    ensure(sets.is_sorted_by(|a, b| a.probability >= b.probability), || fail("not best first"))?;
    let total: f64 = sets.iter().map(|s| s.probability).sum();
    ensure(total <= 1.0 + TOLERANCE, || format!("the probabilities add up to {total}"))?;
    for (i, set) in sets.iter().enumerate() {
        let ascending = set.labels.is_sorted_by(|a, b| a < b);
        let known = set.labels.iter().all(|y| y.index() < labels);
        ensure(ascending && known, || fail("labels are unknown or not ascending"))?;
        let twice = sets[..i].iter().any(|s| s.labels == set.labels);
        ensure(!twice, || fail("a set stands twice"))?;
    }
    Ok(())
}

pub(super) fn ranking_sets_is_refused(subject: &Subject) -> Result<(), String> {
    for table in subject.tables() {
        let result = subject.learn(table)?.rank_sets(&table.features, 2);
        refused(result, ErrorKind::Unsupported, "ranking sets").map_err(|e| table.say(e))?;
    }
    Ok(())
}

/// The mean of |T and P| / |T or P|; 1 for two empty sets.
fn jaccard(truth: &[Vec<String>], predicted: &[Vec<String>]) -> f64 {
    let ratio = |(t, p): (&Vec<String>, &Vec<String>)| {
        let common = t.iter().filter(|label| p.contains(label)).count();
        let all = t.len() + p.len() - common;
        if all == 0 { 1.0 } else { common as f64 / all as f64 }
    };
    truth.iter().zip(predicted).map(ratio).sum::<f64>() / truth.len().max(1) as f64
}
