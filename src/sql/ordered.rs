//! Predictions on all threads for one stream of batches whose order is kept.
//!
//! DataFusion works in parallel on partitions, and partitions have no order among each other. Where
//! rows must leave in the order they came in, there is one partition, and one thread would do all
//! the predicting. Here the batches of that partition are predicted by tasks of their own and leave
//! in their order.

use super::scoring::Scoring;
use super::workers;
use datafusion::arrow::array::RecordBatchOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;

/// The rule that finds projections with predictions over a single partition.
#[derive(Debug)]
pub(super) struct PredictInOrder;

impl PredictInOrder {
    /// The rules of DataFusion with this one before projections are moved into scans, where they
    /// could not be found any more.
    pub(super) fn among_others() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
        let mut rules = PhysicalOptimizer::new().rules;
        let moves = rules.iter().position(|rule| rule.name() == "ProjectionPushdown");
        rules.insert(moves.unwrap_or(rules.len()), Arc::new(PredictInOrder));
        rules
    }
}

impl PhysicalOptimizerRule for PredictInOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let found = plan.transform_up(|node| {
            let projection = node.downcast_ref::<ProjectionExec>().filter(|p| {
                p.properties().output_partitioning().partition_count() == 1
                    && p.expr().iter().any(|e| predicts(&e.expr))
            });
            Ok(match projection {
                Some(p) => Transformed::yes(Arc::new(OrderedProjection(p.clone())) as _),
                None => Transformed::no(node),
            })
        })?;
        Ok(found.data)
    }

    fn name(&self) -> &str {
        "predict_in_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn predicts(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let call = expr.downcast_ref::<ScalarFunctionExpr>();
    call.is_some_and(|c| c.fun().inner().downcast_ref::<Scoring>().is_some())
        || expr.children().into_iter().any(predicts)
}

/// A projection that works on several batches at a time and keeps their order.
#[derive(Debug)]
struct OrderedProjection(ProjectionExec);

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
