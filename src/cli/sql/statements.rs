//! Where a statement ends in what was typed so far.

/// The length of the first statement of `text` with its semicolon; `None` when it goes on.
///
/// Semicolons in quotes, comments and dollar-quoted texts do not end it.
pub(super) fn first_statement(text: &str) -> Option<usize> {
    let mut rest = text;
    loop {
        let at = rest.find([';', '\'', '"', '-', '/', '$'])?;
        let here = &rest[at..];
        let skip = match here.as_bytes()[0] {
            b';' => return Some(text.len() - here.len() + 1),
            quote @ (b'\'' | b'"') => 2 + here[1..].find(quote as char)?,
            b'-' if here.starts_with("--") => here.find('\n')? + 1,
            b'/' if here.starts_with("/*") => here.find("*/")? + 2,
            b'$' => dollar_quoted(here)?,
            _ => 1,
        };
        rest = &here[skip..];
    }
}

/// The length of a text between `$tag$` and `$tag$`; 1 when this is another dollar sign.
fn dollar_quoted(text: &str) -> Option<usize> {
    let is_tag = |c: char| c.is_alphanumeric() || c == '_';
    let Some(end) = text[1..].find(|c| !is_tag(c)).filter(|&end| text[1 + end..].starts_with('$'))
    else {
        return Some(1);
    };
    let tag = &text[..end + 2];
    // A parameter such as $1 followed by another is no tag.
    if end > 0 && text.as_bytes()[1].is_ascii_digit() {
        return Some(1);
    }
    Some(2 * tag.len() + text[tag.len()..].find(tag)?)
}

#[cfg(test)]
mod tests {
    use super::first_statement;

    #[test]
    fn semicolons_in_quotes_and_comments_do_not_count() {
        let cases = [
            ("SELECT 1;", Some(9)),
            ("SELECT 1; SELECT 2;", Some(9)),
            ("SELECT ';'", None),
            ("SELECT ';';", Some(11)),
            ("SELECT 'it''s;';", Some(16)),
            ("SELECT \"a;b\";", Some(13)),
            ("SELECT 1 -- no;", None),
            ("SELECT 1 -- no;\n;", Some(17)),
            ("SELECT 1 /* ; */;", Some(17)),
            ("SELECT 4 - 2 / 1;", Some(17)),
            ("SELECT $$;$$;", Some(13)),
            ("SELECT $t$ $$; $t$;", Some(19)),
            ("SELECT $1 + $2;", Some(15)),
            ("SELECT 'open", None),
            ("", None),
        ];
        for (text, end) in cases {
            assert_eq!(first_statement(text), end, "{text}");
        }
    }
}
