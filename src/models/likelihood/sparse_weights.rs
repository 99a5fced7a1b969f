//! Weights of sparse features and category values, for all groups at once.
//!
//! Most features were never seen in most groups, and what an unseen feature says depends on little
//! more than the group. So weights are a table over few *classes* of features, plus corrections for
//! the pairs that were seen: memory follows the non-zeros of the statistics.

/// What a feature says in a group: `at_zero` when its value is zero, and when it is `t` (a count, or
/// a number in units of its standard deviation) `present + linear * t + square * t^2` more.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Terms {
    pub(super) at_zero: f64,
    pub(super) present: f64,
    pub(super) linear: f64,
    pub(super) square: f64,
}

impl Terms {
    fn minus(self, other: Terms) -> Terms {
        Terms {
            at_zero: self.at_zero - other.at_zero,
            present: self.present - other.present,
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
    /// Sums of `at_zero` over the features that are columns, and over those of each open column.
    column_zero: Vec<f64>,
    open_zero: Vec<Vec<f64>>,
}

impl SparseWeights {
    /// Builds the weights.
    ///
    /// `class_of` and `open` (the open column it comes from) describe each feature,
    /// `class_terms(class, group)` gives the terms of an unseen feature, `seen` the terms of the
    /// pairs that were seen, as (group, feature, terms).
    pub(super) fn new(
        groups: usize,
        class_of: Vec<u32>,
        open: &[Option<u32>],
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
            open_zero: vec![
                vec![0.0; groups];
                open.iter().flatten().max().map_or(0, |o| *o as usize + 1)
            ],
            ..SparseWeights::default()
        };
        for (&class, &open) in class_of.iter().zip(open) {
            let zero = weights.zero(open);
            let terms = &classes[class as usize * groups..(class as usize + 1) * groups];
            zero.iter_mut().zip(terms).for_each(|(z, t)| *z += t.at_zero);
        }
        seen.sort_unstable_by_key(|&(group, feature, _)| (feature, group));
        weights.offsets = vec![0; class_of.len() + 1];
        for (group, feature, terms) in seen {
            let (g, f) = (group as usize, feature as usize);
            let correction = terms.minus(classes[class_of[f] as usize * groups + g]);
            weights.zero(open[f])[g] += correction.at_zero;
            weights.seen_group.push(group);
            weights.seen.push(correction);
            weights.offsets[f + 1] += 1;
        }
        for f in 1..weights.offsets.len() {
            weights.offsets[f] += weights.offsets[f - 1];
        }
        weights.class_of = class_of;
        weights.classes = classes;
        weights
    }

    fn zero(&mut self, open: Option<u32>) -> &mut Vec<f64> {
        match open {
            Some(open) => &mut self.open_zero[open as usize],
            None => &mut self.column_zero,
        }
    }

    /// What all features say when they are zero, by group.
    pub(super) fn all_zero(&self) -> Vec<f64> {
        let mut all = self.column_zero.clone();
        for zero in &self.open_zero {
            all.iter_mut().zip(zero).for_each(|(a, z)| *a += z);
        }
        all
    }

    /// Takes away what the zeros of open column `open` said, because it is missing.
    pub(super) fn remove_open(&self, open: u32, out: &mut [f64]) {
        if let Some(zero) = self.open_zero.get(open as usize) {
            out.iter_mut().zip(zero).for_each(|(o, z)| *o -= z);
        }
    }

    /// Adds what value `t` of `feature` says beyond zero to the groups in `out`.
    #[inline]
    pub(super) fn add(&self, feature: u32, t: f64, out: &mut [f64]) {
        self.each(feature, out, |w| w.present + (w.linear + w.square * t) * t);
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
