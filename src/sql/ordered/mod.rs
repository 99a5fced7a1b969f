//! Predictions on all threads for one stream of batches whose order is kept.
//!
//! DataFusion works in parallel on partitions, and partitions have no order among each other. Where
//! rows must leave in the order they came in, there is one partition, and one thread would do all
//! the reading and predicting. Here the files of that partition are cut into pieces, each is read and
//! predicted by a task of its own, and they leave in their order ([`InOrder`]). Where they cannot be
//! cut, one thread reads, and the batches are predicted by tasks ([`OrderedProjection`]).

mod batches;
mod partitions;

pub(super) use partitions::InOrder;

use super::scoring::Scoring;
use super::{pieces, workers};
use batches::OrderedProjection;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};
use std::fmt;
use std::sync::Arc;

/// The rule that finds projections with predictions over a single partition.
pub(super) struct PredictInOrder(Arc<RuntimeEnv>);

impl PredictInOrder {
    /// The rules of DataFusion with this one before projections are moved into scans, where they
    /// could not be found any more.
    pub(super) fn among_others(
        runtime: &Arc<RuntimeEnv>,
    ) -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
        let mut rules = PhysicalOptimizer::new().rules;
        let moves = rules.iter().position(|rule| rule.name() == "ProjectionPushdown");
        rules.insert(moves.unwrap_or(rules.len()), Arc::new(PredictInOrder(Arc::clone(runtime))));
        rules
    }

    /// `projection`, on whose one partition several threads work.
    fn shared(&self, projection: &ProjectionExec) -> Result<Arc<dyn ExecutionPlan>> {
        let cut = match workers() {
            // Every piece has its cost. Where the plan runs there may be more threads.
            1 => None,
            threads => self.cut(projection, threads)?,
        };
        Ok(match cut {
            Some((pieces, lengths)) => {
                Arc::new(InOrder::new(pieces, lengths.into(), projection.properties()))
            }
            None => Arc::new(OrderedProjection(projection.clone())),
        })
    }

    /// `plan`, a scan or projections of one, with a partition for each piece of its files, and how
    /// many rows those have.
    fn cut(&self, plan: &dyn ExecutionPlan, threads: usize) -> Result<Option<Pieces>> {
        if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
            let cut = pieces::in_order(scan, &self.0, threads);
            return Ok(cut.map(|(config, lengths)| {
                (Arc::new(scan.clone().with_data_source(Arc::new(config))) as _, lengths)
            }));
        }
        let Some(projection) = plan.downcast_ref::<ProjectionExec>() else { return Ok(None) };
        let Some((input, lengths)) = self.cut(projection.input().as_ref(), threads)? else {
            return Ok(None);
        };
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        let pieces = Arc::new(projection.clone()).replace_children(vec![input], options)?;
        Ok(Some((pieces, lengths)))
    }
}

/// A plan and how many rows its partitions read.
type Pieces = (Arc<dyn ExecutionPlan>, Vec<usize>);

impl fmt::Debug for PredictInOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PredictInOrder")
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
                Some(projection) => Transformed::yes(self.shared(projection)?),
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
