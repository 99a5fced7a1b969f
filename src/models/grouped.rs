//! Training one model per group.

use super::reader::RowReader;
use super::{Algorithm, CheckedSpec, Trainer};
use crate::data::{FeatureOptions, Id, LabelId, Rows, Space, Translator, Vocabulary};
use crate::error::Result;
use arrow::array::{Array, ArrayRef};
use std::ops::Range;

/// Rows that are read at a time.
const CHUNK: usize = 8192;
/// Names from which the numbering in which batches are read starts anew.
const MAX_NAMES: usize = 1 << 17;

/// One [`Trainer`] per group of rows.
///
/// A batch is read once, in a numbering of its own; each group then takes its rows. So the cost of
/// reading does not depend on the number of groups, and a group knows only names of its own rows.
///
/// # Cost
///
/// Rows of one group should stand together: each run of them is observed at once.
#[derive(Debug)]
pub struct GroupedTrainer {
    algorithm: Algorithm,
    spec: CheckedSpec,
    trainers: Vec<Option<Box<Trainer>>>,
    reader: RowReader,
    space: Space,
    rows: Rows,
    copy: CopyBuffer,
    bytes: usize,
    /// Bytes of the largest group there was, and what ending it takes: groups end one by one.
    largest: usize,
    ending: usize,
}

/// Buffers for handing rows to one group after the other.
#[derive(Debug, Default)]
pub(super) struct CopyBuffer {
    pub(super) translator: Translator,
    pub(super) rows: Rows,
    /// The labels of the group before, by their numbers in the batch: the next is likely to have
    /// the same.
    ids: Vec<LabelId>,
    labels: Vocabulary<LabelId>,
    found: Vec<LabelId>,
    /// For each label of the batch, whether it is among those found.
    is_found: Vec<bool>,
}

impl CopyBuffer {
    /// The labels of the rows in `range`, in name order: so a group of one run is never renumbered.
    pub(super) fn labels_of(
        &mut self,
        rows: &Rows,
        from: &Space,
        range: Range<usize>,
    ) -> Vocabulary<LabelId> {
        self.found.clear();
        self.is_found.resize(from.labels.len(), false);
        for &id in range.flat_map(|row| rows.labels.row(row)) {
            if !std::mem::replace(&mut self.is_found[id.index()], true) {
                self.found.push(id);
            }
        }
        self.found.iter().for_each(|id| self.is_found[id.index()] = false);
        self.found.sort_unstable();
        if self.found != self.ids {
            let mut ids = self.found.clone();
            ids.sort_unstable_by(|&a, &b| from.labels.name(a).cmp(from.labels.name(b)));
            self.labels = Vocabulary::default();
            for id in ids {
                self.labels.intern_of(&from.labels, id);
            }
            std::mem::swap(&mut self.ids, &mut self.found);
        }
        self.labels.clone()
    }
}

impl GroupedTrainer {
    /// No group yet.
    ///
    /// # Errors
    ///
    /// A spec whose features cannot be read as it asks.
    pub fn try_new(algorithm: Algorithm, spec: CheckedSpec) -> Result<Self> {
        // Bounds hold for each model, not for all together.
        let bounded = (algorithm.features)(&spec)?;
        let options = FeatureOptions { max_labels: None, max_features: None, ..bounded };
        Ok(GroupedTrainer {
            algorithm,
            spec,
            trainers: Vec::new(),
            reader: RowReader::new(options),
            space: Space::default(),
            rows: Rows::default(),
            copy: CopyBuffer::default(),
            bytes: 0,
            largest: 0,
            ending: 0,
        })
    }

    /// Makes room for groups below `groups`.
    pub fn grow(&mut self, groups: usize) {
        if groups > self.trainers.len() {
            self.trainers.resize_with(groups, || None);
        }
    }

    /// How many groups there is room for.
    pub fn groups(&self) -> usize {
        self.trainers.len()
    }

    /// Whether something was learned for `group`.
    pub fn has(&self, group: usize) -> bool {
        self.trainers.get(group).is_some_and(Option::is_some)
    }

    /// Whether rows with these features have to wait for the first vector of a column of vectors,
    /// whose length is not known yet. Rows that do not wait are learned without that column.
    ///
    /// # Errors
    ///
    /// Columns that cannot be features.
    pub fn must_wait(&self, features: &ArrayRef) -> Result<bool> {
        Ok(self.reader.without_length(features, &self.space)?.is_some())
    }

    /// Lets `features` decide what the columns are, unless that is known.
    ///
    /// # Errors
    ///
    /// Columns that cannot be features.
    pub fn declare(&mut self, features: &ArrayRef) -> Result<()> {
        match self.space.features.declared {
            true => Ok(()),
            false => self.reader.declare(features, &mut self.space),
        }
    }

    /// Learns from labelled rows; `groups` has the group of each, all of which there is room for.
    ///
    /// # Errors
    ///
    /// As [`Trainer::observe_weighted`]; some groups may then have learned from their rows.
    pub fn observe(
        &mut self,
        labels: &ArrayRef,
        features: &ArrayRef,
        weights: Option<&ArrayRef>,
        groups: &[usize],
    ) -> Result<()> {
        if !features.is_empty() {
            self.declare(features)?;
        }
        for start in (0..groups.len()).step_by(CHUNK) {
            let len = CHUNK.min(groups.len() - start);
            let part = |array: &ArrayRef| array.slice(start, len);
            let weights = weights.map(part);
            let groups = &groups[start..start + len];
            self.observe_chunk(&part(labels), &part(features), weights.as_ref(), groups)?;
        }
        Ok(())
    }

    fn observe_chunk(
        &mut self,
        labels: &ArrayRef,
        features: &ArrayRef,
        weights: Option<&ArrayRef>,
        groups: &[usize],
    ) -> Result<()> {
        self.bound_names()?;
        let kept = self.reader.read(labels, features, weights, &mut self.space, &mut self.rows)?;
        let group_of = |row: usize| groups[kept.as_ref().map_or(row, |k| k[row] as usize)];
        let mut start = 0;
        while start < self.rows.len {
            let group = group_of(start);
            let run = (start..self.rows.len).take_while(|&row| group_of(row) == group).count();
            let trainer = trainer(&mut self.trainers[group], self.algorithm, &self.spec)?;
            let before = trainer.heap_size();
            let range = start..start + run;
            trainer.observe_copied(&self.rows, &self.space, range, &mut self.copy)?;
            self.grown(group, before);
            start += run;
        }
        Ok(())
    }

    /// Lets the next rows decide what the columns are.
    pub fn forget_columns(&mut self) {
        self.space = Space::default();
        self.reader.unbind();
    }

    /// Starts the numbering of batches anew when it has become large; the columns stay.
    fn bound_names(&mut self) -> Result<()> {
        let features = &self.space.features;
        let names = self.space.labels.len() + features.sparse_len() + features.value_len();
        if names > MAX_NAMES {
            let old = std::mem::take(&mut self.space);
            self.space.admit_columns(&old)?;
            self.reader.unbind();
            self.copy = CopyBuffer::default();
        }
        Ok(())
    }

    /// Changes the trainer of `group`, which is made when there is none.
    ///
    /// # Errors
    ///
    /// Those of `change`.
    pub fn change(
        &mut self,
        group: usize,
        change: impl FnOnce(&mut Trainer) -> Result<()>,
    ) -> Result<()> {
        self.grow(group + 1);
        let trainer = trainer(&mut self.trainers[group], self.algorithm, &self.spec)?;
        let before = trainer.heap_size();
        let done = change(trainer);
        // Groups of one query have the same columns.
        if !self.space.features.declared {
            self.space.admit_columns(trainer.space())?;
        }
        self.grown(group, before);
        done
    }

    /// Counts the bytes of `group`, which had `before`.
    fn grown(&mut self, group: usize, before: usize) {
        let Some(Some(trainer)) = self.trainers.get(group) else { return };
        let now = trainer.heap_size();
        self.bytes = (self.bytes + now).saturating_sub(before);
        if now > self.largest {
            (self.largest, self.ending) = (now, trainer.ending_size());
        }
    }

    /// Takes what was learned for `group` out.
    pub fn take_one(&mut self, group: usize) -> Option<Box<Trainer>> {
        let trainer = self.trainers.get_mut(group)?.take()?;
        self.bytes = self.bytes.saturating_sub(trainer.heap_size());
        Some(trainer)
    }

    /// Takes the first `groups` groups out; those after them move up.
    pub fn take(&mut self, groups: usize) -> Vec<Option<Box<Trainer>>> {
        let taken = (0..groups).map(|group| self.take_one(group)).collect();
        self.shift(groups);
        taken
    }

    /// Drops the first `groups` groups; those after them move up.
    pub fn shift(&mut self, groups: usize) {
        let bytes: usize = self
            .trainers
            .drain(..groups.min(self.trainers.len()))
            .flatten()
            .map(|t| t.heap_size())
            .sum();
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// About how many bytes it will take besides to end the groups, one by one.
    pub fn ending_size(&self) -> usize {
        self.ending
    }

    /// Bytes on the heap.
    pub fn heap_size(&self) -> usize {
        let slots = self.trainers.capacity() * size_of::<Option<Box<Trainer>>>();
        let used = self.trainers.len() * size_of::<Trainer>();
        self.bytes + slots + used + self.space.heap_size()
    }
}

fn trainer<'a>(
    slot: &'a mut Option<Box<Trainer>>,
    algorithm: Algorithm,
    spec: &CheckedSpec,
) -> Result<&'a mut Trainer> {
    let started = match slot.take() {
        Some(trainer) => trainer,
        None => Box::new(Trainer::start(algorithm, spec.clone())?),
    };
    Ok(slot.insert(started))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Model, Registry};
    use arrow::array::{
        AsArray, BooleanArray, Float64Array, ListBuilder, StringArray, StringBuilder, StructArray,
        UInt32Array,
    };
    use arrow::compute::take;
    use std::sync::Arc;

    fn rows(count: i64) -> (ArrayRef, ArrayRef, ArrayRef, Vec<usize>) {
        let lists = |of: &dyn Fn(i64) -> Option<Vec<String>>| -> ArrayRef {
            let mut builder = ListBuilder::new(StringBuilder::new());
            (0..count).for_each(|i| builder.append_option(of(i).map(|l| l.into_iter().map(Some))));
            Arc::new(builder.finish())
        };
        let labels = lists(&|i| {
            let set = (0..4).filter(|y| (i + y) % (y + 2) == 0);
            (i % 11 != 5).then(|| set.map(|y| format!("l{}", (y + i / 100) % 7)).collect())
        });
        let words = lists(&|i| Some((0..i % 4).map(|w| format!("w{}", (i + w) % 9)).collect()));
        let x: ArrayRef = Arc::new(Float64Array::from_iter(
            (0..count).map(|i| (i % 7 != 3).then_some((i * i % 11) as f64)),
        ));
        let flag: ArrayRef =
            Arc::new(BooleanArray::from_iter((0..count).map(|i| Some(i % 3 == 0))));
        let city = |i: i64| (i % 9 != 4).then_some(["rome", "oslo", "lima"][i as usize % 3]);
        let city: ArrayRef = Arc::new(StringArray::from_iter((0..count).map(city)));
        let columns = vec![("x", x), ("flag", flag), ("city", city), ("words", words)];
        let features: ArrayRef = Arc::new(StructArray::try_from(columns).unwrap());
        let weights: ArrayRef = Arc::new(Float64Array::from_iter(
            (0..count).map(|i| (i % 13 != 2).then_some((i % 4) as f64)),
        ));
        let groups = (0..count as usize).map(|i| i * i % 5).collect();
        (labels, features, weights, groups)
    }

    fn scores(model: &Model, features: &ArrayRef) -> Vec<f64> {
        let mut scores = Vec::new();
        model.scorer().unwrap().score(&model.read(features).unwrap(), &mut scores).unwrap();
        scores
    }

    #[test]
    fn each_group_is_the_model_of_its_rows() {
        let (labels, features, weights, groups) = rows(20_000);
        let (algorithm, spec) = Registry::default().resolve("naibx").unwrap();
        for weights in [None, Some(&weights)] {
            let mut grouped = GroupedTrainer::try_new(algorithm, spec.clone()).unwrap();
            grouped.grow(5);
            grouped.observe(&labels, &features, weights, &groups).unwrap();
            assert!(grouped.has(4) && !grouped.has(2) && grouped.heap_size() > 0);
            let taken = grouped.take(5);
            for (group, trainer) in taken.iter().enumerate() {
                let own = |i: &u32| groups[*i as usize] == group;
                let at = UInt32Array::from_iter_values((0..20_000).filter(own));
                let part = |array: &ArrayRef| take(array, &at, None).unwrap();
                let mut alone = Trainer::start(algorithm, spec.clone()).unwrap();
                let weights = weights.map(part);
                alone.observe_weighted(&part(&labels), &part(&features), weights.as_ref()).unwrap();
                match trainer {
                    None => assert_eq!(alone.rows(), 0),
                    Some(trainer) => {
                        let (a, b) = (trainer.finish().unwrap(), alone.finish().unwrap());
                        assert_eq!((a.rows(), a.space()), (b.rows(), b.space()), "group {group}");
                        assert_eq!(a.insight(9).pairs, b.insight(9).pairs);
                        assert_eq!(a.insight(0).label_counts, b.insight(0).label_counts);
                        for (a, b) in scores(&a, &features).iter().zip(scores(&b, &features)) {
                            assert!((a - b).abs() < 1e-9, "group {group}: {a} and {b}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_trainer_that_is_used_up_gives_the_same_bytes() {
        let (labels, features, _, _) = rows(300);
        let x: ArrayRef = Arc::clone(features.as_struct().column(0));
        let features: ArrayRef = Arc::new(StructArray::try_from(vec![("x", x)]).unwrap());
        let registry = Registry::default();
        let bytes = |model: Model| crate::store::to_bytes(&model).unwrap();
        for algorithm in registry.algorithms() {
            let (algorithm, spec) = registry.resolve(algorithm.name).unwrap();
            let mut grouped = GroupedTrainer::try_new(algorithm, spec).unwrap();
            grouped.grow(3);
            let groups: Vec<usize> = (0..300).map(|i| i / 100).collect();
            grouped.observe(&labels, &features, None, &groups).unwrap();
            for trainer in grouped.take(3).into_iter().flatten() {
                let names: Vec<&str> = trainer.space().labels.names().collect();
                assert!(names.is_sorted(), "{names:?}");
                let copied = (bytes(trainer.state().unwrap()), bytes(trainer.finish().unwrap()));
                let state = crate::store::from_bytes(&copied.0, &registry).unwrap();
                let again = bytes(state.reopen().unwrap().into_state().unwrap());
                assert_eq!(again, copied.0, "{}", algorithm.name);
                assert_eq!(bytes(trainer.into_finished().unwrap()), copied.1, "{}", algorithm.name);
            }
        }
    }

    #[test]
    fn bounds_are_those_of_each_model() {
        let (labels, features, _, _) = rows(700);
        let (algorithm, spec) = Registry::default().resolve("naibx(max_labels=4)").unwrap();
        let mut grouped = GroupedTrainer::try_new(algorithm, spec).unwrap();
        grouped.grow(8);
        let by_hundred: Vec<usize> = (0..700).map(|i| i / 100).collect();
        grouped.observe(&labels, &features, None, &by_hundred).unwrap();
        let error = grouped.observe(&labels, &features, None, &[7; 700]).unwrap_err();
        assert!(error.to_string().contains("max_labels=4"), "{error}");
    }
}
