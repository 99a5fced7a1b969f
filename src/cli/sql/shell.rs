//! The shell: statements of several lines, commands that start with a backslash.

use super::editor::{Step, read_line};
use super::history::History;
use super::statements::first_statement;
use super::{Runner, read_script};
use crate::cli::columns::literal;
use crate::cli::output::{Format, is_closed_pipe, say, tell};
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
    say(&format!("labelflow {}: \\? for help, \\q to leave", env!("CARGO_PKG_VERSION")))?;
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
                        Err(error) => tell(&format!("error: {error}")),
                    }
                    continue;
                }
                text.push_str(&line);
                text.push('\n');
                while let Some(end) = first_statement(&text) {
                    let statement: String = text.drain(..end).collect();
                    history.add(&statement);
                    match runner.run_text(&statement).await {
                        Err(error) if is_closed_pipe(&error) => return Err(error),
                        Err(error) => tell(&format!("error: {error}")),
                        Ok(()) => {}
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
        "\\?" | "\\h" | "\\help" => runner.say(HELP)?,
        "\\d" if rest.is_empty() => runner.run_text(TABLES).await?,
        "\\d" => runner.run_text(&format!("DESCRIBE {}", table_name(rest))).await?,
        "\\df" => runner.run_text(&functions()).await?,
        "\\models" => runner.run_text(&models(if rest.is_empty() { "." } else { rest })?).await?,
        "\\timing" => {
            runner.timing = !runner.timing;
            runner.say(if runner.timing { "timing is on" } else { "timing is off" })?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{SessionOptions, session};
    use std::sync::{Arc, Mutex};

    /// What a shell has written.
    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    struct Shell {
        runner: Runner,
        paper: Paper,
    }

    impl Shell {
        fn new() -> Self {
            let ctx = session(&SessionOptions::default()).unwrap();
            let paper = Paper::default();
            let out = Box::new(paper.clone());
            Shell { runner: Runner { ctx, format: Format::Csv, timing: false, out }, paper }
        }

        /// What a command prints, or its error; a line without a backslash is a query.
        fn type_in(&mut self, line: &str) -> String {
            self.paper.0.lock().unwrap().clear();
            let work = async {
                match line.starts_with('\\') {
                    true => command(&mut self.runner, line).await.map(drop),
                    false => self.runner.run_text(line).await,
                }
            };
            let done = tokio::runtime::Runtime::new().unwrap().block_on(work);
            match done {
                Ok(()) => String::from_utf8(self.paper.0.lock().unwrap().clone()).unwrap(),
                Err(error) => format!("error: {error}"),
            }
        }
    }

    #[test]
    fn commands_show_what_there_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let mut shell = Shell::new();
        assert_eq!(shell.type_in("\\d"), "name,kind\n");
        shell.type_in("CREATE TABLE t AS SELECT 1 AS id, ['a', 'b'] AS labels");
        assert_eq!(shell.type_in("\\d"), "name,kind\nt,BASE TABLE\n");
        let columns = shell.type_in("\\d t");
        assert!(columns.contains("id,Int64") && columns.contains("labels,List"), "{columns}");
        let file = path("t.parquet");
        shell.type_in(&format!("COPY t TO '{file}'"));
        assert!(shell.type_in(&format!("\\d {file}")).contains("id,Int64"));
        assert!(shell.type_in("\\df").contains("predict_labels"));
        assert!(shell.type_in("\\?").contains("\\timing"));
        assert!(shell.type_in("\\nothing").contains("there is no command \\nothing"));

        let (models, empty) = (path(""), path("none"));
        let error = shell.type_in(&format!("\\models {models}"));
        assert!(error.contains("there is no model file"), "{error}");
        assert!(shell.type_in(&format!("\\models {empty}")).contains("directory `"));
        let mut trainer =
            crate::models::Trainer::try_new(&crate::models::Registry::default(), "naibx").unwrap();
        let x: arrow::array::ArrayRef = Arc::new(arrow::array::Float64Array::from(vec![1.0]));
        let features: arrow::array::ArrayRef =
            Arc::new(arrow::array::StructArray::try_from(vec![("x", x)]).unwrap());
        let mut labels = arrow::array::ListBuilder::new(arrow::array::StringBuilder::new());
        labels.append_value([Some("a")]);
        trainer.observe(&(Arc::new(labels.finish()) as _), &features).unwrap();
        let model = dir.path().join("m.labelflow");
        crate::store::write_model(&model, &trainer.finish().unwrap()).unwrap();
        let listed = shell.type_in(&format!("\\models {models}"));
        assert!(listed.starts_with("file,spec,rows,labels,features\n"), "{listed}");
        assert!(listed.ends_with("m.labelflow,naibx,1,1,1\n"), "{listed}");
    }

    #[test]
    fn commands_change_how_results_are_shown() {
        let mut shell = Shell::new();
        assert_eq!(shell.type_in("\\timing"), "timing is on\n");
        assert_eq!(shell.type_in("\\timing"), "timing is off\n");
        assert_eq!(shell.type_in("SELECT ['a', 'b'] AS l, 1 AS n"), "l,n\na;b,1\n");
        assert_eq!(shell.type_in("\\format json"), "");
        assert_eq!(
            shell.type_in("SELECT ['a', 'b'] AS l, 1 AS n"),
            "{\"l\":[\"a\",\"b\"],\"n\":1}\n"
        );
        assert_eq!(shell.type_in("\\format table"), "");
        assert_eq!(shell.type_in("SELECT 1 AS n"), "+---+\n| n |\n+---+\n| 1 |\n+---+\n");
        assert_eq!(
            shell.type_in("\\format xml"),
            "error: `xml` is no format: name table, csv or json"
        );
    }

    #[test]
    fn scripts_run_and_files_become_tables() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        let mut shell = Shell::new();
        let script = path("s.sql");
        std::fs::write(&script, "CREATE TABLE a AS SELECT 1 AS x; SELECT x + 1 AS y FROM a;")
            .unwrap();
        assert_eq!(shell.type_in(&format!("\\i {script}")), "y\n2\n");
        assert!(shell.type_in("\\i none.sql").starts_with("error: script `none.sql`"));
        let file = path("rows.csv");
        std::fs::write(&file, "id,x\n1,0.5\n2,1.5\n").unwrap();
        let create = format!(
            "CREATE EXTERNAL TABLE given STORED AS CSV LOCATION '{file}' OPTIONS ('format.has_header' 'true')"
        );
        shell.type_in(&create);
        assert_eq!(shell.type_in("SELECT sum(x) AS s FROM given"), "s\n2.0\n");
        assert_eq!(shell.type_in("SELECT id FROM given WHERE id > 5"), "id\n");
    }
}
