//! Train a model on Arrow record batches, keep it in a file, and score new rows with it.

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::Float64Type;
use labelflow::data::generate::{Generator, GeneratorOptions};
use labelflow::data::{LabelReader, LabelSets};
use labelflow::metrics::{Metric, SetMetrics};
use labelflow::models::{Registry, Trainer, split_columns};
use labelflow::store::{read_model, write_model};
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Any record batches will do: a column of label lists, every other column a feature.
    let shape = GeneratorOptions { rows: 6000, features: 10, labels: 6, cardinality: 2.0, seed: 7 };
    let generator = Generator::try_new(shape)?;
    let without_id: Vec<usize> = (1..=11).collect();
    let registry = Registry::default();

    // Learning is one pass, batch by batch.
    let mut trainer = Trainer::try_new(&registry, "naibx")?;
    for first in (0..5000).step_by(1000) {
        let batch = generator.batch(first, 1000)?.project(&without_id)?;
        trainer.observe_batch(&batch, "labels")?;
    }
    let path = std::env::temp_dir().join(format!("labelflow-{}.labelflow", std::process::id()));
    write_model(&path, &trainer.finish()?)?;

    // Somewhere else: read the model, score rows it has not seen.
    let model = read_model(&path, &registry)?;
    std::fs::remove_file(&path)?;
    let new = generator.batch(5000, 1000)?.project(&without_id)?;
    let (truth, features) = split_columns(&new, "labels")?;
    let predicted = model.predict(&features)?;
    let scores = model.score(&features)?;
    for row in 0..3 {
        let (set, ranked) = (predicted.value(row), scores.value(row));
        let set: Vec<&str> = set.as_string::<i32>().iter().flatten().collect();
        let label = ranked.as_struct().column(0).as_string::<i32>().value(0);
        let score = ranked.as_struct().column(1).as_primitive::<Float64Type>().value(0);
        println!("row {row}: predicted {}; best is {label} with {score:.3}", set.join(", "));
    }

    // How good is it? Metrics are statistics: they merge over batches and partitions.
    let (mut t, mut p) = (LabelSets::default(), LabelSets::default());
    let number = |name: &str| Ok(model.space().labels.get(name));
    LabelReader::read(&truth, &mut t, number)?;
    let predicted: ArrayRef = Arc::new(predicted);
    LabelReader::read(&predicted, &mut p, number)?;
    let mut metrics = SetMetrics::default();
    metrics.observe_sets(&t, &p)?;
    let jaccard = metrics.value(Metric::Jaccard, None).unwrap_or_default();
    println!("learned from {} rows; jaccard of {} new rows: {jaccard:.3}", model.rows(), t.len());
    assert_eq!((model.rows(), t.len()), (5000, 1000));
    assert!(jaccard > 0.5, "{jaccard}");
    Ok(())
}
