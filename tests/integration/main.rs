//! Behaviour seen from outside: SQL, the command line, the documents. One binary, because
//! DataFusion is slow to link.

// The lints allow these in test functions only, and everything here is a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cli;
mod cli_errors;
mod commands;
mod formats;
mod partitions;
mod program;
mod slt;
