//! Compare settings by cross-validation, with folds that have their share of every label.

use labelflow::data::LabelId;
use labelflow::data::generate::{Generator, GeneratorOptions};
use labelflow::evaluate::{Dataset, Experiment, Outcome, Protocol, Stratify};
use labelflow::models::Registry;

fn main() -> labelflow::Result<()> {
    let shape = GeneratorOptions { rows: 1500, features: 8, labels: 12, cardinality: 1.5, seed: 5 };
    let batch = Generator::try_new(shape)?.batch(0, 1500)?;
    let batch = batch.project(&(1..=9).collect::<Vec<_>>())?;
    let data = Dataset::try_new("generated", &[batch], "labels")?;
    let registry = Registry::default();
    let specs = ["naibx", "naibx(size=labels)"].map(String::from);

    for stratify in [Stratify::None, Stratify::Iterative] {
        let experiment = Experiment {
            registry: &registry,
            protocol: Protocol::Folds { folds: 5, repeats: 2 },
            stratify,
            seed: 1,
            clock: &|| 0.0,
            watch: &|| (),
        };
        // How uneven the folds are: rows of the rarest label in each of them.
        let truth = data.truth();
        let rarest = |rows: &[u32]| {
            let count =
                |y: LabelId| rows.iter().filter(|&&r| truth.row(r as usize).contains(&y)).count();
            data.universe().ids().map(count).min().unwrap_or(0)
        };
        let splits = experiment.protocol.splits(truth, stratify, 1)?;
        let counts: Vec<usize> = splits[..5].iter().map(|split| rarest(&split.test)).collect();
        println!("stratify {stratify}: rows of the rarest label by fold: {counts:?}");

        let outcomes = experiment.run(&data, &specs)?;
        for outcome in &outcomes {
            for name in ["jaccard", "macro_f1", "ranking_loss"] {
                let value = metric(outcome, name);
                println!("  {:20} {name:13} {:.4} ± {:.4}", outcome.spec, value.mean, value.std);
            }
        }
        assert!(metric(&outcomes[0], "jaccard").mean > 0.5);
        assert_eq!(metric(&outcomes[0], "jaccard").rounds, 10);
        if stratify == Stratify::Iterative {
            let (low, high) = (counts.iter().min(), counts.iter().max());
            assert!(high.zip(low).is_some_and(|(high, low)| high - low <= 1), "{counts:?}");
        }
    }
    Ok(())
}

fn metric(outcome: &Outcome, name: &str) -> labelflow::evaluate::Summary {
    let found = outcome.metrics.iter().find(|(n, _)| *n == name);
    found.map_or_else(|| unreachable!("{name} is a metric"), |(_, summary)| *summary)
}
