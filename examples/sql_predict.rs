//! SQL in a DataFusion session of one's own: `register_all`, then models are values.
//!
//! Run with `cargo run --release --example sql_predict`.

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let ctx = SessionContext::new();
    labelflow::sql::register_all(&ctx);

    ctx.sql(
        "CREATE TABLE songs AS SELECT * FROM (VALUES
           (62.0, 1.0, ['calm']), (64.0, 0.9, ['calm', 'sad']), (66.0, 1.1, ['calm', 'sad']),
           (142.0, 8.5, ['happy']), (138.0, 7.9, ['happy', 'loud']), (144.0, 8.4, ['happy', 'loud'])
         ) AS v(tempo, volume, labels)",
    )
    .await?
    .collect()
    .await?;

    let rows = ctx
        .sql(
            "WITH m AS (SELECT train_labels('naibx', labels, tempo, volume) AS model FROM songs)
             SELECT tempo, predict_labels(model, tempo, volume) AS labels,
                    top_labels(model, 1, tempo, volume) AS best
             FROM m, (VALUES (65.0, 1.0), (140.0, 8.0)) AS new(tempo, volume) ORDER BY tempo",
        )
        .await?
        .collect()
        .await?;
    let text = pretty_format_batches(&rows)?.to_string();
    println!("{text}");
    assert!(text.contains("[calm, sad]") && text.contains("[happy, loud]"));
    Ok(())
}
