//! Labels that come later: rows are answered when they come, and learned when their labels do.
//!
//! `cargo run --release --example delayed_labels`

use arrow::array::{ArrayRef, RecordBatch, new_null_array};
use arrow::datatypes::Schema;
use labelflow::data::generate::{Generator, GeneratorOptions};
use labelflow::metrics::Metric;
use labelflow::models::Registry;
use labelflow::stream::{Mode, Stage, StageOptions, WhenFull};
use std::collections::VecDeque;
use std::sync::Arc;

/// Batches between a row and its labels.
const DELAY: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mode =
        Mode::Delayed { key: "id".to_string(), most: 5_000, when_full: WhenFull::DropOldest };
    let options = StageOptions { mode, ..StageOptions::default() };
    let mut stage = Stage::try_new(&Registry::default(), "naibx", options)?;

    let rows = Generator::try_new(GeneratorOptions { rows: 20_000, ..Default::default() })?;
    let mut late = VecDeque::new();
    for batch in rows.batches(500) {
        let batch = nullable(&batch?)?;
        // The row comes without labels: it is answered and waits under its id.
        stage.process(&without(&batch, "labels")?)?;
        // Its labels come some batches later; features may be missing then.
        late.push_back(batch);
        if late.len() > DELAY
            && let Some(told) = late.pop_front()
        {
            stage.process(&told)?;
        }
    }
    let (waiting, given_up) = stage.waiting();
    println!("learned {}, waiting {waiting}, given up {given_up}", stage.learned());
    assert_eq!((stage.learned(), waiting, given_up), (17_500, 2_500, 0));
    let jaccard = stage.report().windowed().into_iter().find(|v| v.0 == Metric::Jaccard);
    println!("jaccard of the last rows, as answered then: {:.3}", jaccard.map_or(0.0, |v| v.1));
    Ok(())
}

/// The batch with columns that may be NULL.
fn nullable(batch: &RecordBatch) -> Result<RecordBatch, arrow::error::ArrowError> {
    let schema = batch.schema();
    let fields: Vec<_> =
        schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec())
}

/// The batch with NULL in column `name`.
fn without(batch: &RecordBatch, name: &str) -> Result<RecordBatch, arrow::error::ArrowError> {
    let at = batch.schema().index_of(name)?;
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    columns[at] = new_null_array(columns[at].data_type(), batch.num_rows());
    RecordBatch::try_new(batch.schema(), columns)
}
