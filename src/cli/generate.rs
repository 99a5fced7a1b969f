//! `labelflow generate`: data with known properties.

use super::sink::{FileFormat, write_rows};
use super::{block_on, output};
use crate::data::generate::{Generator, GeneratorOptions};
use crate::error::Result;
use crate::sql::{RowsRead, SessionOptions, from_datafusion, session, to_datafusion};
use clap::Args;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub(super) struct Generate {
    /// How many rows.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(super) rows: u64,
    /// How many numeric features.
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub(super) features: usize,
    /// How many labels.
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(super) labels: usize,
    /// How many labels a row has on average.
    #[arg(long, default_value_t = 2.0, value_name = "X")]
    pub(super) cardinality: f64,
    /// Equal seeds give equal rows.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(super) seed: u64,
    /// Let some labels switch their meaning half-way, to see how a stream copes.
    #[arg(long)]
    pub(super) drift: bool,
    /// The file to write; its extension chooses the format.
    #[arg(value_name = "FILE")]
    pub(super) output: PathBuf,
}

impl Generate {
    pub(super) fn run(&self) -> Result<()> {
        let format = FileFormat::of(&self.output)?;
        let mut generator = Generator::try_new(GeneratorOptions {
            rows: self.rows,
            features: self.features,
            labels: self.labels,
            cardinality: self.cardinality,
            seed: self.seed,
        })?;
        if self.drift {
            generator = generator.with_drift();
            let names = generator.switching_labels().join(", ");
            let from = self.rows / 2;
            output::tell(&format!("from row {from} on these labels switch meaning: {names}"));
        }
        block_on(
            0,
            output::write_file(&self.output, async |name| {
                let ctx = session(&SessionOptions { partitions: 1, ..Default::default() })?;
                let source = Arc::new(Source { schema: generator.schema(), generator });
                let table = StreamingTable::try_new(Arc::clone(&source.schema), vec![source])
                    .map_err(from_datafusion)?;
                ctx.register_table("generated", Arc::new(table)).map_err(from_datafusion)?;
                let bar = output::bar("generating", Some(self.rows));
                write_rows(&ctx, "SELECT * FROM generated", &name, format, &bar).await?;
                Ok(())
            }),
        )
    }
}

/// Generated rows as a table.
#[derive(Debug)]
struct Source {
    schema: SchemaRef,
    generator: Generator,
}

impl PartitionStream for Source {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, ctx: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStream::builder(Arc::clone(&self.schema), 2);
        let sender = stream.tx();
        let batches = self.generator.clone().batches(ctx.session_config().batch_size());
        let read = RowsRead::of(&ctx);
        stream.spawn_blocking(move || {
            for batch in batches {
                read.add(batch.as_ref().map_or(0, |batch| batch.num_rows()));
                if sender.blocking_send(batch.map_err(to_datafusion)).is_err() {
                    break;
                }
            }
            read.end();
            Ok(())
        });
        stream.build()
    }
}
