//! An algorithm of your own: one file, one registration, then SQL, model files and merging work.
//!
//! `prior` scores every label with its frequency, whatever the features are, and predicts those
//! above a threshold. Run with `cargo run --release --example own_algorithm`: it learns in SQL, then
//! runs the conformance suite on the algorithm and fails when a check does.

use arrow::array::{AsArray, StringArray};
use arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::SessionContext;
use labelflow::conformance::{self, Exception};
use labelflow::data::{FeatureOptions, LabelSets, Remap, Rows, Space, Used};
use labelflow::decide::Decision;
use labelflow::math::logit;
use labelflow::models::{
    Algorithm, Allowed, Capabilities, CheckedSpec, Insight, Learner, Parameter, Registry, Scorer,
    same_kind,
};
use labelflow::stats::{LabelCounts, SetSizes, State, StateReader, StateWriter, Statistic};
use labelflow::{Error, Result, sql};
use std::any::Any;
use std::process::ExitCode;

const ALGORITHM: Algorithm = Algorithm {
    name: "prior",
    summary: "the frequency of each label, whatever the features are",
    parameters: &[Parameter {
        name: "threshold",
        default: "0.5",
        allowed: Allowed::Float(0.0, 1.0),
        help: "predict the labels whose frequency is at least this",
    }],
    capabilities: |_| Capabilities {
        forgets: true,
        decays: true,
        ranks_sets: false,
        reopens: true,
    },
    reference: "folklore",
    features: |_| Ok(FeatureOptions::default()),
    start: |spec| Ok(Box::new(Prior { threshold: spec.number("threshold")?, ..Prior::default() })),
    resume,
};

/// What is known: two statistics, which know how to add, subtract and store themselves.
#[derive(Debug, Clone, Default)]
struct Prior {
    threshold: f64,
    labels: LabelCounts,
    sizes: SetSizes,
}

impl Learner for Prior {
    fn observe(&mut self, rows: &Rows, space: &Space) -> Result<()> {
        self.labels.observe(rows, &space.features);
        self.sizes.observe(rows, &space.features);
        Ok(())
    }

    fn merge(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &Prior = same_kind(other)?;
        self.labels.merge(&other.labels);
        self.sizes.merge(&other.sizes);
        Ok(())
    }

    fn forget(&mut self, other: &dyn Learner) -> Result<()> {
        let other: &Prior = same_kind(other)?;
        // When the second statistic refuses, the first must be as it was.
        let mut left = self.clone();
        left.labels.forget(&other.labels)?;
        left.sizes.forget(&other.sizes)?;
        *self = left;
        Ok(())
    }

    fn decay(&mut self, factor: f64) -> Result<()> {
        self.labels.decay(factor);
        self.sizes.decay(factor);
        Ok(())
    }

    fn used(&self, space: &Space) -> Used {
        let labels = space.labels.ids().map(|y| self.labels.get(y) > 0.0).collect();
        Used { labels, ..Used::default() }
    }

    fn remap(&self, ids: &Remap) -> Box<dyn Learner> {
        let (labels, sizes) = (self.labels.remap(ids), self.sizes.remap(ids));
        Box::new(Prior { labels, sizes, ..*self })
    }

    fn encode(&self) -> Result<State> {
        let mut writer = StateWriter::default();
        writer.nested("label_counts", self.labels.encode());
        writer.nested("set_sizes", self.sizes.encode());
        Ok(writer.finish())
    }

    fn fit(&self, space: &Space) -> Result<Box<dyn Scorer>> {
        let rows = self.sizes.total();
        // One more row with each label and one without, so that log-odds are finite.
        let frequency = |y| (self.labels.get(y) + 1.0) / (rows + 2.0);
        let log_odds = space.labels.ids().map(|y| logit(frequency(y))).collect();
        Ok(Box::new(Frequencies { log_odds, threshold: self.threshold }))
    }

    fn insight(&self, space: &Space, _most: usize) -> Insight {
        let label_counts = space.labels.ids().map(|y| self.labels.get(y)).collect();
        Insight { label_counts, ..Insight::default() }
    }

    fn heap_size(&self) -> usize {
        self.labels.heap_size() + self.sizes.heap_size()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The learner in a model row, which may come from anywhere: it must fit its labels.
fn resume(spec: &CheckedSpec, space: &Space, state: &State) -> Result<Box<dyn Learner>> {
    let reader = StateReader::new(state);
    let labels = LabelCounts::decode(reader.nested("label_counts")?)?;
    let sizes = SetSizes::decode(reader.nested("set_sizes")?)?;
    let most = space.labels.len();
    if labels.as_slice().len() > most || sizes.as_slice().len() > most + 1 {
        return Err(Error::corrupt("the model counts labels that it does not have"));
    }
    Ok(Box::new(Prior { threshold: spec.number("threshold")?, labels, sizes }))
}

/// What is derived from the statistics for scoring.
#[derive(Debug)]
struct Frequencies {
    log_odds: Vec<f64>,
    threshold: f64,
}

impl Scorer for Frequencies {
    fn score(&self, rows: &Rows, out: &mut Vec<f64>) -> Result<()> {
        out.clear();
        (0..rows.len).for_each(|_| out.extend(&self.log_odds));
        Ok(())
    }

    fn predict(&self, rows: &Rows, out: &mut LabelSets) -> Result<()> {
        let mut scores = Vec::new();
        self.score(rows, &mut scores)?;
        Decision::Threshold(self.threshold).decide(&scores, rows.len, out);
        Ok(())
    }
}

const QUERY: &str = "
    WITH posts(tags, words) AS (VALUES
        (['rust', 'arrow'], 12), (['rust'], 7), (['rust', 'sql'], 30), (['sql'], 4)),
    trained AS (SELECT train_labels('prior', tags, words) AS model FROM posts)
    SELECT words, predict_labels(model, words) AS predicted, score_labels(model, words) AS scores
    FROM trained CROSS JOIN (SELECT 9 AS words)";

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let registry = Registry::default().with(ALGORITHM);

    let ctx = SessionContext::new();
    sql::register_with(&ctx, registry.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let rows = runtime.block_on(async { ctx.sql(QUERY).await?.collect().await })?;
    println!("{}", pretty_format_batches(&rows)?);
    // Three of the four posts are about Rust and two about SQL: 4/6 and 3/6 reach the threshold.
    let predicted = rows[0].column(1).as_list::<i32>().value(0);
    assert_eq!(predicted.as_string::<i32>(), &StringArray::from(vec!["rust", "sql"]));

    let exceptions = [Exception {
        check: "beats_the_label_prior",
        reason: "it is the label prior: it does not look at the features",
    }];
    let mut failures = 0;
    for outcome in conformance::run(&registry, "prior", &exceptions)? {
        match (outcome.result, outcome.excepted) {
            (Ok(()), None) => println!("ok      {}", outcome.check),
            (Ok(()), Some(reason)) => println!("except  {}: {reason}", outcome.check),
            (Err(failure), _) => {
                println!("FAILED  {}: {failure}", outcome.check);
                failures += 1;
            }
        }
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
