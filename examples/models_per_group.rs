//! One model per tenant, kept as rows of a table: a thousand models, trained, scored and merged in
//! three queries.
//!
//! Run with `cargo run --release --example models_per_group`.

use datafusion::arrow::util::pretty::pretty_format_batches;
use labelflow::Result;
use labelflow::sql::{SessionOptions, from_datafusion, session};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let ctx = session(&SessionOptions::default())?;
    let run = async |sql: &str| -> Result<String> {
        let query = ctx.sql(sql).await.map_err(from_datafusion)?;
        let rows = query.collect().await.map_err(from_datafusion)?;
        Ok(pretty_format_batches(&rows)?.to_string())
    };

    // Each tenant has a scale of its own: what is much for one is little for another.
    run("CREATE TABLE visits AS
         SELECT value % 1000 AS tenant, (value % 1000 + 1) * (value % 7) AS amount,
                CASE WHEN value % 7 > 3 THEN ['much'] ELSE ['little'] END AS labels
         FROM generate_series(0, 99999)")
    .await?;

    run(
        "CREATE TABLE models AS
         SELECT tenant, train_labels('naibx', labels, amount) AS model FROM visits GROUP BY tenant",
    )
    .await?;

    // A join: each row is scored by the model of its tenant.
    let text = run("SELECT round(exact_match(labels, predict_labels(model, amount)), 3) AS exact
         FROM visits JOIN models ON visits.tenant = models.tenant")
    .await?;
    println!("{text}");
    assert!(text.contains("| 1.0 "), "each tenant is predicted by its own model");

    // Merged, they are the model of all rows, without reading the rows again.
    let text = run("SELECT model_info(merge_models(model))['rows'] AS rows FROM models").await?;
    println!("{text}");
    assert!(text.contains("| 100000 |"));
    Ok(())
}
