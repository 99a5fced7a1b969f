//! Algorithms times rounds.

use super::{Dataset, Protocol, Split, Stratify};
use crate::data::{Id, LabelId, LabelSets, Rows, Vocabulary};
use crate::error::Result;
use crate::metrics::{LabelOutcome, Metric, RankMetrics, SetMetrics};
use crate::models::{Algorithm, CheckedSpec, Model, Registry, Scorer, Spec, Trainer};
use rayon::prelude::*;
use std::sync::Arc;

/// What to compare and how.
pub struct Experiment<'a> {
    /// The algorithms specs can name.
    pub registry: &'a Registry,
    /// How rows are divided.
    pub protocol: Protocol,
    /// Whether the parts are given equal shares of every label.
    pub stratify: Stratify,
    /// The seed of the shuffle.
    pub seed: u64,
    /// Seconds since some moment; the library itself reads no clock.
    pub clock: &'a (dyn Fn() -> f64 + Sync),
    /// Told after each finished round of each algorithm.
    pub watch: &'a (dyn Fn() + Sync),
}

/// What one algorithm did on one data set.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The spec as typed, or one value of a range.
    pub spec: String,
    /// Metrics by name, then `fit_seconds` and `predict_seconds`.
    pub metrics: Vec<(&'static str, Summary)>,
    /// The outcomes of every label there is, all rounds together, in name order.
    pub labels: Vec<(String, LabelOutcome)>,
    /// What a user should know about the models, one sentence each; of a range, about its last
    /// value.
    pub notes: Vec<String>,
}

/// A number over rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The mean over rounds.
    pub mean: f64,
    /// The sample standard deviation over rounds; 0 for one round.
    pub std: f64,
    /// How many rounds.
    pub rounds: usize,
}

impl Summary {
    fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let std = if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        Summary { mean, std, rounds: values.len() }
    }
}

/// An algorithm and its checked spec.
type Resolved = (Algorithm, CheckedSpec);

/// What one round gave.
#[derive(Debug)]
struct Round {
    /// The numbers, in the order of the names.
    values: Vec<(&'static str, f64)>,
    sets: SetMetrics,
    notes: Vec<String>,
}

/// Rows that are scored at a time: their scores are all in memory.
const BLOCK: usize = 4096;

impl Experiment<'_> {
    /// Trains and tests every spec on every round, in parallel.
    ///
    /// A spec with a range of values gives an outcome for each value and one for the mean over
    /// them, under the range.
    ///
    /// # Errors
    ///
    /// Specs are checked before any work begins; then the first round that fails.
    pub fn run(&self, data: &Dataset, specs: &[String]) -> Result<Vec<Outcome>> {
        let splits = self.protocol.splits(data.truth(), self.stratify, self.seed)?;
        self.rounds(specs, splits.len(), data.universe(), |specs, round| {
            self.round(data, specs, &splits[round])
        })
    }

    /// Trains every spec on `train` and tests it on `test`.
    ///
    /// # Errors
    ///
    /// As [`Experiment::run`].
    pub fn run_on(
        &self,
        train: &Dataset,
        test: &Dataset,
        specs: &[String],
    ) -> Result<Vec<Outcome>> {
        let all = |data: &Dataset| (0..data.len() as u32).collect::<Vec<u32>>();
        let mut universe = test.universe().clone();
        universe.absorb(train.universe());
        self.rounds(specs, 1, &universe, |specs, _| {
            let (models, fit) = self.fit(train, specs, &all(train))?;
            self.test(&models, test, &universe, &all(test), fit)
        })
    }

    /// Runs every spec in every round; `run` gets specs that learn the same, to be done together.
    fn rounds(
        &self,
        specs: &[String],
        rounds: usize,
        universe: &Vocabulary<LabelId>,
        run: impl Fn(&[Resolved], usize) -> Result<Vec<Round>> + Sync,
    ) -> Result<Vec<Outcome>> {
        let mut expanded = Vec::new();
        for (i, text) in specs.iter().enumerate() {
            for spec in text.parse::<Spec>()?.expand() {
                let resolved = self.registry.resolve_parsed(&spec)?;
                expanded.push((i, spec, resolved));
            }
        }
        let groups = groups(&expanded.iter().map(|e| e.2.clone()).collect::<Vec<_>>())?;
        let work: Vec<(usize, usize)> =
            (0..groups.len()).flat_map(|g| (0..rounds).map(move |r| (g, r))).collect();
        let done = work
            .par_iter()
            .map(|&(g, r)| {
                let members: Vec<Resolved> =
                    groups[g].iter().map(|&s| expanded[s].2.clone()).collect();
                let finished = run(&members, r);
                members.iter().for_each(|_| (self.watch)());
                finished
            })
            .collect::<Result<Vec<Vec<Round>>>>()?;
        let mut ordered: Vec<Vec<Round>> = (0..expanded.len()).map(|_| Vec::new()).collect();
        for (&(g, _), finished) in work.iter().zip(done) {
            groups[g].iter().zip(finished).for_each(|(&s, round)| ordered[s].push(round));
        }
        let by_spec: Vec<Outcome> = ordered
            .iter()
            .zip(&expanded)
            .map(|(rounds, (_, spec, _))| outcome(spec.to_string(), rounds, universe))
            .collect();
        let mut outcomes = Vec::new();
        for (i, text) in specs.iter().enumerate() {
            let members: Vec<&Outcome> =
                by_spec.iter().zip(&expanded).filter(|(_, e)| e.0 == i).map(|(o, _)| o).collect();
            if let [only] = members[..] {
                outcomes.push(Outcome { spec: text.clone(), ..only.clone() });
                continue;
            }
            outcomes.push(mean_over(text, &members));
            outcomes.extend(members.into_iter().cloned());
        }
        Ok(outcomes)
    }

    fn round(&self, data: &Dataset, specs: &[Resolved], split: &Split) -> Result<Vec<Round>> {
        let (models, fit) = self.fit(data, specs, &split.train)?;
        self.test(&models, data, data.universe(), &split.test, fit)
    }

    /// The models of `specs`, which learn the same, and the seconds that one took.
    fn fit(&self, data: &Dataset, specs: &[Resolved], rows: &[u32]) -> Result<(Vec<Model>, f64)> {
        let start = (self.clock)();
        let Some((algorithm, spec)) = specs.first().cloned() else { return Ok((vec![], 0.0)) };
        let mut trainer = Trainer::start_evaluated(algorithm, spec)?;
        let (labels, features) = data.take(rows)?;
        trainer.observe(&labels, &features)?;
        let models =
            if specs.len() > 1 { trainer.state()?.peers(specs)? } else { vec![trainer.finish()?] };
        for model in &models {
            model.scorer()?;
        }
        Ok((models, ((self.clock)() - start) / specs.len() as f64))
    }

    /// Predicts `rows` of `data` with each of `models`, which learned the same; `universe` numbers
    /// labels as `data` does, and may have more.
    fn test(
        &self,
        models: &[Model],
        data: &Dataset,
        universe: &Vocabulary<LabelId>,
        rows: &[u32],
        fit: f64,
    ) -> Result<Vec<Round>> {
        let Some(first) = models.first() else { return Ok(Vec::new()) };
        let true_size = (first.algorithm().features)(first.spec())?.true_size;
        let mut tests = models
            .iter()
            .map(|model| Test::try_new(model, universe))
            .collect::<Result<Vec<_>>>()?;
        // Block by block, because models that share a search remember its last answers only.
        for rows in rows.chunks(BLOCK) {
            let start = (self.clock)();
            let (_, features) = data.take(rows)?;
            let mut input = first.read(&features)?;
            if true_size {
                let size = |&row: &u32| data.truth().row(row as usize).len() as u32;
                input.given_size = rows.iter().map(size).collect();
            }
            let read = ((self.clock)() - start) / models.len() as f64;
            for test in &mut tests {
                test.predict_seconds += read;
                test.observe(&input, |i| data.truth().row(rows[i] as usize), self.clock)?;
            }
        }
        Ok(tests.into_iter().map(|test| test.finish(fit)).collect())
    }
}

/// A model that is tested, and how it did so far.
struct Test<'a> {
    model: &'a Model,
    /// From the numbering of the model to that of the data set; by name, since a model may know
    /// labels (of other rows) in another order.
    ids: Vec<Option<LabelId>>,
    /// How many labels there are.
    labels: usize,
    scorer: Arc<dyn Scorer>,
    sets: SetMetrics,
    ranks: RankMetrics,
    predict_seconds: f64,
}

impl<'a> Test<'a> {
    fn try_new(model: &'a Model, universe: &Vocabulary<LabelId>) -> Result<Self> {
        Ok(Test {
            model,
            ids: model.space().labels.names().map(|name| universe.get(name)).collect(),
            labels: universe.len(),
            scorer: model.scorer()?,
            sets: SetMetrics::default(),
            ranks: RankMetrics::default(),
            predict_seconds: 0.0,
        })
    }

    /// Predicts rows whose label sets are `truth`.
    fn observe<'t>(
        &mut self,
        input: &Rows,
        truth: impl Fn(usize) -> &'t [LabelId],
        clock: &dyn Fn() -> f64,
    ) -> Result<()> {
        let (mut predicted, mut scores) = (LabelSets::default(), Vec::new());
        let (mut set, mut ranking) = (Vec::new(), Vec::new());
        let start = clock();
        self.scorer.predict(input, &mut predicted)?;
        self.predict_seconds += clock() - start;
        self.scorer.score(input, &mut scores)?;
        for (i, labels) in predicted.iter().enumerate() {
            set.clear();
            set.extend(labels.iter().filter_map(|y| self.ids[y.index()]));
            set.sort_unstable();
            self.sets.observe(truth(i), &set);
            // Labels that the model does not know stand last.
            ranking.clear();
            ranking.resize(self.labels, (f64::NEG_INFINITY, false));
            let row = &scores[i * self.ids.len()..(i + 1) * self.ids.len()];
            for (&score, &id) in row.iter().zip(&self.ids) {
                if let Some(id) = id {
                    ranking[id.index()].0 = score;
                }
            }
            truth(i).iter().for_each(|label| ranking[label.index()].1 = true);
            self.ranks.observe_labels(&mut ranking);
        }
        Ok(())
    }

    fn finish(self, fit: f64) -> Round {
        let value = |metric: Metric| {
            let value = self.sets.value(metric, Some(self.labels));
            (metric.name(), value.or_else(|| self.ranks.value(metric)).unwrap_or(f64::NAN))
        };
        let mut values: Vec<_> = Metric::ALL.iter().map(|&metric| value(metric)).collect();
        values.extend([("fit_seconds", fit), ("predict_seconds", self.predict_seconds)]);
        Round { values, sets: self.sets, notes: self.model.notes() }
    }
}

/// The numbers of the specs that learn the same, in the order of the first of each.
fn groups(specs: &[Resolved]) -> Result<Vec<Vec<usize>>> {
    let mut kinds: Vec<(Option<String>, Vec<usize>)> = Vec::new();
    for (i, (algorithm, spec)) in specs.iter().enumerate() {
        let kind = (algorithm.start)(spec)?.state_kind();
        match kinds.iter_mut().find(|(k, _)| k.is_some() && *k == kind) {
            Some((_, members)) => members.push(i),
            None => kinds.push((kind, vec![i])),
        }
    }
    Ok(kinds.into_iter().map(|(_, members)| members).collect())
}

/// The outcome of the rounds of one spec.
fn outcome(spec: String, rounds: &[Round], universe: &Vocabulary<LabelId>) -> Outcome {
    let mut sets = SetMetrics::default();
    rounds.iter().for_each(|round| sets.merge(&round.sets));
    let mut labels: Vec<(String, LabelOutcome)> = universe
        .ids()
        .zip(universe.names())
        .map(|(label, name)| (name.to_string(), LabelOutcome::none(label)))
        .collect();
    for outcome in sets.label_report() {
        labels[outcome.label.index()].1 = outcome;
    }
    labels.sort_by(|a, b| a.0.cmp(&b.0));
    let names = rounds.first().map_or(&[][..], |round| &round.values);
    let metrics = names
        .iter()
        .enumerate()
        .map(|(m, (name, _))| {
            let values: Vec<f64> = rounds.iter().map(|r| r.values[m].1).collect();
            (*name, Summary::of(&values))
        })
        .collect();
    let notes = rounds.last().map_or_else(Vec::new, |round| round.notes.clone());
    Outcome { spec, metrics, labels, notes }
}

/// The outcome of a range: the mean over its values, of the mean and of the deviation over rounds;
/// labels together.
fn mean_over(spec: &str, members: &[&Outcome]) -> Outcome {
    let n = members.len() as f64;
    let mut all = Outcome {
        spec: spec.to_string(),
        metrics: Vec::new(),
        labels: Vec::new(),
        notes: members.last().map_or_else(Vec::new, |last| last.notes.clone()),
    };
    let Some((first, others)) = members.split_first() else { return all };
    for (m, (name, one)) in first.metrics.iter().enumerate() {
        let of = |get: fn(&Summary) -> f64| {
            members.iter().map(|outcome| get(&outcome.metrics[m].1)).sum::<f64>() / n
        };
        let mean = Summary { mean: of(|s| s.mean), std: of(|s| s.std), rounds: one.rounds };
        all.metrics.push((name, mean));
    }
    all.labels = first.labels.clone();
    for other in others {
        for (sum, (_, more)) in all.labels.iter_mut().zip(&other.labels) {
            sum.1.add(more);
        }
    }
    all
}
