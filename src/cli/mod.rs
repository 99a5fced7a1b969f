//! The command line: arguments, one library call, output.
//!
//! Results go to standard output, everything else to standard error. An error is one sentence;
//! the exit code is 2 for bad usage or input and 1 for other failures. SIGINT and SIGTERM leave
//! nothing half-written: 130 and 143.

// A closed pipe is no reason to panic: `output::say` and `output::tell` print.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod algorithms;
mod columns;
mod demo;
mod describe;
mod evaluate;
mod fit;
mod generate;
mod import;
mod inspect;
mod labelled;
mod lists;
mod merge;
mod output;
mod report;
mod score;
mod signals;
mod sink;
mod sql;
mod stream;

use crate::error::{Error, Result};
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use std::future::Future;
use std::process::ExitCode;

/// Multi-label classification as a stage in a data pipeline.
#[derive(Debug, Parser)]
#[command(name = "labelflow", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the main job end to end on generated data.
    Demo(demo::Demo),
    /// Write generated data to a file.
    Generate(generate::Generate),
    /// Turn ARFF, svmlight or any other data into Parquet, CSV, JSON or Arrow.
    Import(import::Import),
    /// Learn a model from a file.
    Fit(fit::Fit),
    /// Add predictions to a file.
    Score(score::Score),
    /// Score, or learn from, a stream of rows that may have no end.
    Stream(Box<stream::Stream>),
    /// Compare algorithms by cross-validation or on a hold-out.
    Evaluate(evaluate::Evaluate),
    /// Show the rows, features and labels of a data set.
    Describe(describe::Describe),
    /// Merge models into one.
    Merge(merge::Merge),
    /// Show what a model has learned.
    Inspect(inspect::Inspect),
    /// Run SQL with all labelflow functions and files as tables.
    Sql(sql::Sql),
    /// List the algorithms and their parameters.
    Algorithms(algorithms::Algorithms),
}

/// Runs the command of this process.
pub fn main() -> ExitCode {
    match run(std::env::args_os()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(error)) => {
            let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
            if error.use_stderr() && !is_help {
                output::tell(&one_sentence(&error.to_string()));
            } else {
                // Help and version are no failures; clap prints each to its stream.
                let _ = error.print();
            }
            ExitCode::from(error.exit_code() as u8)
        }
        // Whoever closes the pipe has read enough.
        Err(Failure::Own(error)) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(Failure::Own(error)) => {
            // DataFusion writes some of its messages on several lines.
            let message = error.to_string();
            let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
            output::tell(&format!("error: {message}"));
            ExitCode::from(if error.kind().is_user_error() { 2 } else { 1 })
        }
    }
}

/// A message of clap, which has a paragraph for what is wrong, for what may be meant and for how the
/// command is called: the last is left to --help.
fn one_sentence(message: &str) -> String {
    let paragraphs = message.trim_end().trim_end_matches('.').split("\n\n");
    let parts = paragraphs
        .map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|part| !part.is_empty() && !part.starts_with("Usage:"))
        .map(|part| part.replace("For more information, try", "for more information, try"));
    parts.collect::<Vec<_>>().join("; ")
}

enum Failure {
    Usage(clap::Error),
    Own(Error),
}

fn run(args: impl Iterator<Item = std::ffi::OsString>) -> std::result::Result<(), Failure> {
    let cli = Cli::try_parse_from(stream::joined(args)).map_err(Failure::Usage)?;
    if !matches!(cli.command, Command::Stream(_)) {
        // A stream ends in its own order, after the batch at hand.
        signals::remove_and_end().map_err(Failure::Own)?;
    }
    let done = match cli.command {
        Command::Demo(command) => command.run(),
        Command::Generate(command) => command.run(),
        Command::Import(command) => command.run(),
        Command::Fit(command) => command.run(),
        Command::Score(command) => command.run(),
        Command::Stream(command) => command.run(),
        Command::Evaluate(command) => command.run(),
        Command::Describe(command) => command.run(),
        Command::Merge(command) => command.run(),
        Command::Inspect(command) => command.run(),
        Command::Sql(command) => command.run(),
        Command::Algorithms(command) => command.run(),
    };
    done.map_err(Failure::Own)
}

/// Runs `work` with `threads` threads (0 is one per core), both where it waits and where it computes.
fn block_on<T>(threads: usize, work: impl Future<Output = Result<T>>) -> Result<T> {
    // A runtime with one worker would work on that and on the calling thread: two.
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if threads > 1 {
        builder.worker_threads(threads);
    }
    if threads > 0 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        // There is one for the process: one that is there already was asked for by the same option.
        let _ = pool.thread_name(|i| format!("compute-{i}")).build_global();
    }
    let runtime =
        builder.enable_time().build().map_err(|e| Error::io("the thread pool cannot start", e))?;
    runtime.block_on(work)
}

/// How many threads `--threads` means.
fn thread_count(threads: usize) -> usize {
    if threads > 0 {
        return threads;
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}
