//! A service that answers and learns: batches come through a channel, answers leave through one.
//!
//! `cargo run --release --example stream_service`

use futures::StreamExt;
use labelflow::data::generate::{Generator, GeneratorOptions};
use labelflow::metrics::Metric;
use labelflow::models::Registry;
use labelflow::stream::{Mode, Stage, StageOptions, StageStream};
use tokio::sync::mpsc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    runtime.block_on(serve())
}

async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    // Two batches may wait in each channel: a slow reader of answers slows the producer.
    let (requests, incoming) = mpsc::channel(2);
    let (outgoing, mut answers) = mpsc::channel(2);

    // Somebody sends rows.
    let rows = Generator::try_new(GeneratorOptions { rows: 20_000, ..Default::default() })?;
    tokio::spawn(async move {
        for batch in rows.batches(500) {
            if requests.send(batch).await.is_err() {
                break;
            }
        }
    });

    // The stage wraps the channel and is a stream itself. It has a task of its own.
    let options = StageOptions {
        mode: Mode::TestThenTrain,
        exclude: vec!["id".to_string()],
        ..StageOptions::default()
    };
    let stage = Stage::try_new(&Registry::default(), "naibx", options)?;
    let incoming = futures::stream::unfold(incoming, |mut incoming| async move {
        incoming.recv().await.map(|batch| (batch, incoming))
    });
    let work = tokio::spawn(async move {
        let mut stream = StageStream::new(stage, Box::pin(incoming));
        while let Some(batch) = stream.next().await {
            if outgoing.send(batch).await.is_err() {
                break;
            }
        }
        stream.into_stage()
    });

    // Somebody reads answers.
    let mut answered = 0;
    while let Some(batch) = answers.recv().await {
        answered += batch?.num_rows();
    }
    let stage = work.await?;
    assert_eq!(answered, 20_000);
    println!("answered {answered} rows, learned {}", stage.learned());
    for (metric, value) in stage.report().windowed() {
        if [Metric::Jaccard, Metric::MicroF1].contains(&metric) {
            println!("{} of the last rows: {value:.3}", metric.name());
        }
    }
    Ok(())
}
