//! Behaviour seen from outside: SQL, the command line, the documents. One binary, because
//! DataFusion is slow to link.

// The lints allow these in test functions only, and everything here is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod algorithms;
mod cli;
mod cli_errors;
mod cli_evaluate;
mod cli_output;
mod commands;
mod formats;
mod parquet_files;
mod partitions;
mod processes;
mod program;
mod slt;
mod sql_models;
mod states;
mod stream;
