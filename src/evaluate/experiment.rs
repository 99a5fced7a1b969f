//! Algorithms times rounds.

use super::{Dataset, Protocol, Split};
use crate::data::{LabelSets, Vocabulary};
use crate::error::Result;
use crate::metrics::{Metric, SetMetrics};
use crate::models::{Algorithm, CheckedSpec, Model, Registry, Spec, Trainer};
use rayon::prelude::*;

/// What to compare and how.
pub struct Experiment<'a> {
    /// The algorithms specs can name.
    pub registry: &'a Registry,
    /// How rows are divided.
    pub protocol: Protocol,
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

/// The numbers of one round, in the order of the names.
type Round = Vec<(&'static str, f64)>;

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
        let splits = self.protocol.splits(data.len(), self.seed)?;
        self.rounds(specs, splits.len(), |specs, round| self.round(data, specs, &splits[round]))
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
        self.rounds(specs, 1, |specs, _| {
            let (models, fit) = self.fit(train, specs, &all(train))?;
            let mut universe = test.universe().clone();
            universe.absorb(train.universe());
            let rows = all(test);
            models.iter().map(|model| self.test(model, test, &universe, &rows, fit)).collect()
        })
    }

    /// Runs every spec in every round; `run` gets specs that learn the same, to be done together.
    fn rounds(
        &self,
        specs: &[String],
        rounds: usize,
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
        let by_spec: Vec<Vec<(&'static str, Summary)>> =
            ordered.iter().map(|rounds| summaries(rounds)).collect();
        let mut outcomes = Vec::new();
        for (i, text) in specs.iter().enumerate() {
            let members: Vec<usize> = (0..expanded.len()).filter(|&s| expanded[s].0 == i).collect();
            if let [only] = members[..] {
                outcomes.push(Outcome { spec: text.clone(), metrics: by_spec[only].clone() });
                continue;
            }
            outcomes.push(Outcome { spec: text.clone(), metrics: mean_over(&members, &by_spec) });
            for &s in &members {
                let spec = expanded[s].1.to_string();
                outcomes.push(Outcome { spec, metrics: by_spec[s].clone() });
            }
        }
        Ok(outcomes)
    }

    fn round(&self, data: &Dataset, specs: &[Resolved], split: &Split) -> Result<Vec<Round>> {
        let (models, fit) = self.fit(data, specs, &split.train)?;
        let test = |model| self.test(model, data, data.universe(), &split.test, fit);
        models.iter().map(test).collect()
    }

    /// The models of `specs`, which learn the same, and the seconds that one took.
    fn fit(&self, data: &Dataset, specs: &[Resolved], rows: &[u32]) -> Result<(Vec<Model>, f64)> {
        let start = (self.clock)();
        let Some((algorithm, spec)) = specs.first().cloned() else { return Ok((vec![], 0.0)) };
        let mut trainer = Trainer::start(algorithm, spec)?;
        let (labels, features) = data.take(rows)?;
        trainer.observe(&labels, &features)?;
        let model = trainer.finish()?;
        let models = if specs.len() > 1 { model.peers(specs)? } else { vec![model] };
        for model in &models {
            model.scorer()?;
        }
        Ok((models, ((self.clock)() - start) / specs.len() as f64))
    }

    /// Predicts `rows` of `data`; `universe` numbers its labels as it does, and may have more.
    fn test(
        &self,
        model: &Model,
        data: &Dataset,
        universe: &Vocabulary,
        rows: &[u32],
        fit: f64,
    ) -> Result<Round> {
        let (_, features) = data.take(rows)?;
        let start = (self.clock)();
        let mut input = model.read(&features)?;
        if (model.algorithm().features)(model.spec())?.true_size {
            input.given_size =
                rows.iter().map(|&r| data.truth().row(r as usize).len() as u32).collect();
        }
        let mut predicted = LabelSets::default();
        model.scorer()?.predict(&input, &mut predicted)?;
        let predict = (self.clock)() - start;
        // From the numbering of the model to that of the data set; by name, since a model may know
        // labels (of other rows) in another order.
        let ids: Vec<Option<u32>> = model.space().labels.names().map(|n| universe.get(n)).collect();
        let mut metrics = SetMetrics::default();
        let mut set = Vec::new();
        for (&row, labels) in rows.iter().zip(predicted.iter()) {
            set.clear();
            set.extend(labels.iter().filter_map(|&l| ids[l as usize]));
            set.sort_unstable();
            metrics.observe(data.truth().row(row as usize), &set);
        }
        let universe = Some(universe.len());
        let mut round: Round = Metric::ALL
            .iter()
            .map(|&m| (m.name(), metrics.value(m, universe).unwrap_or(f64::NAN)))
            .collect();
        round.extend([("fit_seconds", fit), ("predict_seconds", predict)]);
        Ok(round)
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

fn summaries(rounds: &[Round]) -> Vec<(&'static str, Summary)> {
    let Some(first) = rounds.first() else { return Vec::new() };
    (0..first.len())
        .map(|m| {
            let values: Vec<f64> = rounds.iter().map(|r| r[m].1).collect();
            (first[m].0, Summary::of(&values))
        })
        .collect()
}

/// The mean over the values of a range, of the mean and of the deviation over rounds.
fn mean_over(
    members: &[usize],
    by_spec: &[Vec<(&'static str, Summary)>],
) -> Vec<(&'static str, Summary)> {
    let Some(&first) = members.first() else { return Vec::new() };
    let n = members.len() as f64;
    (0..by_spec[first].len())
        .map(|m| {
            let of = |get: fn(&Summary) -> f64| {
                members.iter().map(|&s| get(&by_spec[s][m].1)).sum::<f64>() / n
            };
            let (name, one) = by_spec[first][m];
            (name, Summary { mean: of(|s| s.mean), std: of(|s| s.std), rounds: one.rounds })
        })
        .collect()
}
