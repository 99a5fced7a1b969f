//! Algorithm specs: the one string that names an algorithm and its parameters everywhere.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The most characters a spec may have.
const MAX_LEN: usize = 4096;
/// How deep calls may be nested.
const MAX_DEPTH: usize = 8;
/// The most specs that a spec with ranges may stand for.
const MAX_VALUES: usize = 10_000;

/// A parsed spec such as `naibx`, `mlknn(k=10)` or `pacc(base=logistic, features=ldf)`.
///
/// # Examples
///
/// ```
/// use labelflow::models::Spec;
///
/// let spec: Spec = " naibx( size = given(n) ,smoothing=0.5) ".parse().unwrap();
/// assert_eq!(spec.to_string(), "naibx(size=given(n), smoothing=0.5)");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// The name of the algorithm or option.
    pub name: String,
    /// Arguments in the order typed, with their names where given.
    pub args: Vec<(Option<String>, Value)>,
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A number with a fraction or exponent.
    Float(f64),
    /// A word, or a text in quotes.
    Word(String),
    /// Whole numbers from the first to the second, both included: `1..30`.
    Range(i64, i64),
    /// A word with arguments.
    Call(Spec),
}

impl Spec {
    /// The specs that a spec with ranges, its own or those of a value, stands for, in ascending
    /// order; itself without ranges.
    pub fn expand(&self) -> Vec<Spec> {
        let mut all = vec![Spec { name: self.name.clone(), args: Vec::new() }];
        for (name, value) in &self.args {
            let values = value.expand();
            let with = |spec: &Spec, value: &Value| {
                let mut spec = spec.clone();
                spec.args.push((name.clone(), value.clone()));
                spec
            };
            all = all.iter().flat_map(|spec| values.iter().map(|v| with(spec, v))).collect();
        }
        all
    }

    /// How many specs this stands for.
    fn expanded_len(&self) -> usize {
        let len = |(_, value): &(Option<String>, Value)| match value {
            Value::Range(low, high) => range_len(*low, *high),
            Value::Call(spec) => spec.expanded_len(),
            _ => 1,
        };
        self.args.iter().map(len).fold(1, usize::saturating_mul)
    }
}

impl Value {
    fn expand(&self) -> Vec<Value> {
        match self {
            Value::Range(low, high) => (*low..=*high).map(Value::Int).collect(),
            Value::Call(spec) => spec.expand().into_iter().map(Value::Call).collect(),
            other => vec![other.clone()],
        }
    }

    /// Whether it is a range, or holds one.
    pub(super) fn has_range(&self) -> bool {
        match self {
            Value::Range(..) => true,
            Value::Call(spec) => spec.args.iter().any(|(_, value)| value.has_range()),
            _ => false,
        }
    }

    /// The number this is, if it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(x) => Some(*x),
            _ => None,
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_word(f, &self.name)?;
        if self.args.is_empty() {
            return Ok(());
        }
        f.write_str("(")?;
        for (i, (name, value)) in self.args.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            if let Some(name) = name {
                write_word(f, name)?;
                f.write_str("=")?;
            }
            write!(f, "{value}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(n) => write!(f, "{n}"),
            Value::Float(x) => write!(f, "{x}"),
            Value::Word(word) => write_word(f, word),
            Value::Range(a, b) => write!(f, "{a}..{b}"),
            Value::Call(spec) => write!(f, "{spec}"),
        }
    }
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn write_word(f: &mut fmt::Formatter<'_>, word: &str) -> fmt::Result {
    let plain =
        word.chars().all(is_word_char) && word.chars().next().is_some_and(|c| !c.is_numeric());
    if plain { f.write_str(word) } else { write!(f, "\"{}\"", word.replace('"', "\"\"")) }
}

impl FromStr for Spec {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let too_long = || Error::usage(format!("a spec has at most {MAX_LEN} characters"));
        if text.len() > MAX_LEN {
            return Err(too_long());
        }
        let mut parser = Parser { text, at: 0 };
        let spec = parser.spec(0)?;
        parser.skip();
        if parser.at < text.len() {
            return Err(parser.error("expected the end"));
        }
        if spec.expanded_len() > MAX_VALUES {
            return Err(Error::usage(format!(
                "spec `{text}`: its ranges stand for more than {MAX_VALUES} specs: make them smaller"
            )));
        }
        // It is stored as it prints, with blanks after commas, and read back from that.
        if spec.to_string().len() > MAX_LEN {
            return Err(too_long());
        }
        Ok(spec)
    }
}

/// How many values there are from `low` to `high`; 0 when there are none or too many.
fn range_len(low: i64, high: i64) -> usize {
    let len = high.checked_sub(low).and_then(|len| usize::try_from(len).ok());
    len.filter(|len| *len < MAX_VALUES).map_or(0, |len| len + 1)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn error(&self, what: &str) -> Error {
        Error::usage(format!(
            "spec `{}`: {what} at character {}; write it like `name(parameter=value, ...)`",
            self.text,
            self.text[..self.at].chars().count() + 1
        ))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip(&mut self) {
        while let Some(c) = self.peek().filter(|c| c.is_whitespace()) {
            self.at += c.len_utf8();
        }
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.skip();
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn word(&mut self) -> Result<String> {
        self.skip();
        if let Some(quote) = self.peek().filter(|c| matches!(c, '"' | '\'')) {
            self.at += 1;
            let mut word = String::new();
            while let Some(c) = self.peek() {
                self.at += c.len_utf8();
                if c != quote {
                    word.push(c);
                } else if self.peek() == Some(quote) {
                    self.at += 1;
                    word.push(quote);
                } else {
                    return Ok(word);
                }
            }
            return Err(self.error("expected a closing quote"));
        }
        let start = self.at;
        while let Some(c) = self.peek().filter(|c| is_word_char(*c)) {
            self.at += c.len_utf8();
        }
        let word = &self.text[start..self.at];
        if word.is_empty() { Err(self.error("expected a name")) } else { Ok(word.to_string()) }
    }

    fn spec(&mut self, depth: usize) -> Result<Spec> {
        let name = self.word()?;
        if name.chars().next().is_some_and(char::is_numeric) {
            return Err(self.error("expected a name, not a number"));
        }
        Ok(Spec { name, args: self.args(depth)? })
    }

    fn args(&mut self, depth: usize) -> Result<Vec<(Option<String>, Value)>> {
        let mut args = Vec::new();
        if !self.eat('(') {
            return Ok(args);
        }
        if depth >= MAX_DEPTH {
            return Err(self.error("too many nested calls"));
        }
        if self.eat(')') {
            return Ok(args);
        }
        loop {
            let value = self.value(depth)?;
            if self.eat('=') {
                let Value::Word(name) = value else {
                    return Err(self.error("expected the name of a parameter before `=`"));
                };
                if args.iter().any(|(n, _)| n.as_deref() == Some(&name)) {
                    return Err(self.error(&format!("parameter `{name}` stands twice")));
                }
                args.push((Some(name), self.value(depth)?));
            } else {
                args.push((None, value));
            }
            if self.eat(')') {
                return Ok(args);
            }
            if !self.eat(',') {
                return Err(self.error("expected `,` or `)`"));
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        self.skip();
        if self.peek().is_some_and(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) {
            return self.number();
        }
        let word = self.word()?;
        self.skip();
        if self.peek() == Some('(') {
            let args = self.args(depth + 1)?;
            return Ok(Value::Call(Spec { name: word, args }));
        }
        Ok(Value::Word(word))
    }

    fn number(&mut self) -> Result<Value> {
        let start = self.at;
        let mut range = None;
        while let Some(c) = self.peek() {
            if self.text[self.at..].starts_with("..") && range.is_none() {
                range = Some(self.at);
                self.at += 2;
                continue;
            }
            let exponent = matches!(self.text[start..self.at].chars().last(), Some('e' | 'E'));
            let sign = matches!(c, '-' | '+') && (self.at == start || exponent);
            if !(c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E') || sign) {
                break;
            }
            self.at += c.len_utf8();
        }
        let text = &self.text[start..self.at];
        if let Some(range) = range {
            let (low, high) = (&self.text[start..range], &self.text[range + 2..self.at]);
            return match (low.parse(), high.parse()) {
                (Ok(low), Ok(high)) if range_len(low, high) > 0 => Ok(Value::Range(low, high)),
                _ => Err(self.error(&format!("`{text}` is no range of whole numbers"))),
            };
        }
        if let Ok(n) = text.parse() {
            return Ok(Value::Int(n));
        }
        match text.parse::<f64>() {
            // No negative zero: it prints as `-0`, which is a whole number.
            Ok(x) if x.is_finite() => Ok(Value::Float(x + 0.0)),
            _ => Err(self.error(&format!("`{text}` is no number"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        text.parse::<Spec>().map_or_else(|e| format!("error: {e}"), |s| s.to_string())
    }

    #[test]
    fn specs_print_as_they_are_read() {
        for text in
            ["naibx", "mlknn(k=10)", "a(b=c(1, 2.5), d=1..30)", "a(size=given(\"n labels\"))"]
        {
            assert_eq!(canonical(text), text);
        }
        assert_eq!(canonical(" a ( k = -3 , x = 1e-3 ) "), "a(k=-3, x=0.001)");
        assert_eq!(canonical("a(x=-0e3)"), "a(x=0)");
        assert_eq!(canonical("a()"), "a");
        assert_eq!(canonical("a(\" b\"=1)"), "a(\" b\"=1)");
    }

    #[test]
    fn errors_say_where() {
        assert!(canonical("a(k=").contains("expected a name at character 5"));
        assert!(canonical("a(k=1").contains("expected `,` or `)`"));
        assert!(canonical("a(k=1, k=2)").contains("`k` stands twice"));
        assert!(canonical("7").contains("not a number"));
        assert!(canonical("a b").contains("expected the end"));
        assert!(canonical("a(k=1e999)").contains("no number"));
        let long = format!("a({}0)", "0,".repeat(MAX_LEN / 2 - 3));
        assert!(long.len() <= MAX_LEN && canonical(&long).contains("at most"), "{}", long.len());
        assert!(canonical(&"a(b=".repeat(50)).contains("too many nested calls"));
    }

    #[test]
    fn ranges_expand() {
        let spec: Spec = "a(k=1..3)".parse().unwrap();
        let all: Vec<String> = spec.expand().iter().map(Spec::to_string).collect();
        assert_eq!(all, ["a(k=1)", "a(k=2)", "a(k=3)"]);
        let spec: Spec = "a(b=c(k=1..2), s=7..8, t=u)".parse().unwrap();
        let all: Vec<String> = spec.expand().iter().map(Spec::to_string).collect();
        let expected = [
            "a(b=c(k=1), s=7, t=u)",
            "a(b=c(k=1), s=8, t=u)",
            "a(b=c(k=2), s=7, t=u)",
            "a(b=c(k=2), s=8, t=u)",
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn ranges_are_bounded() {
        assert_eq!(canonical("a(k=1..10000)"), "a(k=1..10000)");
        for range in
            ["a(k=1..10001)", "a(k=-9223372036854775808..9223372036854775807)", "a(k=2..1)"]
        {
            assert!(canonical(range).contains("is no range of whole numbers"), "{range}");
        }
        assert_eq!("a(k=1..100, s=1..100)".parse::<Spec>().unwrap().expand().len(), 10_000);
        for many in ["a(k=1..100, s=1..101)", "a(b=c(k=1..100), d=e(f=g(s=1..101)))"] {
            let error = canonical(many);
            assert!(error.contains("its ranges stand for more than 10000 specs"), "{error}");
        }
    }
}
