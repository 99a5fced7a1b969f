//! Train on partitions in parallel, merge the models, take one partition away again.
//!
//! A model is a sufficient statistic: what it knows does not depend on how the rows were cut.

use labelflow::data::generate::{Generator, GeneratorOptions};
use labelflow::models::{Model, Registry, Trainer, split_columns};
use labelflow::store::{from_bytes, to_bytes};

const PARTITIONS: usize = 4;
const ROWS: usize = 2000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows = (PARTITIONS * ROWS) as u64;
    let shape = GeneratorOptions { rows, features: 8, labels: 5, cardinality: 1.8, seed: 3 };
    let generator = Generator::try_new(shape)?;
    let batch = |first: usize, rows: usize| -> labelflow::Result<_> {
        let batch = generator.batch(first as u64, rows)?.project(&(1..=9).collect::<Vec<_>>())?;
        Ok(batch)
    };
    let registry = Registry::default();
    let learn = |first: usize, rows: usize| -> labelflow::Result<Model> {
        let mut trainer = Trainer::try_new(&registry, "naibx")?;
        trainer.observe_batch(&batch(first, rows)?, "labels")?;
        trainer.finish()
    };

    // Each partition in a thread of its own; models travel as bytes, as they would between machines.
    let parts: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let work = (0..PARTITIONS)
            .map(|p| scope.spawn(move || to_bytes(&learn(p * ROWS, ROWS)?)))
            .collect::<Vec<_>>();
        let done = work.into_iter().map(|w| w.join().map_err(|_| "a thread panicked"));
        done.map(|bytes| Ok(bytes??)).collect::<Result<_, Box<dyn std::error::Error>>>()
    })?;
    let mut all = Trainer::try_new(&registry, "naibx")?;
    for bytes in &parts {
        all.merge(&from_bytes(bytes, &registry)?)?;
    }
    let merged = all.finish()?;

    // The same as one pass over all rows.
    let whole = learn(0, PARTITIONS * ROWS)?;
    let (_, features) = split_columns(&batch(0, 1000)?, "labels")?;
    assert_eq!(merged.rows(), whole.rows());
    assert_eq!(merged.predict(&features)?, whole.predict(&features)?);
    println!("{PARTITIONS} models merged: {} rows, the predictions of one pass", merged.rows());

    // Rows can be unlearned: without the last partition it is the model of the others.
    let mut rest = merged.reopen()?;
    rest.forget(&from_bytes(&parts[PARTITIONS - 1], &registry)?)?;
    let rest = rest.finish()?;
    let others = learn(0, (PARTITIONS - 1) * ROWS)?;
    assert_eq!(rest.rows(), others.rows());
    assert_eq!(rest.predict(&features)?, others.predict(&features)?);
    println!("one partition taken away: {} rows, the predictions of the others", rest.rows());
    Ok(())
}
