//! Partitions that follow each other, several of them computed at a time.

use crate::sql::pieces::ahead;
use crate::sql::workers;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::utils::memory::get_record_batch_memory_size;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::{StreamExt, stream};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// The rows of all partitions of its input, one partition after the other.
///
/// As many are computed at a time as have a piece's rows ([`ahead`]) for each thread, each by one task
/// from the file to the prediction, so that a batch is in the cache of the processor that goes on with
/// it. Batches wait until all before them have left.
#[derive(Debug)]
pub(in crate::sql) struct InOrder {
    input: Arc<dyn ExecutionPlan>,
    /// How many rows each partition reads.
    lengths: Arc<[usize]>,
    properties: Arc<PlanProperties>,
}

impl InOrder {
    /// The partitions of `input`, which read so many rows each. They are those rows in order that a
    /// single partition with these properties would have.
    pub(super) fn new(
        input: Arc<dyn ExecutionPlan>,
        lengths: Arc<[usize]>,
        properties: &Arc<PlanProperties>,
    ) -> Self {
        InOrder { input, lengths, properties: Arc::clone(properties) }
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
        let partitions = input.output_partitioning().partition_count();
        if partitions != self.lengths.len() {
            let text = format!("{} pieces became {partitions} partitions", self.lengths.len());
            return Err(DataFusionError::Internal(text));
        }
        Ok(Arc::new(InOrder::new(input, Arc::clone(&self.lengths), &self.properties)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            let text = format!("rows in order are one partition, and {partition} is asked for");
            return Err(DataFusionError::Internal(text));
        }
        let threads = workers();
        let consumer = MemoryConsumer::new("rows that wait for those before them");
        let work = Work {
            input: Arc::clone(&self.input),
            waiting: Arc::new(consumer.register(context.memory_pool())),
            context,
            lengths: Arc::clone(&self.lengths),
            most_rows: threads * ahead(threads),
            most: 4 * threads,
            running: VecDeque::new(),
            rows: 0,
            next: 0,
        };
        let batches = stream::try_unfold(work, async |mut work| {
            let batch = work.next_batch().await?;
            Ok(batch.map(|batch| (batch, work)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

/// Partitions that are computed.
struct Work {
    input: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    lengths: Arc<[usize]>,
    /// Partitions are begun as long as those that run are fewer and have fewer rows.
    most_rows: usize,
    most: usize,
    running: VecDeque<(usize, SendableRecordBatchStream)>,
    /// How many rows those read that run.
    rows: usize,
    /// The partition that is begun next.
    next: usize,
    /// Counts batches that wait, so that others who ask for memory know of them. It refuses none: they
    /// were computed already, and to leave takes no more memory than to wait.
    waiting: Arc<MemoryReservation>,
}

impl Work {
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            self.begin();
            let Some((_, first)) = self.running.front_mut() else { return Ok(None) };
            match first.next().await {
                Some(batch) => {
                    let batch = batch?;
                    self.waiting.shrink(get_record_batch_memory_size(&batch));
                    return Ok(Some(batch));
                }
                None => {
                    let ended = self.running.pop_front();
                    self.rows -= ended.map_or(0, |(rows, _)| rows);
                }
            }
        }
    }

    fn begin(&mut self) {
        while self.rows < self.most_rows
            && self.running.len() < self.most
            && let Some(&length) = self.lengths.get(self.next)
        {
            self.running.push_back((length, self.run(self.next, length)));
            self.rows += length;
            self.next += 1;
        }
    }

    /// A partition of so many rows, computed by a task.
    fn run(&self, partition: usize, rows: usize) -> SendableRecordBatchStream {
        // All of them may wait. Where batches end with row groups there are more, and they stop here
        // until it is their turn.
        let batches = 2 + rows.div_ceil(self.context.session_config().batch_size());
        let mut stream = RecordBatchReceiverStream::builder(self.input.schema(), batches);
        let (sender, waiting) = (stream.tx(), Arc::clone(&self.waiting));
        let (input, context) = (Arc::clone(&self.input), Arc::clone(&self.context));
        stream.spawn(async move {
            let mut rows = input.execute(partition, context)?;
            while let Some(batch) = rows.next().await {
                let failed = batch.is_err();
                if let Ok(batch) = &batch {
                    waiting.grow(get_record_batch_memory_size(batch));
                }
                // An error comes after the rows before it; or nobody waits for more.
                if sender.send(batch).await.is_err() || failed {
                    break;
                }
            }
            Ok(())
        });
        stream.build()
    }
}
