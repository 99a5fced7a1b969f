//! A job as an ETL author writes it: read files, clean, train on what is labelled, score the rest,
//! write Parquet. labelflow is one line of set-up; the rest is DataFusion's own DataFrame API.
//!
//! Run with `cargo run --release --example embed_in_etl`.

use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::error::Result;
use datafusion::functions::expr_fn::{lower, trim};
use datafusion::prelude::{CsvReadOptions, ParquetReadOptions, SessionContext, col, lit};
use std::path::Path;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("labelflow-etl-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let done = job(&dir).await;
    std::fs::remove_dir_all(&dir)?;
    done
}

async fn job(dir: &Path) -> Result<()> {
    let path = |name: &str| dir.join(name).to_string_lossy().into_owned();
    std::fs::write(
        path("tickets.csv"),
        "id,subject,tags\n\
         1,Printer is on fire,hardware;urgent\n\
         2,Please reset my password,account\n\
         3,printer out of paper ,hardware\n\
         4,password expired,account\n\
         5,Server room on fire,hardware;urgent\n\
         6,new printer is on fire again,\n\
         7,forgot password,\n",
    )?;

    // Once per session.
    let ctx = SessionContext::new();
    labelflow::sql::register_all(&ctx);

    // Extract and clean.
    let tickets = ctx.read_csv(path("tickets.csv"), CsvReadOptions::new()).await?;
    let tickets = tickets.with_column("subject", lower(trim(vec![col("subject")])))?;
    ctx.register_table("tickets", tickets.into_view())?;

    // Transform: words and label lists, a model of the labelled rows, predictions for the others.
    let scored = ctx
        .sql(
            "WITH words AS (
               SELECT id, string_to_array(subject, ' ') AS words, string_to_array(tags, ';') AS labels
               FROM tickets),
             model AS (SELECT train_labels('naibx', labels, words) AS model FROM words)
             SELECT id, predict_labels(model, words) AS predicted FROM words, model
             WHERE labels IS NULL ORDER BY id",
        )
        .await?;

    // Load.
    let (options, out) = (DataFrameWriteOptions::new(), path("predicted.parquet"));
    scored.write_parquet(&out, options, None).await?;

    let written = ctx.read_parquet(out, ParquetReadOptions::default()).await?;
    let urgent = datafusion::functions_nested::expr_fn::array_has(col("predicted"), lit("urgent"));
    let rows = written.filter(urgent)?.select_columns(&["id"])?.collect().await?;
    let text = datafusion::arrow::util::pretty::pretty_format_batches(&rows)?.to_string();
    println!("urgent:\n{text}");
    assert!(text.contains("| 6  |") && !text.contains("| 7  |"));
    Ok(())
}
