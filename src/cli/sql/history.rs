//! What was typed before, kept in a file.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// The most entries that are read back.
const MOST: usize = 1000;

/// Entries, the oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) entries: Vec<String>,
    file: Option<PathBuf>,
}

impl History {
    /// The history in `file`; empty when there is none.
    pub(super) fn open(file: Option<PathBuf>) -> Self {
        let text = file.as_ref().and_then(|f| std::fs::read_to_string(f).ok());
        let mut entries: Vec<String> = text.iter().flat_map(|t| t.lines()).map(unescape).collect();
        entries.drain(..entries.len().saturating_sub(MOST));
        History { entries, file }
    }

    /// The file of this user: `LABELFLOW_HISTORY`, or one in the home directory.
    pub(super) fn of_user() -> Self {
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".labelflow_history"));
        History::open(std::env::var_os("LABELFLOW_HISTORY").map(PathBuf::from).or_else(home))
    }

    /// Adds an entry, unless it is empty or the same as the last.
    pub(super) fn add(&mut self, entry: &str) {
        let entry = entry.trim();
        if entry.is_empty() || self.entries.last().is_some_and(|last| last == entry) {
            return;
        }
        self.entries.push(entry.to_string());
        if let Some(file) = &self.file {
            // A history that cannot be kept is no reason to stop.
            let opened = OpenOptions::new().create(true).append(true).open(file);
            let _ = opened.and_then(|mut f| writeln!(f, "{}", escape(entry)));
        }
    }
}

/// One line for an entry of several.
fn escape(entry: &str) -> String {
    entry.replace('\\', "\\\\").replace('\n', "\\n")
}

fn unescape(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => {}
            },
            (c, false) => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("history");
        let mut history = History::open(Some(file.clone()));
        for entry in ["SELECT 1;", "SELECT 1;", "SELECT 'a\\n'\nFROM t;", "  "] {
            history.add(entry);
        }
        let again = History::open(Some(file));
        assert_eq!(again.entries, ["SELECT 1;", "SELECT 'a\\n'\nFROM t;"]);
    }
}
