//! Patterns of names.

use std::fmt;

/// A name in which `*` stands for any characters.
///
/// # Examples
///
/// ```
/// use labelflow::data::Pattern;
///
/// assert!(Pattern::new("word_*").matches("word_rust"));
/// assert!(!Pattern::new("word").matches("word_rust"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// The pattern `text`.
    pub fn new(text: impl Into<String>) -> Self {
        Pattern(text.into())
    }

    /// Whether it can match more than one name.
    pub fn is_open(&self) -> bool {
        self.0.contains('*')
    }

    /// Whether the whole of `name` matches.
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(first) = parts.next() else { return false };
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let parts: Vec<&str> = parts.collect();
        let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
        for part in middle {
            match rest.find(part) {
                Some(at) => rest = &rest[at + part.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_match() {
        for (pattern, name) in
            [("a", "a"), ("w_*", "w_1"), ("*", ""), ("*_x", "a_x"), ("a*b*c", "a1b2c")]
        {
            assert!(Pattern::new(pattern).matches(name), "{pattern} {name}");
        }
        for (pattern, name) in
            [("a", "ab"), ("w_*", "v_1"), ("a*b*c", "acb"), ("*b", "ba"), ("a*a", "a")]
        {
            assert!(!Pattern::new(pattern).matches(name), "{pattern} {name}");
        }
    }
}
