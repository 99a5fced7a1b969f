//! Tag raw text: words become tokens, tokens are the features, tags are the labels.
//!
//! In SQL the same is `train_labels('naibx', tags, string_to_array(lower(text), ' '))`.

use arrow::array::{ArrayRef, AsArray, ListBuilder, StringBuilder};
use labelflow::models::{Registry, Trainer};
use std::sync::Arc;

const POSTS: &[(&str, &[&str])] = &[
    ("The borrow checker rejects this closure", &["rust"]),
    ("How do I join two Parquet tables in a query?", &["sql", "arrow"]),
    ("Lifetime of a reference in an async closure", &["rust", "async"]),
    ("Group by and window functions in one query", &["sql"]),
    ("Reading Parquet record batches from Rust", &["rust", "arrow"]),
    ("Cancel an async task when the future is dropped", &["async"]),
    ("A record batch with a dictionary column", &["arrow"]),
    ("Why does the borrow checker move my reference?", &["rust"]),
    ("Left join gives more rows than the table has", &["sql"]),
    ("Await a future inside of a closure", &["rust", "async"]),
    ("Sum over a window of rows in a query", &["sql"]),
    ("Spawn an async task for every batch", &["async", "arrow"]),
];

/// Words of letters, in lower case, without the most common ones.
fn words(text: &str) -> impl Iterator<Item = String> {
    const COMMON: &[&str] = &["a", "an", "the", "of", "in", "and", "do", "i", "is", "my", "this"];
    text.split(|c: char| !c.is_alphanumeric())
        .map(str::to_lowercase)
        .filter(|word| !word.is_empty() && !COMMON.contains(&word.as_str()))
}

/// A column of lists of texts.
fn lists<R: Iterator<Item = String>>(rows: impl Iterator<Item = R>) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    rows.for_each(|row| lists.append_value(row.map(Some)));
    Arc::new(lists.finish())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tokens = lists(POSTS.iter().map(|(text, _)| words(text)));
    let tags = lists(POSTS.iter().map(|(_, tags)| tags.iter().map(ToString::to_string)));
    let mut trainer = Trainer::try_new(&Registry::default(), "naibx(event=bernoulli)")?;
    trainer.observe(&tags, &tokens)?;
    let model = trainer.finish()?;
    println!("{} tags, {} words", model.space().labels.len(), model.space().features.len());

    // Words that were never seen are left out; new posts need no preparation.
    let new = [
        ("Closure borrows a reference: lifetime trouble with zebras", "rust"),
        ("Query with a window and a join", "sql"),
        ("Parquet batch with a dictionary", "arrow"),
    ];
    let top = model.top(&lists(new.iter().map(|(text, _)| words(text))), 2)?;
    for (row, (text, expected)) in new.iter().enumerate() {
        let best = top.value(row);
        let best: Vec<&str> = best.as_string::<i32>().iter().flatten().collect();
        println!("{text}: {}", best.join(", "));
        assert_eq!(best[0], *expected);
    }
    Ok(())
}
