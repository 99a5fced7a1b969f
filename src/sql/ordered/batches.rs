//! Predictions for the batches of one partition, each by a task of its own.

use crate::sql::workers;
use datafusion::arrow::array::RecordBatchOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;

/// A projection that works on several batches at a time and keeps their order.
#[derive(Debug)]
pub(super) struct OrderedProjection(pub(super) ProjectionExec);

impl DisplayAs for OrderedProjection {
    fn fmt_as(&self, style: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Ordered")?;
        self.0.fmt_as(style, f)
    }
}

impl ExecutionPlan for OrderedProjection {
    fn name(&self) -> &'static str {
        "OrderedProjection"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.0.children()
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.0.apply_expressions(f)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let same = Arc::new(self.0.clone());
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let plan = same.replace_children(children, options)?;
        Ok(match plan.downcast_ref::<ProjectionExec>() {
            Some(projection) => Arc::new(OrderedProjection(projection.clone())),
            None => plan,
        })
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let threads = workers();
        if threads == 1 {
            return self.0.execute(partition, context);
        }
        let schema = self.schema();
        let columns: Arc<[_]> = self.0.expr().iter().map(|e| Arc::clone(&e.expr)).collect();
        // Finished batches may wait for their turn.
        let input = read_apart(self.0.input().execute(partition, context)?);
        let output = {
            let schema = Arc::clone(&schema);
            input.map(move |batch| project(batch, Arc::clone(&columns), Arc::clone(&schema)))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, output.buffered(2 * threads))))
    }
}

/// The batches of `input`, read on one thread.
///
/// An allocator has memory of its own for each thread. Tasks move from thread to thread, and the
/// memory for the batches of a scan would be set aside for each of them.
fn read_apart(mut input: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let mut batches = RecordBatchReceiverStream::builder(input.schema(), 2);
    let (sender, handle) = (batches.tx(), tokio::runtime::Handle::current());
    batches.spawn_blocking(move || {
        handle.block_on(async {
            while let Some(batch) = input.next().await {
                // Nobody waits for more rows.
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
        });
        Ok(())
    });
    batches.build()
}

async fn project(
    batch: Result<RecordBatch>,
    columns: Arc<[Arc<dyn PhysicalExpr>]>,
    schema: SchemaRef,
) -> Result<RecordBatch> {
    let batch = batch?;
    let task = SpawnedTask::spawn(async move {
        let rows = batch.num_rows();
        let values = columns.iter().map(|c| c.evaluate(&batch)?.into_array(rows));
        let values = values.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(schema, values, &options)?)
    });
    task.join_unwind().await.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?
}
