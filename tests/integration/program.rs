//! The program in a directory of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A temporary directory in which commands run.
pub(crate) struct Workplace {
    dir: TempDir,
}

impl Workplace {
    pub(crate) fn new() -> Self {
        Workplace { dir: tempfile::tempdir().unwrap() }
    }

    /// One with `t.parquet`: 200 rows, features f0 to f3, 5 labels.
    pub(crate) fn with_data() -> Self {
        let place = Workplace::new();
        place.ok(&split("generate --rows 200 --features 4 --labels 5 --seed 3 t.parquet"));
        place
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The names of the files in `directory`, sorted.
    pub(crate) fn files(&self, directory: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(directory)).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let program = env!("CARGO_BIN_EXE_labelflow");
        Command::new(program).args(arguments).current_dir(self.dir()).output().unwrap()
    }

    /// What a command that works prints.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "labelflow {arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The rows of a query, one line of comma-separated values each, without the head.
    pub(crate) fn rows(&self, query: &str) -> Vec<String> {
        let text = self.ok(&["sql", query, "--format", "csv"]);
        text.lines().skip(1).map(str::to_string).collect()
    }

    /// The objects a command prints, one a line.
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<serde_json::Value> {
        let text = self.ok(arguments);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Exit code and message of a command that fails; notes before the message are left out.
    pub(crate) fn failure(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        let code = output.status.code().unwrap();
        assert_ne!(code, 0, "labelflow {arguments:?} works");
        assert!(output.stdout.is_empty(), "labelflow {arguments:?} fails and prints a result");
        let lines: Vec<&str> = errors.lines().filter(|l| !l.starts_with("note: ")).collect();
        (code, lines.join("\n"))
    }
}

/// Words at spaces; what needs quotes is given as a slice instead.
pub(crate) fn split(arguments: &str) -> Vec<&str> {
    arguments.split_whitespace().collect()
}
