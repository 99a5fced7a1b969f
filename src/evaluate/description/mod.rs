//! What a data set is like: rows, features by kind, labels and how they are spread.

mod learner;
#[cfg(test)]
mod tests;

pub use learner::DESCRIBE;

use crate::data::{FeatureKind, Id, LabelId};
use crate::error::{Error, Result};
use crate::models::Model;
use learner::Describer;
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures that papers give of a data set.
///
/// # Definition
///
/// With N labelled rows and L labels, N_y of the rows having label y: cardinality is the mean size of
/// a label set and density is cardinality / L. The imbalance ratio of a label is IR(y) = max N / N_y;
/// `mean_imbalance` is its mean and `imbalance_variation` (CVIR) its standard deviation, with L - 1,
/// over its mean. Labels that never occur have no ratio and are left out of both.
///
/// # Cost
///
/// One pass; memory follows the distinct label sets and the names of features, not the rows.
///
/// # Examples
///
/// ```
/// use arrow::array::{ArrayRef, Float64Array, ListBuilder, StringBuilder, StructArray};
/// use labelflow::evaluate::{DESCRIBE, Description};
/// use labelflow::models::{Registry, Trainer};
/// use std::sync::Arc;
///
/// let x: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 0.1, 5.0]));
/// let features: ArrayRef = Arc::new(StructArray::try_from(vec![("x", x)])?);
/// let mut labels = ListBuilder::new(StringBuilder::new());
/// labels.append_value([Some("rock")]);
/// labels.append_value([Some("rock"), Some("jazz")]);
/// labels.append_value([Some("rock")]);
/// let labels: ArrayRef = Arc::new(labels.finish());
///
/// let mut trainer = Trainer::try_new(&Registry::default().with(DESCRIBE), "describe")?;
/// trainer.observe(&labels, &features)?;
/// let description = Description::try_new(&trainer.finish()?, 2, 10)?;
/// assert_eq!(description.distinct_sets, 2);
/// assert_eq!(description.mean_imbalance, 2.0);
/// assert_eq!(description.pairs[0].rows, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # References
///
/// L. Sun and M. Kudo, "Multi-label classification by polytree-augmented classifier chains with
/// label-dependent features", Pattern Analysis and Applications 22(3), 2019, Eq. 9. F. Charte et al.,
/// "Addressing imbalance in multilabel classification", Neurocomputing 163, 2015.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// Labelled rows.
    pub rows: u64,
    /// Features of each kind: numeric, binary, count, category.
    pub features: BTreeMap<&'static str, usize>,
    /// Labels there can be.
    pub labels: usize,
    /// Labels that occur.
    pub labels_seen: usize,
    /// Mean labels of a row.
    pub cardinality: f64,
    /// Cardinality over the number of labels.
    pub density: f64,
    /// Different label sets, the empty one too.
    pub distinct_sets: usize,
    /// Rows without any label.
    pub empty_sets: u64,
    /// The most labels of a row.
    pub largest_set: usize,
    /// The mean imbalance ratio of the labels.
    pub mean_imbalance: f64,
    /// The coefficient of variation of the imbalance ratios.
    pub imbalance_variation: f64,
    /// The most frequent labels, ties in name order.
    pub most_labels: Vec<Frequent<String>>,
    /// The most frequent pairs of labels, ties in name order.
    pub pairs: Vec<Frequent<[String; 2]>>,
    /// The most frequent label sets, ties in name order.
    pub sets: Vec<Frequent<Vec<String>>>,
}

/// Something that occurs, and in how many rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Frequent<T> {
    /// What occurs.
    pub of: T,
    /// In how many rows.
    pub rows: u64,
}

impl Description {
    /// The description in `model`, which [`DESCRIBE`] has learned, of a data set that has `labels`
    /// labels (or those that occur, if they are more), with the `most` most frequent labels, pairs
    /// and sets.
    ///
    /// # Errors
    ///
    /// A model of another algorithm.
    pub fn try_new(model: &Model, labels: usize, most: usize) -> Result<Self> {
        let Some(Describer { sets }) = model.learner().as_any().downcast_ref() else {
            let name = model.algorithm().name;
            return Err(Error::usage(format!("a model of `{name}` is no description")));
        };
        let vocabulary = &model.space().labels;
        let (mut counts, mut pairs) = (vec![0u64; vocabulary.len()], BTreeMap::new());
        let (mut rows, mut largest) = (0, 0);
        let sets: Vec<(&[LabelId], u64)> =
            sets.entries().into_iter().map(|(set, n)| (set, n as u64)).collect();
        for &(set, n) in &sets {
            rows += n;
            largest = largest.max(set.len());
            for (i, &a) in set.iter().enumerate() {
                counts[a.index()] += n;
                set[i + 1..].iter().for_each(|&b| *pairs.entry((a, b)).or_insert(0) += n);
            }
        }
        let mut features: BTreeMap<&'static str, usize> = BTreeMap::new();
        use FeatureKind::{Binary, Category, Count, Numeric};
        for kind in [Numeric, Binary, Count, Category] {
            features.insert(kind.name(), 0);
        }
        for feature in model.space().features.features() {
            *features.entry(feature.kind.name()).or_default() += 1;
        }
        let labels = labels.max(vocabulary.len());
        let cardinality = counts.iter().sum::<u64>() as f64 / rows.max(1) as f64;
        let (mean_imbalance, imbalance_variation) = imbalance(&counts);
        let name = |label: LabelId| vocabulary.name(label).to_string();
        let by_label = vocabulary.ids().zip(counts.iter().copied());
        Ok(Description {
            rows,
            features,
            labels,
            labels_seen: counts.iter().filter(|n| **n > 0).count(),
            cardinality,
            density: cardinality / labels.max(1) as f64,
            distinct_sets: sets.len(),
            empty_sets: sets.iter().find(|(set, _)| set.is_empty()).map_or(0, |(_, n)| *n),
            largest_set: largest,
            mean_imbalance,
            imbalance_variation,
            most_labels: frequent(by_label, most, |&label| name(label)),
            pairs: frequent(pairs.into_iter(), most, |&(a, b)| [name(a), name(b)]),
            sets: frequent(sets.iter().copied(), most, |set| {
                set.iter().map(|&y| name(y)).collect()
            }),
        })
    }
}

/// The `most` things with most rows; numbers of labels are in name order, and so are ties.
fn frequent<K: Ord, T>(
    counts: impl Iterator<Item = (K, u64)>,
    most: usize,
    name: impl Fn(&K) -> T,
) -> Vec<Frequent<T>> {
    let mut all: Vec<(K, u64)> = counts.filter(|(_, rows)| *rows > 0).collect();
    all.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all.iter().take(most).map(|(key, rows)| Frequent { of: name(key), rows: *rows }).collect()
}

/// Mean and coefficient of variation of max N / N_y over the labels that occur; 0 when none does.
fn imbalance(counts: &[u64]) -> (f64, f64) {
    let max = counts.iter().copied().max().unwrap_or(0) as f64;
    let ratios: Vec<f64> = counts.iter().filter(|n| **n > 0).map(|&n| max / n as f64).collect();
    let n = ratios.len() as f64;
    if ratios.is_empty() {
        return (0.0, 0.0);
    }
    let mean = ratios.iter().sum::<f64>() / n;
    let squares: f64 = ratios.iter().map(|r| (r - mean) * (r - mean)).sum();
    let deviation = if n > 1.0 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
    (mean, deviation / mean)
}
