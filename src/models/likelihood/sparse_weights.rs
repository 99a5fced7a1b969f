//! Weights of sparse features and category values, for all groups at once.
//!
//! Most features were never seen in most groups, and what an unseen feature says depends on little
//! more than the group. So weights are a table over few *classes* of features, plus corrections for
//! the pairs that were seen: memory follows the non-zeros of the statistics. Where a table of all
//! features and groups would hardly be larger, it is one: a row is then a plain product with it.

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

/// Cells of a table that is small whatever was seen.
const SMALL: usize = 1 << 20;
/// Cells of a table for each pair that was seen, at most.
const CELLS_PER_PAIR: usize = 4;

/// The weights of all features in all groups.
#[derive(Debug, Clone)]
pub(super) struct SparseWeights {
    groups: usize,
    weights: Weights,
    /// Sums of `at_zero` over the features that are columns, and over those of each open column.
    column_zero: Vec<f64>,
    open_zero: Vec<Vec<f64>>,
}

#[derive(Debug, Clone)]
enum Weights {
    Classes(Classes),
    Table(Table),
}

/// Terms by class, and corrections.
#[derive(Debug, Clone, Default)]
struct Classes {
    class_of: Vec<u32>,
    /// Terms of every class in every group.
    classes: Vec<Terms>,
    /// Seen pairs by feature: `offsets[f]..offsets[f + 1]`.
    offsets: Vec<usize>,
    seen_group: Vec<u32>,
    seen: Vec<Terms>,
}

/// Terms of features that are linear in their value, feature by feature.
#[derive(Debug, Clone)]
struct Table {
    linear: Vec<f64>,
    at_zero: Vec<f64>,
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
        let opens = open.iter().flatten().max().map_or(0, |o| *o as usize + 1);
        let mut column_zero = vec![0.0; groups];
        let mut open_zero = vec![vec![0.0; groups]; opens];
        let mut zero_of = |open: Option<u32>, g: usize, at_zero: f64| match open {
            Some(open) => open_zero[open as usize][g] += at_zero,
            None => column_zero[g] += at_zero,
        };
        for (&class, &open) in class_of.iter().zip(open) {
            let terms = &classes[class as usize * groups..(class as usize + 1) * groups];
            terms.iter().enumerate().for_each(|(g, t)| zero_of(open, g, t.at_zero));
        }
        seen.sort_unstable_by_key(|&(group, feature, _)| (feature, group));
        let mut weights = Classes { offsets: vec![0; class_of.len() + 1], ..Classes::default() };
        for (group, feature, terms) in seen {
            let (g, f) = (group as usize, feature as usize);
            let correction = terms.minus(classes[class_of[f] as usize * groups + g]);
            zero_of(open[f], g, correction.at_zero);
            weights.seen_group.push(group);
            weights.seen.push(correction);
            weights.offsets[f + 1] += 1;
        }
        for f in 1..weights.offsets.len() {
            weights.offsets[f] += weights.offsets[f - 1];
        }
        (weights.class_of, weights.classes) = (class_of, classes);
        let weights = match weights.table(groups) {
            Some(table) => Weights::Table(table),
            None => Weights::Classes(weights),
        };
        SparseWeights { groups, weights, column_zero, open_zero }
    }

    /// What these weights say less what `other` says, where both are tables.
    pub(super) fn minus(&self, other: &Self) -> Option<Self> {
        let (Weights::Table(a), Weights::Table(b)) = (&self.weights, &other.weights) else {
            return None;
        };
        let less = |a: &Vec<f64>, b: &Vec<f64>| a.iter().zip(b).map(|(a, b)| a - b).collect();
        Some(SparseWeights {
            groups: self.groups,
            weights: Weights::Table(Table {
                linear: less(&a.linear, &b.linear),
                at_zero: less(&a.at_zero, &b.at_zero),
            }),
            column_zero: less(&self.column_zero, &other.column_zero),
            open_zero: self
                .open_zero
                .iter()
                .zip(&other.open_zero)
                .map(|(a, b)| less(a, b))
                .collect(),
        })
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
        match &self.weights {
            Weights::Table(table) => {
                let start = feature as usize * self.groups;
                let weights = &table.linear[start..start + self.groups];
                out.iter_mut().zip(weights).for_each(|(o, w)| *o += w * t);
            }
            Weights::Classes(classes) => {
                classes.each(feature, out, |w| w.present + (w.linear + w.square * t) * t);
            }
        }
    }

    /// Takes away what a zero of `feature` said, because its value is missing.
    pub(super) fn remove_zero(&self, feature: u32, out: &mut [f64]) {
        match &self.weights {
            Weights::Table(table) => {
                let start = feature as usize * self.groups;
                let zero = &table.at_zero[start..start + self.groups];
                out.iter_mut().zip(zero).for_each(|(o, z)| *o -= z);
            }
            Weights::Classes(classes) => classes.each(feature, out, |t| -t.at_zero),
        }
    }
}

impl Classes {
    /// The same as a table, where it is linear and not much larger.
    fn table(&self, groups: usize) -> Option<Table> {
        let cells = self.class_of.len().checked_mul(groups)?;
        let linear = |t: &Terms| t.present == 0.0 && t.square == 0.0;
        if cells > SMALL.max(CELLS_PER_PAIR * self.seen.len())
            || !self.classes.iter().chain(&self.seen).all(linear)
        {
            return None;
        }
        let mut table = Table { linear: vec![0.0; cells], at_zero: vec![0.0; cells] };
        for feature in 0..self.class_of.len() {
            let cells = feature * groups..(feature + 1) * groups;
            self.each(feature as u32, &mut table.linear[cells.clone()], |t| t.linear);
            self.each(feature as u32, &mut table.at_zero[cells], |t| t.at_zero);
        }
        Some(table)
    }

    #[inline]
    fn each(&self, feature: u32, out: &mut [f64], value: impl Fn(&Terms) -> f64) {
        let (f, groups) = (feature as usize, out.len());
        let class = self.class_of[f] as usize * groups;
        let terms = &self.classes[class..class + groups];
        out.iter_mut().zip(terms).for_each(|(o, t)| *o += value(t));
        let range = self.offsets[f]..self.offsets[f + 1];
        for (&group, terms) in self.seen_group[range.clone()].iter().zip(&self.seen[range]) {
            out[group as usize] += value(terms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three features, two of them of one class, in `groups` groups; each was seen in some.
    fn weights(groups: usize, square: f64) -> SparseWeights {
        let terms =
            |at_zero: f64, linear: f64| Terms { at_zero, linear, square, ..Terms::default() };
        let class = |class: usize, g: usize| terms(-0.5 * g as f64, 1.0 + class as f64);
        let seen = (0..groups as u32).filter(|g| g % 3 == 0);
        let seen = seen.map(|g| (g, g % 2, terms(-2.0, f64::from(g)))).collect();
        SparseWeights::new(groups, vec![0, 1, 0], &[None, Some(0), Some(0)], class, seen)
    }

    #[test]
    fn a_table_says_what_classes_and_corrections_say() {
        let table = weights(50, 0.0);
        let Weights::Table(cells) = &table.weights else { panic!("no table") };
        assert_eq!((cells.linear.len(), cells.linear[6], cells.linear[50 + 3]), (150, 6.0, 3.0));
        // Terms that are not linear stay as they are.
        let classes = weights(50, 1e-300);
        assert!(matches!(classes.weights, Weights::Classes(_)));
        for feature in 0..3 {
            let (mut a, mut b) = (vec![1.0; 50], vec![1.0; 50]);
            for (weights, out) in [(&table, &mut a), (&classes, &mut b)] {
                weights.add(feature, 2.5, out);
                weights.remove_zero(feature, out);
                weights.remove_open(0, out);
            }
            assert_eq!(a, b, "feature {feature}");
        }
        assert_eq!(table.all_zero(), classes.all_zero());
    }

    #[test]
    fn a_table_is_not_much_larger_than_what_was_seen() {
        assert!(matches!(weights(SMALL / 3, 0.0).weights, Weights::Table(_)));
        assert!(matches!(weights(SMALL / 3 + 1, 0.0).weights, Weights::Classes(_)));
    }

    #[test]
    fn a_difference_is_that_of_what_both_say() {
        let a = weights(9, 0.0);
        let zero = a.minus(&a).unwrap();
        let mut out = vec![0.0; 9];
        (0..3).for_each(|f| zero.add(f, 3.0, &mut out));
        zero.remove_zero(1, &mut out);
        assert_eq!((out, zero.all_zero()), (vec![0.0; 9], vec![0.0; 9]));
        assert!(a.minus(&weights(9, 1.0)).is_none());
    }
}
