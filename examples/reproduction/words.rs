//! NaiBX on words, with what the published program does otherwise changed one by one.
//!
//! An implementation of its own, for words and for nothing else: "as `naibx`" stands beside the
//! figures of the crate and agrees with them, so that what moves the others is what is changed here.

use crate::values::each_value;
use crate::{METRICS, SETS, Set, batches_until, line, published, read_set};
use arrow::record_batch::RecordBatch;
use labelflow::Result;
use labelflow::data::{FeatureId, Id, LabelId, LabelSets, Vocabulary};
use labelflow::evaluate::{Dataset, Protocol, Split, Stratify};
use labelflow::metrics::{Metric, SetMetrics};
use std::path::Path;

/// How words tell of a group of rows.
#[derive(Clone, Copy)]
enum Words {
    /// Present or absent.
    Bernoulli,
    /// Each occurrence, by its share of the words of the group.
    Multinomial,
    /// Each occurrence, by how many there are for each row of the group: not normalised, so that
    /// frequent groups are favoured.
    PerRow,
}

/// One line of the table.
struct Variant {
    set: &'static str,
    name: &'static str,
    /// Whether it trains on the first nine tenths, whatever is tested.
    published_folds: bool,
    true_size: bool,
    sizes: Words,
    labels: Words,
    /// What is added to the counts of labels, sizes and pairs; words always have 1.
    smoothing: f64,
}

const BINARY: Variant = Variant {
    set: "Enron",
    name: "as `naibx`",
    published_folds: false,
    true_size: false,
    sizes: Words::Bernoulli,
    labels: Words::Bernoulli,
    smoothing: 1.0,
};
const COUNTS: Variant =
    Variant { set: "Business", sizes: Words::Multinomial, labels: Words::Multinomial, ..BINARY };

#[rustfmt::skip]
const VARIANTS: &[Variant] = &[
    BINARY,
    Variant { name: "sizes per row", sizes: Words::PerRow, ..BINARY },
    Variant { name: "published folds", published_folds: true, ..BINARY },
    Variant { name: "published folds, sizes per row", published_folds: true, sizes: Words::PerRow, ..BINARY },
    Variant { name: "published folds, sizes per row, no smoothing of labels", published_folds: true, sizes: Words::PerRow, smoothing: 0.0, ..BINARY },
    Variant { true_size: true, ..BINARY },
    Variant { name: "no smoothing of labels", true_size: true, smoothing: 0.0, ..BINARY },
    Variant { name: "published folds", true_size: true, published_folds: true, ..BINARY },
    Variant { name: "published folds, no smoothing of labels", true_size: true, published_folds: true, smoothing: 0.0, ..BINARY },
    Variant { set: "Bibtex", ..BINARY },
    Variant { set: "Bibtex", name: "sizes per row", sizes: Words::PerRow, ..BINARY },
    COUNTS,
    Variant { name: "sizes per row", sizes: Words::PerRow, ..COUNTS },
    Variant { name: "labels per row", labels: Words::PerRow, ..COUNTS },
    Variant { name: "sizes and labels per row", sizes: Words::PerRow, labels: Words::PerRow, ..COUNTS },
    Variant { true_size: true, ..COUNTS },
    Variant { name: "labels per row", true_size: true, labels: Words::PerRow, ..COUNTS },
];

/// Prints the table.
pub fn table(data: &Path) -> Result<()> {
    println!("| data set | protocol | method | {} |", METRICS.join(" | "));
    println!("|---|---|---|{}", "---|".repeat(METRICS.len()));
    for name in ["Enron", "Bibtex", "Business"] {
        if let Some(set) = SETS.iter().find(|set| set.files.2 == name) {
            lines_of(data, set)?;
        }
    }
    Ok(())
}

fn lines_of(data: &Path, set: &Set) -> Result<()> {
    let (directory, file, name) = set.files;
    let batches = read_set(data, directory, file)?;
    let dataset = Dataset::try_new(name, &batches, "labels")?;
    let rows = Table::read(&batches, &dataset)?;
    let protocol = match set.hold_out {
        Some(train) => Protocol::HoldOut { train, repeats: 1 },
        None => Protocol::folds(10),
    };
    let honest = protocol.splits(dataset.truth(), Stratify::None, 1)?;
    let first: usize =
        batches_until(&batches, dataset.len() * 9 / 10).iter().map(RecordBatch::num_rows).sum();
    let all = 0..dataset.len() as u32;
    let seen = [Split { train: all.clone().take(first).collect(), test: all.collect() }];
    for true_size in [false, true] {
        let mut variants =
            VARIANTS.iter().filter(|v| v.set == name && v.true_size == true_size).peekable();
        if let (Some(figures), Some(_)) = (&set.published, variants.peek()) {
            let (method, figures) = match true_size {
                false => ("paper, NaiBX", &figures.0),
                true => ("paper, true size", &figures.1),
            };
            line(name, &protocol, method, &published(figures));
        }
        for variant in variants {
            let splits = if variant.published_folds { &seen[..] } else { &honest };
            let size = if true_size { ", true size" } else { "" };
            let method = format!("{}{size}", variant.name);
            line(name, &protocol, &method, &figures(&rows, &dataset, variant, splits)?);
        }
    }
    Ok(())
}

/// Mean and standard deviation of every metric over rounds.
fn figures(
    rows: &Table,
    dataset: &Dataset,
    variant: &Variant,
    splits: &[Split],
) -> Result<Vec<String>> {
    let mut rounds = Vec::new();
    for split in splits {
        let model = Model::new(rows, &split.train, variant);
        let mut sets = SetMetrics::default();
        for &row in &split.test {
            let truth = dataset.truth().row(row as usize);
            let given = variant.true_size.then_some(truth.len());
            sets.observe(truth, &model.predict(&rows.words[row as usize], given));
        }
        let value = |metric: &&str| -> Result<f64> {
            let value = sets.value(metric.parse::<Metric>()?, Some(dataset.universe().len()));
            Ok(value.unwrap_or(f64::NAN))
        };
        rounds.push(METRICS.iter().map(value).collect::<Result<Vec<f64>>>()?);
    }
    let n = rounds.len() as f64;
    let summary = |m: usize| {
        let mean = rounds.iter().map(|round| round[m]).sum::<f64>() / n;
        let squares: f64 = rounds.iter().map(|round| (round[m] - mean).powi(2)).sum();
        format!("{mean:.3} ± {:.3}", (squares / (n - 1.0).max(1.0)).sqrt())
    };
    Ok((0..METRICS.len()).map(summary).collect())
}

/// Rows of words and their labels.
struct Table {
    /// The words of each row and how often they occur.
    words: Vec<Vec<(FeatureId, f64)>>,
    sets: LabelSets,
    vocabulary: usize,
    labels: usize,
}

impl Table {
    fn read(batches: &[RecordBatch], dataset: &Dataset) -> Result<Table> {
        let mut names = Vocabulary::default();
        let mut words: Vec<Vec<(FeatureId, f64)>> = Vec::new();
        for batch in batches {
            let start = words.len();
            words.resize(start + batch.num_rows(), Vec::new());
            each_value(batch, &mut names, |row, word, n| words[start + row].push((word, n)))?;
        }
        words.iter_mut().for_each(|row| row.retain(|(_, n)| *n != 0.0));
        let (sets, labels) = (dataset.truth().clone(), dataset.universe().len());
        Ok(Table { words, sets, vocabulary: names.len(), labels })
    }
}

/// What is known of some rows.
#[derive(Clone)]
struct Group {
    rows: f64,
    words: f64,
    counts: Vec<f64>,
}

impl Group {
    fn add(&mut self, row: &[(FeatureId, f64)]) {
        self.rows += 1.0;
        for &(word, n) in row {
            self.words += n;
            self.counts[word.index()] += n;
        }
    }
}

/// Evidence of words for a group.
struct Evidence {
    /// What a row without words says.
    none: f64,
    /// What each occurrence of a word adds.
    words: Vec<f64>,
}

impl Evidence {
    /// `all` has all rows: words that none of them has are not known, and say nothing.
    fn new(words: Words, group: &Group, all: &Group) -> Self {
        let rows = group.rows;
        let choices = all.counts.iter().filter(|n| **n > 0.0).count() as f64;
        let each = |f: &dyn Fn(f64) -> f64| {
            let counts = group.counts.iter().zip(&all.counts);
            counts.map(|(&n, &all)| if all > 0.0 { f(n) } else { 0.0 }).collect()
        };
        match words {
            Words::Bernoulli => {
                let absent = |n: &f64| ((rows - n + 1.0) / (rows + 2.0)).ln();
                let odds = |n: f64| ((n + 1.0) / (rows - n + 1.0)).ln();
                Evidence { none: group.counts.iter().map(absent).sum(), words: each(&odds) }
            }
            Words::Multinomial => {
                let share = |n: f64| ((n + 1.0) / (group.words + choices)).ln();
                Evidence { none: 0.0, words: each(&share) }
            }
            Words::PerRow => {
                let rate = |n: f64| ((n + 1.0) / (rows + choices)).ln();
                Evidence { none: 0.0, words: each(&rate) }
            }
        }
    }

    fn of(&self, row: &[(FeatureId, f64)]) -> f64 {
        self.none + row.iter().map(|&(word, n)| n * self.words[word.index()]).sum::<f64>()
    }
}

/// The size first, then labels one by one (Eq. 9), in logarithms.
struct Model {
    /// The sizes that were seen, with their frequency and evidence.
    sizes: Vec<(usize, f64, Evidence)>,
    /// The labels with their frequency and evidence.
    labels: Vec<(f64, Evidence)>,
    /// By label and then by size: ln P(size | label).
    size_of: Vec<Vec<f64>>,
    /// By label and then by the label that was picked: ln P(picked | label).
    with: Vec<Vec<f64>>,
}

impl Model {
    fn new(rows: &Table, train: &[u32], variant: &Variant) -> Self {
        let none = Group { rows: 0.0, words: 0.0, counts: vec![0.0; rows.vocabulary] };
        let largest = rows.sets.iter().map(<[LabelId]>::len).max().unwrap_or(0);
        let mut sizes = vec![none.clone(); largest + 1];
        let mut labels = vec![none.clone(); rows.labels];
        let mut all = none;
        let mut size_of = vec![vec![0.0; largest + 1]; rows.labels];
        let mut with = vec![vec![0.0; rows.labels]; rows.labels];
        for &row in train {
            let (words, set) = (&rows.words[row as usize], rows.sets.row(row as usize));
            all.add(words);
            sizes[set.len()].add(words);
            for y in set {
                labels[y.index()].add(words);
                size_of[y.index()][set.len()] += 1.0;
                for other in set.iter().filter(|other| *other != y) {
                    with[y.index()][other.index()] += 1.0;
                }
            }
        }
        let total = train.len() as f64;
        let seen = sizes.iter().filter(|size| size.rows > 0.0).count() as f64;
        let share = |n: f64, of: f64, choices: f64| match n + variant.smoothing {
            0.0 => f64::NEG_INFINITY,
            n => (n / (of + variant.smoothing * choices)).ln(),
        };
        let l = rows.labels as f64;
        for (y, label) in labels.iter().enumerate() {
            size_of[y].iter_mut().for_each(|n| *n = share(*n, label.rows, seen));
            with[y].iter_mut().for_each(|n| *n = share(*n, label.rows, l - 1.0));
        }
        let size = |(m, group): (usize, &Group)| {
            (m, share(group.rows, total, seen), Evidence::new(variant.sizes, group, &all))
        };
        let label = |group: &Group| {
            (share(group.rows, total, l), Evidence::new(variant.labels, group, &all))
        };
        let sizes = sizes.iter().enumerate().filter(|(_, size)| size.rows > 0.0).map(size);
        let (sizes, labels) = (sizes.collect(), labels.iter().map(label).collect());
        Model { sizes, labels, size_of, with }
    }

    fn predict(&self, row: &[(FeatureId, f64)], given: Option<usize>) -> Vec<LabelId> {
        let by_size = self.sizes.iter().map(|(m, prior, words)| (*m, prior + words.of(row)));
        let most_probable =
            || by_size.reduce(|best, next| if next.1 > best.1 { next } else { best });
        let size = given.or_else(|| most_probable().map(|best| best.0)).unwrap_or(0);
        let mut scores: Vec<f64> = self.labels.iter().map(|(n, words)| n + words.of(row)).collect();
        for (score, sizes) in scores.iter_mut().zip(&self.size_of) {
            *score += sizes[size];
        }
        let mut set = Vec::new();
        for _ in 0..size {
            let mut best = (f64::NEG_INFINITY, None);
            for (y, &score) in scores.iter().enumerate() {
                if score > best.0 {
                    best = (score, Some(y));
                }
            }
            // What smoothing does not allow for may leave no label.
            let Some(picked) = best.1 else { break };
            set.push(LabelId::new(picked));
            scores[picked] = f64::NEG_INFINITY;
            scores.iter_mut().zip(&self.with).for_each(|(score, with)| *score += with[picked]);
        }
        set.sort_unstable();
        set
    }
}
