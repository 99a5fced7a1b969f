//! The shell: statements of several lines, commands that start with a backslash.

use super::editor::{Step, read_line};
use super::history::History;
use super::statements::first_statement;
use super::{Runner, read_script};
use crate::cli::columns::literal;
use crate::cli::output::Format;
use crate::error::{Error, Result};
use crate::sql::function_names;
use clap::ValueEnum;
use console::Term;
use std::path::Path;

const HELP: &str = "\
statements end with a semicolon and may take several lines
\\d              tables and views
\\d NAME         the columns of a table or file
\\df             the functions of labelflow
\\models [DIR]   the model files of a directory
\\timing         seconds after each statement: on or off
\\format NAME    table, csv or json
\\i FILE         run a script
\\q              leave";

/// Reads and runs statements until there are no more.
pub(super) async fn run(runner: &mut Runner) -> Result<()> {
    let term = Term::stdout();
    let mut history = History::of_user();
    let mut text = String::new();
    runner.timing = true;
    println!("labelflow {}: \\? for help, \\q to leave", env!("CARGO_PKG_VERSION"));
    loop {
        let prompt = if text.trim().is_empty() { "labelflow> " } else { "        -> " };
        let step = read_line(&term, prompt, &history);
        match step.map_err(|e| Error::io("the terminal", e))? {
            Step::More => {}
            Step::End => return Ok(()),
            Step::Cancelled => text.clear(),
            Step::Done(line) => {
                if text.trim().is_empty() && line.trim_start().starts_with('\\') {
                    history.add(&line);
                    match command(runner, line.trim()).await {
                        Ok(true) => {}
                        Ok(false) => return Ok(()),
                        Err(error) => eprintln!("error: {error}"),
                    }
                    continue;
                }
                text.push_str(&line);
                text.push('\n');
                while let Some(end) = first_statement(&text) {
                    let statement: String = text.drain(..end).collect();
                    history.add(&statement);
                    if let Err(error) = runner.run_text(&statement).await {
                        eprintln!("error: {error}");
                    }
                }
            }
        }
    }
}

/// Runs a command; says whether the shell goes on.
pub(super) async fn command(runner: &mut Runner, line: &str) -> Result<bool> {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match name {
        "\\q" => return Ok(false),
        "\\?" | "\\h" | "\\help" => println!("{HELP}"),
        "\\d" if rest.is_empty() => runner.run_text(TABLES).await?,
        "\\d" => runner.run_text(&format!("DESCRIBE {}", table_name(rest))).await?,
        "\\df" => runner.run_text(&functions()).await?,
        "\\models" => runner.run_text(&models(if rest.is_empty() { "." } else { rest })?).await?,
        "\\timing" => {
            runner.timing = !runner.timing;
            println!("timing is {}", if runner.timing { "on" } else { "off" });
        }
        "\\format" => {
            runner.format = Format::from_str(rest, true).map_err(|_| {
                Error::usage(format!("`{rest}` is no format: name table, csv or json"))
            })?;
        }
        "\\i" => runner.run_text(&read_script(Path::new(rest))?).await?,
        other => return Err(Error::usage(format!("there is no command {other}: \\? lists them"))),
    }
    Ok(true)
}

const TABLES: &str = "SELECT table_name AS name, table_type AS kind FROM information_schema.tables \
     WHERE table_schema <> 'information_schema' ORDER BY table_name";

/// A query over the entries of the functions of labelflow.
fn functions() -> String {
    let names: Vec<String> = function_names().iter().map(|name| literal(name)).collect();
    format!(
        "SELECT DISTINCT syntax_example AS call, description FROM information_schema.routines \
         WHERE routine_name IN ({}) ORDER BY call",
        names.join(", ")
    )
}

/// The name of a table as it stands after DESCRIBE: files are in quotes.
fn table_name(name: &str) -> String {
    if name.contains(['.', '/']) && !name.starts_with(['\'', '"']) {
        literal(name)
    } else {
        name.to_string()
    }
}

/// A query over the model files of `directory`.
fn models(directory: &str) -> Result<String> {
    let named = |e| Error::io(format!("directory `{directory}`"), e);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(named)? {
        let path = entry.map_err(named)?.path();
        if path.extension().is_some_and(|e| e == "labelflow") {
            files.extend(path.to_str().map(str::to_string));
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(Error::not_found(format!("there is no model file in `{directory}`")));
    }
    let rows: Vec<String> = files.iter().map(|f| format!("({})", literal(f))).collect();
    Ok(format!(
        "SELECT file, m['spec'] AS spec, m['rows'] AS rows, cardinality(m['labels']) AS labels, \
         cardinality(m['features']) AS features \
         FROM (SELECT file, model_info(file) AS m FROM (VALUES {}) AS f(file)) ORDER BY file",
        rows.join(", ")
    ))
}
