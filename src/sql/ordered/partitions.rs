//! Partitions that follow each other, several of them computed at a time.

use crate::sql::pieces::AHEAD;
use crate::sql::workers;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::utils::memory::get_record_batch_memory_size;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// The rows of all partitions of its input, one partition after the other.
///
/// As many partitions are computed at a time as there are threads, each by one task from the file to
/// the prediction, so that a batch is in the cache of the processor that goes on with it. Batches of
/// all but the first wait, [`AHEAD`] rows of each at most.
#[derive(Debug)]
pub(in crate::sql) struct InOrder {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl InOrder {
    /// The partitions of `input`, which are those rows in order that a single partition with
    /// these properties would have.
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, properties: &Arc<PlanProperties>) -> Self {
        InOrder { input, properties: Arc::clone(properties) }
    }
}

impl DisplayAs for InOrder {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("InOrder")
    }
}

impl ExecutionPlan for InOrder {
    fn name(&self) -> &'static str {
        "InOrder"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.into_iter().next().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(InOrder::new(input, &self.properties)))
    }

    fn execute(
        &self,
        _partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let threads = workers();
        let consumer = MemoryConsumer::new("rows that wait for those before them");
        let waiting = Arc::new(consumer.register(context.memory_pool()));
        let partitions = 0..self.input.output_partitioning().partition_count();
        let rest = {
            let (input, waiting) = (Arc::clone(&self.input), Arc::clone(&waiting));
            partitions.map(move |p| run(&input, p, &context, &waiting))
        };
        let running = VecDeque::with_capacity(threads);
        let batches = stream::unfold((running, rest), move |(mut running, mut rest)| async move {
            loop {
                running.extend(rest.by_ref().take(threads - running.len()));
                let first: &mut SendableRecordBatchStream = running.front_mut()?;
                match first.next().await {
                    Some(batch) => return Some((batch, (running, rest))),
                    None => running.pop_front(),
                };
            }
        });
        let batches = batches.inspect_ok(move |b| waiting.shrink(get_record_batch_memory_size(b)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

/// The rows of a partition of `input`, computed by a task and counted while they are `waiting`.
fn run(
    input: &Arc<dyn ExecutionPlan>,
    partition: usize,
    context: &Arc<TaskContext>,
    waiting: &Arc<MemoryReservation>,
) -> SendableRecordBatchStream {
    let ahead = (AHEAD / context.session_config().batch_size()).max(1);
    let mut batches = RecordBatchReceiverStream::builder(input.schema(), ahead);
    let (sender, waiting) = (batches.tx(), Arc::clone(waiting));
    let (input, context) = (Arc::clone(input), Arc::clone(context));
    batches.spawn(async move {
        let mut rows = input.execute(partition, context)?;
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            waiting.try_grow(get_record_batch_memory_size(&batch))?;
            // Nobody waits for more rows.
            if sender.send(Ok(batch)).await.is_err() {
                break;
            }
        }
        Ok(())
    });
    batches.build()
}
