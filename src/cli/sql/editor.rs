//! One line of a terminal: typing, moving, and what was typed before.

use super::history::History;
use console::{Key, Term, measure_text_width};
use std::io;

/// What a key did.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// The line goes on.
    More,
    /// The line is complete.
    Done(String),
    /// The line is given up (Ctrl-C).
    Cancelled,
    /// There is nothing more to come (Ctrl-D on an empty line).
    End,
}

/// A line being typed.
#[derive(Debug, Default)]
pub(super) struct Line {
    chars: Vec<char>,
    cursor: usize,
    /// How many entries back in the history; 0 is what is typed now.
    back: usize,
    typed: Vec<char>,
}

impl Line {
    /// Does what `key` says.
    pub(super) fn press(&mut self, key: Key, history: &History) -> Step {
        match key {
            Key::Enter => return Step::Done(self.text()),
            Key::CtrlC => return Step::Cancelled,
            Key::Char('\u{4}') if self.chars.is_empty() => return Step::End,
            Key::Char('\u{1}') | Key::Home => self.cursor = 0,
            Key::Char('\u{5}') | Key::End => self.cursor = self.chars.len(),
            Key::Char('\u{b}') => self.chars.truncate(self.cursor),
            Key::Char('\u{15}') => {
                self.chars.drain(..self.cursor);
                self.cursor = 0;
            }
            Key::Char('\u{17}') => self.delete_word(),
            Key::ArrowLeft => self.cursor = self.cursor.saturating_sub(1),
            Key::ArrowRight => self.cursor = (self.cursor + 1).min(self.chars.len()),
            Key::ArrowUp => self.recall(self.back + 1, history),
            Key::ArrowDown if self.back > 0 => self.recall(self.back - 1, history),
            Key::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.chars.remove(self.cursor);
            }
            Key::Del | Key::Char('\u{4}') if self.cursor < self.chars.len() => {
                self.chars.remove(self.cursor);
            }
            Key::Tab => "  ".chars().for_each(|c| self.insert(c)),
            Key::Char(c) if !c.is_control() => self.insert(c),
            _ => {}
        }
        Step::More
    }

    fn insert(&mut self, c: char) {
        self.chars.insert(self.cursor, c);
        self.cursor += 1;
    }

    fn delete_word(&mut self) {
        let before = &self.chars[..self.cursor];
        let word = before.iter().rposition(|c| !c.is_whitespace()).map_or(0, |end| {
            before[..end].iter().rposition(|c| c.is_whitespace()).map_or(0, |space| space + 1)
        });
        self.chars.drain(word..self.cursor);
        self.cursor = word;
    }

    /// Shows the entry `back` places back in the history.
    fn recall(&mut self, back: usize, history: &History) {
        if self.back == 0 {
            self.typed = self.chars.clone();
        }
        if back == 0 {
            self.chars = self.typed.clone();
        } else if let Some(at) = history.entries.len().checked_sub(back) {
            // A statement of several lines comes back as one.
            self.chars = history.entries[at].replace('\n', " ").chars().collect();
        } else {
            return;
        }
        self.back = back;
        self.cursor = self.chars.len();
    }

    fn text(&self) -> String {
        self.chars.iter().collect()
    }

    /// The part of the line that fits into `width` columns, and the column of the cursor in it.
    fn visible(&self, width: usize) -> (String, usize) {
        let width = width.max(8);
        let before: String = self.chars[..self.cursor].iter().collect();
        let mut start = 0;
        let mut column = measure_text_width(&before);
        while column >= width && start < self.cursor {
            column -= measure_text_width(&self.chars[start].to_string());
            start += 1;
        }
        let mut shown = String::new();
        for c in &self.chars[start..] {
            if measure_text_width(&shown) + measure_text_width(&c.to_string()) >= width {
                break;
            }
            shown.push(*c);
        }
        (shown, column)
    }
}

/// Reads a line from the terminal, which shows `prompt` before it.
pub(super) fn read_line(term: &Term, prompt: &str, history: &History) -> io::Result<Step> {
    let mut line = Line::default();
    loop {
        let (_, columns) = term.size();
        let room = usize::from(columns).saturating_sub(prompt.len() + 1);
        let (shown, column) = line.visible(room);
        term.write_str(&format!("\r\u{1b}[K{prompt}{shown}\r"))?;
        term.move_cursor_right(prompt.len() + column)?;
        match line.press(term.read_key_raw()?, history) {
            Step::More => {}
            step => {
                term.write_line("")?;
                return Ok(step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[Key]) -> (String, usize) {
        let mut history = History::default();
        history.add("SELECT 1;");
        history.add("SELECT 2\nFROM t;");
        let mut line = Line::default();
        for key in keys {
            assert_eq!(line.press(key.clone(), &history), Step::More);
        }
        (line.text(), line.cursor)
    }

    fn chars(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn a_line_is_edited() {
        let mut keys = chars("SELCT 1");
        keys.extend(vec![Key::ArrowLeft; 4]);
        keys.push(Key::Char('E'));
        keys.extend([Key::End, Key::Backspace, Key::Char('2')]);
        assert_eq!(typed(&keys), ("SELECT 2".into(), 8));
        keys.extend([Key::Home, Key::Del, Key::Char('s')]);
        assert_eq!(typed(&keys), ("sELECT 2".into(), 1));
        keys.push(Key::Char('\u{b}'));
        assert_eq!(typed(&keys), ("s".into(), 1));
        let mut words = chars("SELECT one two");
        words.push(Key::Char('\u{17}'));
        assert_eq!(typed(&words), ("SELECT one ".into(), 11));
    }

    #[test]
    fn the_history_is_walked_and_left_again() {
        let mut keys = chars("new");
        keys.push(Key::ArrowUp);
        assert_eq!(typed(&keys).0, "SELECT 2 FROM t;");
        keys.extend([Key::ArrowUp, Key::ArrowUp]);
        assert_eq!(typed(&keys).0, "SELECT 1;");
        keys.extend([Key::ArrowDown, Key::ArrowDown]);
        assert_eq!(typed(&keys).0, "new");
    }

    #[test]
    fn lines_end() {
        let history = History::default();
        let mut line = Line::default();
        assert_eq!(line.press(Key::Char('\u{4}'), &history), Step::End);
        assert_eq!(line.press(Key::Char('ü'), &history), Step::More);
        assert_eq!(line.press(Key::CtrlC, &history), Step::Cancelled);
        assert_eq!(line.press(Key::Enter, &history), Step::Done("ü".into()));
    }

    #[test]
    fn a_long_line_moves_with_the_cursor() {
        let mut line = Line::default();
        let history = History::default();
        for key in chars("0123456789abcdefghij") {
            line.press(key, &history);
        }
        assert_eq!(line.visible(12), ("9abcdefghij".into(), 11));
        line.press(Key::Home, &history);
        assert_eq!(line.visible(12), ("0123456789a".into(), 0));
    }
}
