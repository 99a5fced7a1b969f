//! Packs the variadic feature arguments of the SQL functions into one named struct.
//!
//! Names of columns do not survive the optimizer: it merges projections and extracts common
//! subexpressions. So before any optimizer rule runs, `predict_labels(m, a, t.b)` becomes
//! `predict_labels(m, named_struct('a', a, 'b', t.b))`, and the names travel in the type.

use super::cache::{ModelCache, is_url};
use super::call::{Definition, NO_DISTINCT, definition};
use super::error::to_datafusion;
use super::learn;
use super::scoring::Scoring;
use super::weight::is_weight;
use crate::data::Binding;
use crate::error::Error;
use crate::models::{Trainer, holds_features};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::execution::SessionStateBuilder;
use datafusion::functions::core::named_struct;
use datafusion::logical_expr::expr::{
    AggregateFunction, ScalarFunction, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, unnormalize_col};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits, lit,
};
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use datafusion::prelude::SessionContext;

/// Adds the rule to a session. It runs after DataFusion's own type coercion and before the optimizer.
///
/// `PREPARE` optimizes a plan that was not analyzed, so the rule is the first of the optimizer too.
pub(super) fn install(ctx: &SessionContext, cache: &Arc<ModelCache>) {
    let rule = Arc::new(PackFeatures { cache: Arc::clone(cache) });
    ctx.add_analyzer_rule(Arc::clone(&rule) as Arc<dyn AnalyzerRule + Send + Sync>);
    let state = ctx.state_ref();
    let mut state = state.write();
    let mut rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![rule];
    rules.extend(state.optimizer().rules.iter().cloned());
    let id = state.session_id().to_string();
    *state = SessionStateBuilder::new_from_existing(state.clone())
        .with_session_id(id)
        .with_optimizer_rules(rules)
        .build();
}

/// The rewrite of `f(…, a, b)` to `f(…, named_struct('a', a, 'b', b))` in every node of a plan.
#[derive(Debug)]
pub(super) struct PackFeatures {
    cache: Arc<ModelCache>,
}

impl AnalyzerRule for PackFeatures {
    fn name(&self) -> &str {
        "pack_features"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        self.look_at_objects(&plan)?;
        // Bottom up, into subqueries of expressions too (scalar, IN, EXISTS, lateral).
        plan.transform_up_with_subqueries(|plan| self.pack_plan(plan)).map(|plan| plan.data)
    }
}

impl OptimizerRule for PackFeatures {
    fn name(&self) -> &str {
        "pack_features"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        plan.transform_up_with_subqueries(|plan| self.pack_plan(plan))
    }
}

impl PackFeatures {
    /// Reads models that are named by a URL again if they have changed: once for a query.
    fn look_at_objects(&self, plan: &LogicalPlan) -> Result<()> {
        let mut urls = BTreeSet::new();
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    urls.extend(model_urls(expr));
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        let refresh = |url: &String| self.cache.refresh(url).map_err(to_datafusion);
        urls.iter().try_for_each(refresh)
    }

    fn pack_plan(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        // The columns the expressions of this node may name; only types are looked up in it.
        let mut schema = merge_schema(&plan.inputs());
        if let LogicalPlan::TableScan(scan) = &plan {
            let source = DFSchema::try_from_qualified_schema(
                scan.table_name.clone(),
                &scan.source.schema(),
            )?;
            schema.merge(&source);
        }
        // Parents name the outputs of projections, aggregates and windows by the text of the
        // original expression; the preserver puts that text back as an alias.
        let names = NamePreserver::new(&plan);
        let packed = plan.map_expressions(|expr| match expr {
            // A grouping set has to stay the top of its expression: its members are named, not itself.
            Expr::GroupingSet(_) => {
                expr.map_children(|member| self.pack_named(member, &schema, &names))
            }
            expr => self.pack_named(expr, &schema, &names),
        })?;
        if packed.transformed { packed.map_data(LogicalPlan::recompute_schema) } else { Ok(packed) }
    }

    fn pack_named(
        &self,
        expr: Expr,
        schema: &DFSchema,
        names: &NamePreserver,
    ) -> Result<Transformed<Expr>> {
        let name = names.save(&expr);
        let packed = expr.transform_up(|expr| self.pack_call(expr, schema))?;
        Ok(if packed.transformed { packed.update_data(|expr| name.restore(expr)) } else { packed })
    }

    /// Packs one call; anything else comes back as it is.
    fn pack_call(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        match expr {
            Expr::ScalarFunction(ScalarFunction { func, mut args }) => {
                refuse_wildcard(func.name(), &args)?;
                let packed = self.pack_arguments(func.name(), &mut args, schema)?;
                if let Some(scoring) = func.inner().downcast_ref::<Scoring>() {
                    scoring.check_object(&args, schema).map_err(to_datafusion)?;
                }
                Ok(transformed(Expr::ScalarFunction(ScalarFunction { func, args }), packed))
            }
            Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
                refuse_distinct(func.name(), params.distinct)?;
                refuse_wildcard(func.name(), &params.args)?;
                let packed = self.pack_arguments(func.name(), &mut params.args, schema)?;
                Ok(transformed(Expr::AggregateFunction(AggregateFunction { func, params }), packed))
            }
            // `learn_and_predict(…) OVER` and any of the aggregates used as a window.
            Expr::WindowFunction(mut window) => {
                let WindowFunction { fun, params } = window.as_mut();
                refuse_distinct(fun.name(), params.distinct)?;
                refuse_wildcard(fun.name(), &params.args)?;
                let mut packed = self.pack_arguments(fun.name(), &mut params.args, schema)?;
                if fun.name() == learn::NAME && params.args.len() == 3 {
                    // The frame as a constant: the function keeps what it knows of it by itself.
                    let frame = self.read_frame(params);
                    let frame = frame.map_err(|e| to_datafusion(e.context(learn::NAME)))?;
                    params.args.push(frame);
                    params.window_frame = WindowFrame::new_bounds(
                        WindowFrameUnits::Rows,
                        WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
                        WindowFrameBound::CurrentRow,
                    );
                    packed = true;
                }
                Ok(transformed(Expr::WindowFunction(window), packed))
            }
            other => Ok(Transformed::no(other)),
        }
    }

    /// Replaces the features among `arguments` by one struct; says whether it did.
    fn pack_arguments(
        &self,
        function: &str,
        arguments: &mut Vec<Expr>,
        schema: &DFSchema,
    ) -> Result<bool> {
        let Some(definition) = definition(function) else { return Ok(false) };
        let Some(first) = definition.first_feature else { return Ok(false) };
        // Too few arguments is for the function to say.
        if arguments.len() <= first {
            return Ok(false);
        }
        let packed = pack(definition, first, arguments, schema)
            .map_err(|e| to_datafusion(e.context(function)))?;
        if definition.learns {
            self.check_learning(definition, arguments, schema)
                .map_err(|e| to_datafusion(e.context(function)))?;
        }
        Ok(packed)
    }

    /// The frame of a call of `learn_and_predict`, in which its algorithm must be able to learn.
    fn read_frame(&self, params: &WindowFunctionParams) -> crate::Result<Expr> {
        let rows = learn::rows_before(params)?;
        if let Expr::Literal(spec, _) = params.args[0].clone().unalias()
            && let Some(Some(spec)) = spec.try_as_str()
        {
            learn::start(self.cache.registry(), spec, rows)?;
        }
        learn::frame(rows)
    }

    /// Checks the spec, the weight and the types of the features of a call that learns.
    fn check_learning(
        &self,
        definition: &Definition,
        arguments: &[Expr],
        schema: &DFSchema,
    ) -> crate::Result<()> {
        let not_constant = || {
            let write = &definition.syntax;
            Err(Error::usage(format!("the spec must be a constant text; write {write}")))
        };
        let spec = match arguments[0].clone().unalias() {
            Expr::Literal(spec, _) if spec.is_null() => return not_constant(),
            Expr::Literal(spec, _) => spec,
            other if other.any_column_refs() => return not_constant(),
            // A parameter of a prepared query, or an expression that will be a constant.
            _ => return Ok(()),
        };
        let Some(Some(spec)) = spec.try_as_str() else { return Ok(()) };
        let (algorithm, spec) = self.cache.registry().resolve(spec)?;
        let type_of = |expr: &Expr| expr.get_type(schema).unwrap_or(DataType::Null);
        if definition.takes_weight {
            let trainer = Trainer::start(algorithm, spec.clone())?;
            if arguments.iter().any(|e| is_weight(&type_of(e))) && !trainer.takes_weights() {
                return Err(Error::unsupported(format!(
                    "`{}` takes no weights: leave them out, or repeat the rows",
                    algorithm.name
                )));
            }
        }
        let features = definition.first_feature.and_then(|first| arguments.get(first));
        match features.map(|features| features.get_type(schema)) {
            Some(Ok(data_type)) if holds_features(&data_type) => {
                Binding::check_type(&data_type, &(algorithm.features)(&spec)?)
            }
            _ => Ok(()),
        }
    }
}

/// Refuses `f(DISTINCT ...)` for all functions of labelflow.
fn refuse_distinct(function: &str, is_distinct: bool) -> Result<()> {
    match definition(function).filter(|_| is_distinct) {
        Some(definition) => {
            let write = &definition.syntax;
            let problem = format!("{function}: {NO_DISTINCT}; write {write}");
            Err(to_datafusion(Error::usage(problem)))
        }
        None => Ok(()),
    }
}

/// Refuses `f(*)` and `f(t.*)` for all functions of labelflow: DataFusion gives them the wildcard as
/// one argument without a type.
fn refuse_wildcard(function: &str, arguments: &[Expr]) -> Result<()> {
    #[expect(deprecated)]
    let is_wildcard = |e: &Expr| matches!(e, Expr::Wildcard { .. });
    match definition(function).filter(|_| arguments.iter().any(is_wildcard)) {
        Some(definition) => {
            let write = &definition.syntax;
            let problem = format!(
                "{function}: `*` cannot be an argument: list the columns, or give features as one \
                 struct, {{a: a, b: b}}; write {write}"
            );
            Err(to_datafusion(Error::usage(problem)))
        }
        None => Ok(()),
    }
}

/// The models among the arguments of a call that are named by a URL.
fn model_urls(expr: &Expr) -> Vec<String> {
    let (name, arguments) = match expr {
        Expr::ScalarFunction(call) => (call.func.name(), &call.args),
        Expr::AggregateFunction(call) => (call.func.name(), &call.params.args),
        Expr::WindowFunction(call) => (call.fun.name(), &call.params.args),
        _ => return Vec::new(),
    };
    let models = definition(name).into_iter().flat_map(|d| d.models());
    let named = models.filter_map(|at| match arguments.get(at)?.clone().unalias() {
        Expr::Literal(name, _) => name.try_as_str().flatten().map(str::to_string),
        _ => None,
    });
    named.filter(|name| is_url(name)).collect()
}

fn transformed(expr: Expr, changed: bool) -> Transformed<Expr> {
    if changed { Transformed::yes(expr) } else { Transformed::no(expr) }
}

/// Replaces the arguments from `first` on by one struct of features, and the weight if there is one.
fn pack(
    definition: &Definition,
    first: usize,
    arguments: &mut Vec<Expr>,
    schema: &DFSchema,
) -> crate::Result<bool> {
    let type_of = |expr: &Expr| expr.get_type(schema).unwrap_or(DataType::Null);
    let is_weighty = |expr: &Expr| is_weight(&type_of(expr));
    let rest = &arguments[first..];
    let weights = rest.iter().filter(|e| is_weighty(e)).count();
    if weights > 0 && !definition.takes_weight {
        return Err(Error::usage("weights are for train_labels: leave row_weight out"));
    }
    if weights > 1 {
        return Err(Error::usage("there are two weights: a row has one"));
    }
    // The frame that was read stands after the features of a window function.
    if rest.last().is_some_and(|e| learn::is_frame(&type_of(e))) {
        return Ok(false);
    }
    let is_done = match rest {
        // One struct is packed already (a plan may be analyzed again); a map or list is the features.
        [only] => weights == 0 && holds_features(&type_of(only)),
        [features, weight] => is_weighty(weight) && holds_features(&type_of(features)),
        _ => false,
    };
    if is_done || rest.len() == weights {
        return Ok(false);
    }
    let (weight, features): (Vec<Expr>, Vec<Expr>) =
        arguments.split_off(first).into_iter().partition(|e| is_weighty(e));
    let packed = match <[Expr; 1]>::try_from(features) {
        Ok([only]) if holds_features(&type_of(&only)) => only,
        Ok([only]) => named(vec![only])?,
        Err(features) => named(features)?,
    };
    arguments.push(packed);
    arguments.extend(weight);
    Ok(true)
}

/// A struct of `features` under their names.
fn named(features: Vec<Expr>) -> crate::Result<Expr> {
    let mut seen = HashSet::new();
    let mut fields = Vec::with_capacity(2 * features.len());
    for feature in features {
        let name = feature_name(&feature);
        if !seen.insert(name.clone()) {
            return Err(Error::usage(format!(
                "two features are named `{name}`; \
                 give them different names with AS in a subquery and pass those"
            )));
        }
        fields.push(lit(name));
        fields.push(feature.unalias());
    }
    Ok(named_struct().call(fields))
}

/// The name of a feature: of the column or alias, through casts; else the text of the expression.
///
/// The text has no table names in it (`a * 2`, not `t.a * 2`): a model learned from one table is
/// used on another.
fn feature_name(feature: &Expr) -> String {
    match feature {
        Expr::Column(column) | Expr::OuterReferenceColumn(_, column) => column.name.clone(),
        Expr::Alias(alias) => alias.name.clone(),
        Expr::Cast(cast) => feature_name(&cast.expr),
        Expr::TryCast(cast) => feature_name(&cast.expr),
        other => unnormalize_col(other.clone()).schema_name().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Array, AsArray};
    use datafusion::arrow::datatypes::DataType;
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::{
        ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    };

    /// Stands for `predict_labels` and returns the names of the features it sees.
    #[derive(Debug, PartialEq, Eq, Hash)]
    struct Probe {
        signature: Signature,
    }

    impl ScalarUDFImpl for Probe {
        fn name(&self) -> &str {
            "predict_labels"
        }
        fn signature(&self) -> &Signature {
            &self.signature
        }
        fn return_type(&self, _: &[DataType]) -> Result<DataType> {
            Ok(DataType::Utf8)
        }
        fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
            let names = match args.arg_fields[1].data_type() {
                DataType::Struct(fields) if args.arg_fields.len() == 2 => {
                    fields.iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(",")
                }
                other => format!("{} arguments, {other}", args.arg_fields.len()),
            };
            Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(names))))
        }
    }

    /// The first value of the first column, or the error, and the name of that column.
    fn first(sql: &[&str]) -> Result<(String, String)> {
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let ctx = SessionContext::new();
            ctx.register_udf(ScalarUDF::from(Probe {
                signature: Signature::variadic_any(Volatility::Immutable),
            }));
            let cache = ModelCache::new(Default::default(), ctx.runtime_env());
            install(&ctx, &Arc::new(cache));
            ctx.sql("CREATE TABLE t (id INT, a DOUBLE, b DOUBLE) AS VALUES (1, 1.0, 2.0), (2, 3.0, 4.0)")
                .await?
                .collect()
                .await?;
            let (last, before) = sql.split_last().unwrap();
            for statement in before {
                ctx.sql(statement).await?.collect().await?;
            }
            let batches = ctx.sql(last).await?.collect().await?;
            let batch = batches.iter().find(|batch| batch.num_rows() > 0).unwrap();
            let column = datafusion::arrow::compute::cast(batch.column(0), &DataType::Utf8)?;
            let value = column.as_string::<i32>();
            assert!(value.is_valid(0));
            Ok((value.value(0).to_owned(), batch.schema().field(0).name().clone()))
        })
    }

    fn names(sql: &str) -> String {
        first(&[sql]).unwrap().0
    }

    #[test]
    fn names_are_those_the_user_sees() {
        assert_eq!(names("SELECT predict_labels('m', a, t.b) FROM t"), "a,b");
        assert_eq!(names("SELECT predict_labels('m', a) FROM t"), "a");
        assert_eq!(names("SELECT predict_labels('m', CAST(a AS REAL), b) FROM t"), "a,b");
        assert_eq!(
            names("SELECT predict_labels('m', x, y) FROM (SELECT a * 2 AS x, b AS y FROM t)"),
            "x,y"
        );
        assert_eq!(
            names(
                "WITH c AS (SELECT a + b AS x, b AS y FROM t) SELECT predict_labels('m', x, y), x + 1 FROM c"
            ),
            "x,y"
        );
        assert_eq!(
            names(
                "SELECT predict_labels('m', struct_col) FROM (SELECT named_struct('q', a) AS struct_col FROM t)"
            ),
            "q"
        );
        assert!(
            names("SELECT predict_labels('m', k) FROM (SELECT [a, b] AS k FROM t)")
                .starts_with("2 arguments, List")
        );
    }

    #[test]
    fn table_names_do_not_leak_into_expressions() {
        assert_eq!(
            names("SELECT predict_labels('m', t.a + t.b) FROM t"),
            names("SELECT predict_labels('m', u.a + u.b) FROM t AS u"),
        );
    }

    #[test]
    fn outputs_keep_their_names() {
        let (_, name) = first(&["SELECT predict_labels('m', a, b) FROM t"]).unwrap();
        assert_eq!(name, "predict_labels(Utf8(\"m\"),t.a,t.b)");
    }

    #[test]
    fn every_clause_is_reached() {
        for sql in [
            "SELECT predict_labels('m', a, b), count(*) FROM t GROUP BY predict_labels('m', a, b)",
            "SELECT predict_labels('m', a, b) AS p FROM t ORDER BY predict_labels('m', a, b)",
            "SELECT max(predict_labels('m', a, b)) FROM t HAVING max(predict_labels('m', a, b)) = 'a,b'",
            "SELECT max(predict_labels('m', a, b)) FILTER (WHERE predict_labels('m', a, b) = 'a,b') FROM t",
            "SELECT 'a,b' FROM t WHERE predict_labels('m', a, b) = 'a,b'",
            "SELECT (SELECT max(predict_labels('m', a, b)) FROM t) FROM t",
            "SELECT 'a,b' FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE predict_labels('m', u.a, t.b) = 'a,b' AND u.id = t.id)",
            "SELECT first_value(predict_labels('m', a, b)) OVER (ORDER BY id) FROM t",
            "SELECT max(p) FROM (SELECT predict_labels('m', a, b) AS p FROM t UNION ALL SELECT predict_labels('m', a, b) FROM t)",
            "SELECT p FROM (SELECT predict_labels('m', a, b) AS p, count(*) FROM t GROUP BY ROLLUP(predict_labels('m', a, b))) WHERE p IS NOT NULL",
        ] {
            assert_eq!(names(sql), "a,b", "{sql}");
        }
    }

    #[test]
    fn views_keep_working() {
        let sql = [
            "CREATE VIEW v AS SELECT predict_labels('m', a, b) AS p FROM (SELECT a, a + b AS b FROM t)",
            "SELECT p FROM v WHERE p = 'a,b'",
        ];
        assert_eq!(first(&sql).unwrap().0, "a,b");
    }

    #[test]
    fn equal_names_are_an_error() {
        let error =
            first(&["SELECT predict_labels('m', x.a, y.a) FROM t AS x JOIN t AS y ON x.id = y.id"])
                .unwrap_err();
        let message = error.find_root().to_string();
        assert!(message.contains("two features are named `a`"), "{message}");
    }
}
