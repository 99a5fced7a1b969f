//! Weights of sparse features and category values, for all groups at once.
//!
//! Most features were never seen in most groups, and what an unseen feature says depends on little
//! more than the group. So weights are a table over few *classes* of features, plus corrections for
//! the pairs that were seen: memory follows the non-zeros of the statistics.

/// What a feature says in a group: `at_zero` when its value is zero, and `linear * x + square * x^2`
/// more when it is `x`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Terms {
    pub(super) at_zero: f64,
    pub(super) linear: f64,
    pub(super) square: f64,
}

impl Terms {
    fn minus(self, other: Terms) -> Terms {
        Terms {
            at_zero: self.at_zero - other.at_zero,
            linear: self.linear - other.linear,
            square: self.square - other.square,
        }
    }
}

/// The weights of all features in all groups.
#[derive(Debug, Clone, Default)]
pub(super) struct SparseWeights {
    groups: usize,
    class_of: Vec<u32>,
    /// Terms of every class in every group.
    classes: Vec<Terms>,
    /// Seen pairs by feature: `offsets[f]..offsets[f + 1]`.
    offsets: Vec<usize>,
    seen_group: Vec<u32>,
    seen: Vec<Terms>,
    /// Sums of `at_zero` over the features that are columns, and over the open ones.
    pub(super) column_zero: Vec<f64>,
    pub(super) open_zero: Vec<f64>,
    has_squares: bool,
}

impl SparseWeights {
    /// Builds the weights.
    ///
    /// `class_of` and `open` describe each feature, `class_terms(class, group)` gives the terms of
    /// an unseen feature, `seen` the terms of the pairs that were seen, as (group, feature, terms).
    pub(super) fn new(
        groups: usize,
        class_of: Vec<u32>,
        open: &[bool],
        class_terms: impl Fn(usize, usize) -> Terms,
        mut seen: Vec<(u32, u32, Terms)>,
    ) -> Self {
        let class_count = class_of.iter().map(|&c| c as usize + 1).max().unwrap_or(0);
        let mut classes = Vec::with_capacity(class_count * groups);
        for class in 0..class_count {
            classes.extend((0..groups).map(|g| class_terms(class, g)));
        }
        let mut weights = SparseWeights {
            groups,
            column_zero: vec![0.0; groups],
            open_zero: vec![0.0; groups],
            ..SparseWeights::default()
        };
        for (&class, &open) in class_of.iter().zip(open) {
            let zero = if open { &mut weights.open_zero } else { &mut weights.column_zero };
            let terms = &classes[class as usize * groups..(class as usize + 1) * groups];
            zero.iter_mut().zip(terms).for_each(|(z, t)| *z += t.at_zero);
        }
        seen.sort_unstable_by_key(|&(group, feature, _)| (feature, group));
        weights.offsets = vec![0; class_of.len() + 1];
        for (group, feature, terms) in seen {
            let (g, f) = (group as usize, feature as usize);
            let correction = terms.minus(classes[class_of[f] as usize * groups + g]);
            let zero = if open[f] { &mut weights.open_zero } else { &mut weights.column_zero };
            zero[g] += correction.at_zero;
            weights.seen_group.push(group);
            weights.seen.push(correction);
            weights.offsets[f + 1] += 1;
        }
        for f in 1..weights.offsets.len() {
            weights.offsets[f] += weights.offsets[f - 1];
        }
        weights.has_squares = classes.iter().chain(&weights.seen).any(|t| t.square != 0.0);
        weights.class_of = class_of;
        weights.classes = classes;
        weights
    }

    /// Adds what value `x` of `feature` says beyond zero to the groups in `out`.
    #[inline]
    pub(super) fn add(&self, feature: u32, x: f64, out: &mut [f64]) {
        let square = if self.has_squares { x * x } else { 0.0 };
        self.each(feature, out, |t| t.linear * x + t.square * square);
    }

    /// Takes away what a zero of `feature` said, because its value is missing.
    pub(super) fn remove_zero(&self, feature: u32, out: &mut [f64]) {
        self.each(feature, out, |t| -t.at_zero);
    }

    #[inline]
    fn each(&self, feature: u32, out: &mut [f64], value: impl Fn(&Terms) -> f64) {
        let f = feature as usize;
        let class = self.class_of[f] as usize * self.groups;
        let terms = &self.classes[class..class + self.groups];
        out.iter_mut().zip(terms).for_each(|(o, t)| *o += value(t));
        let range = self.offsets[f]..self.offsets[f + 1];
        for (&group, terms) in self.seen_group[range.clone()].iter().zip(&self.seen[range]) {
            out[group as usize] += value(terms);
        }
    }
}
