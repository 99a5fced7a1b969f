//! Rows that wait for their labels.

use crate::error::{Error, Result};
use crate::math::FixedState;
use arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, StringArray, UInt64Array, new_null_array,
};
use arrow::compute::{interleave, take};
use arrow::datatypes::{DataType, Field, Schema, UInt64Type};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// What happens when more rows wait than there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// The row that has waited longest is given up.
    #[default]
    DropOldest,
    /// A new row is answered but does not wait.
    DropNewest,
    /// The batch is refused.
    Stop,
}

/// Rows that were answered and wait for their labels, by key.
///
/// Rows of a batch stay together; when more than half of what is kept no longer waits, the rest is
/// copied together.
#[derive(Debug)]
pub(super) struct Pending {
    most: usize,
    when_full: WhenFull,
    waiting: HashMap<String, Place, FixedState>,
    /// Keys in the order in which their rows came; those that no longer wait are skipped.
    order: VecDeque<(u64, String)>,
    segments: BTreeMap<u64, Segment>,
    /// Rows in segments, waiting or not.
    kept: usize,
    next: u64,
    /// Rows of the batch at hand that wait no longer.
    gone_again: usize,
    pub(super) given_up: u64,
}

/// Where a waiting row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    segment: u64,
    row: usize,
    came: u64,
}

#[derive(Debug)]
struct Segment {
    features: ArrayRef,
    predicted: ArrayRef,
    versions: UInt64Array,
    live: usize,
}

/// Rows that may be kept in vain before the others are copied together.
const COMPACT_FROM: usize = 8192;

/// The part a row of a batch has in delayed learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Features without labels: to be answered, and to wait.
    Question,
    /// Labels of a row that waits in the store.
    Answer { segment: u64, row: usize },
    /// Labels of a row of the same batch.
    AnswerTo(usize),
    /// Labels of a row that does not wait.
    Unmatched,
}

impl Pending {
    pub(super) fn new(most: usize, when_full: WhenFull) -> Self {
        Pending {
            most: most.max(1),
            when_full,
            waiting: HashMap::default(),
            order: VecDeque::new(),
            segments: BTreeMap::new(),
            kept: 0,
            next: 0,
            gone_again: 0,
            given_up: 0,
        }
    }

    /// How many rows wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// How many rows are kept, those that no longer wait too.
    #[cfg(test)]
    pub(super) fn stored_rows(&self) -> usize {
        self.kept
    }

    /// What each row of a batch is, without changing anything.
    ///
    /// # Errors
    ///
    /// A key that is NULL names the row; too many rows that wait, if that is to stop.
    pub(super) fn roles(&self, keys: &StringArray, labels: &ArrayRef) -> Result<Vec<Role>> {
        let unlabelled = labels.logical_nulls();
        let mut asked: HashMap<&str, Option<usize>, FixedState> = HashMap::default();
        let mut roles = Vec::with_capacity(keys.len());
        let mut waiting = self.waiting.len();
        for row in 0..keys.len() {
            if keys.is_null(row) {
                return Err(Error::data(format!(
                    "row {row} has no key: give every row one, so that labels find it"
                )));
            }
            let key = keys.value(row);
            let here = asked.get(key).copied();
            let there = self.waiting.get(key).filter(|_| here.is_none());
            if unlabelled.as_ref().is_some_and(|n| n.is_null(row)) {
                waiting += usize::from(!matches!(here, Some(Some(_))) && there.is_none());
                asked.insert(key, Some(row));
                roles.push(Role::Question);
                continue;
            }
            let role = match (here, there) {
                (Some(Some(asked)), _) => Role::AnswerTo(asked),
                (_, Some(place)) => Role::Answer { segment: place.segment, row: place.row },
                _ => Role::Unmatched,
            };
            if role != Role::Unmatched {
                asked.insert(key, None);
                waiting -= 1;
            }
            if self.when_full == WhenFull::Stop && waiting > self.most {
                return Err(self.full());
            }
            roles.push(role);
        }
        if self.when_full == WhenFull::Stop && waiting > self.most {
            return Err(self.full());
        }
        Ok(roles)
    }

    fn full(&self) -> Error {
        Error::limit(format!(
            "more than {} rows wait for their labels: raise the limit, or give up the oldest",
            self.most
        ))
    }

    /// A column whose values come from `own`, a column of the batch, or from waiting rows, or are
    /// NULL.
    pub(super) fn gather(
        &self,
        own: &ArrayRef,
        places: &[Option<Origin>],
        column: impl Fn(&Stored<'_>) -> ArrayRef,
    ) -> Result<ArrayRef> {
        let nothing = new_null_array(own.data_type(), 1);
        let mut sources: Vec<ArrayRef> = vec![Arc::clone(own), nothing];
        let mut at: HashMap<u64, usize, FixedState> = HashMap::default();
        let mut indices = Vec::with_capacity(places.len());
        for place in places {
            indices.push(match *place {
                None => (1, 0),
                Some(Origin::Batch(row)) => (0, row),
                Some(Origin::Store(segment, row)) => {
                    let known = *at.entry(segment).or_insert(sources.len());
                    if known == sources.len() {
                        let kept = self.segments.get(&segment).ok_or_else(lost)?;
                        sources.push(column(&Stored(kept)));
                    }
                    (known, row)
                }
            });
        }
        let sources: Vec<&dyn Array> = sources.iter().map(AsRef::as_ref).collect();
        Ok(interleave(&sources, &indices)?)
    }

    /// Lets the questions of a batch wait and the answered ones go.
    pub(super) fn settle(
        &mut self,
        keys: &StringArray,
        roles: &[Role],
        features: &ArrayRef,
        predicted: &ArrayRef,
        versions: &UInt64Array,
    ) -> Result<()> {
        let segment = self.next;
        self.next += 1;
        let mut rows: Vec<u32> = Vec::new();
        for (row, role) in roles.iter().enumerate() {
            let key = keys.value(row);
            match role {
                Role::Question => {
                    self.remove(key);
                    if !self.make_room() {
                        continue;
                    }
                    let came = self.next;
                    self.next += 1;
                    let place = Place { segment, row: rows.len(), came };
                    rows.push(row as u32);
                    self.waiting.insert(key.to_string(), place);
                    self.order.push_back((came, key.to_string()));
                }
                Role::Answer { .. } | Role::AnswerTo(_) => self.remove(key),
                Role::Unmatched => {}
            }
        }
        let live = rows.len() - std::mem::take(&mut self.gone_again);
        if live > 0 {
            let rows = arrow::array::UInt32Array::from(rows);
            self.kept += rows.len();
            self.segments.insert(
                segment,
                Segment {
                    features: take(features, &rows, None)?,
                    predicted: take(predicted, &rows, None)?,
                    versions: take(versions, &rows, None)?.as_primitive::<UInt64Type>().clone(),
                    live,
                },
            );
        }
        if self.kept.max(self.order.len()) > 2 * self.waiting.len() + COMPACT_FROM {
            self.compact()?;
        }
        Ok(())
    }

    fn remove(&mut self, key: &str) {
        let Some(place) = self.waiting.remove(key) else { return };
        if let Some(segment) = self.segments.get_mut(&place.segment) {
            segment.live -= 1;
            if segment.live == 0 {
                self.kept -= segment.versions.len();
                self.segments.remove(&place.segment);
            }
        } else {
            self.gone_again += 1;
        }
    }

    /// Makes room for one row; false when it is not to wait.
    fn make_room(&mut self) -> bool {
        while self.waiting.len() >= self.most {
            self.given_up += 1;
            if self.when_full == WhenFull::DropNewest {
                return false;
            }
            while let Some((came, key)) = self.order.pop_front() {
                if self.waiting.get(&key).is_some_and(|place| place.came == came) {
                    self.remove(&key);
                    break;
                }
            }
        }
        true
    }

    /// The keys that wait, oldest first.
    fn in_order(&self) -> Vec<(&str, Place)> {
        let mut waiting: Vec<(&str, Place)> =
            self.waiting.iter().map(|(key, place)| (key.as_str(), *place)).collect();
        waiting.sort_unstable_by_key(|(_, place)| place.came);
        waiting
    }

    fn compact(&mut self) -> Result<()> {
        let Some(batch) = self.encode()? else {
            self.order.clear();
            return Ok(());
        };
        let (most, when_full, given_up) = (self.most, self.when_full, self.given_up);
        *self = Pending::decode(&batch, most, when_full)?;
        self.given_up = given_up;
        Ok(())
    }

    /// The rows that wait, oldest first; `None` when there are none.
    pub(super) fn encode(&self) -> Result<Option<RecordBatch>> {
        let waiting = self.in_order();
        let Some(first) = self.segments.values().next() else { return Ok(None) };
        let places: Vec<Option<Origin>> =
            waiting.iter().map(|(_, p)| Some(Origin::Store(p.segment, p.row))).collect();
        let features = self.gather(&first.features, &places, |s| s.features())?;
        let predicted = self.gather(&first.predicted, &places, |s| s.predicted())?;
        let versions: ArrayRef = Arc::new(first.versions.clone());
        let versions = self.gather(&versions, &places, |s| s.versions())?;
        let keys: ArrayRef = Arc::new(StringArray::from_iter_values(waiting.iter().map(|w| w.0)));
        let columns = [
            ("key", keys),
            ("features", features),
            ("predicted", predicted),
            ("version", versions),
        ];
        let field =
            |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let columns = columns.into_iter().map(|c| c.1).collect();
        Ok(Some(RecordBatch::try_new(Arc::new(schema), columns)?))
    }

    /// The store whose rows [`Pending::encode`] gave.
    pub(super) fn decode(batch: &RecordBatch, most: usize, when_full: WhenFull) -> Result<Self> {
        let unfit = || Error::corrupt("the rows that wait for labels cannot be read");
        let column = |name: &str| batch.column_by_name(name).ok_or_else(unfit);
        let keys = column("key")?.as_string_opt::<i32>().ok_or_else(unfit)?;
        let versions = column("version")?.as_primitive_opt::<UInt64Type>().ok_or_else(unfit)?;
        let mut pending = Pending::new(most, when_full);
        for (row, key) in keys.iter().enumerate() {
            let key = key.ok_or_else(unfit)?.to_string();
            let came = row as u64 + 1;
            pending.order.push_back((came, key.clone()));
            pending.waiting.insert(key, Place { segment: 0, row, came });
        }
        pending.next = keys.len() as u64 + 1;
        pending.kept = keys.len();
        if !keys.is_empty() {
            let segment = Segment {
                features: Arc::clone(column("features")?),
                predicted: Arc::clone(column("predicted")?),
                versions: versions.clone(),
                live: keys.len(),
            };
            pending.segments.insert(0, segment);
        }
        Ok(pending)
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// A row of the batch at hand.
    Batch(usize),
    /// A row of a segment of the store.
    Store(u64, usize),
}

/// The columns of rows that wait.
pub(super) struct Stored<'a>(&'a Segment);

impl Stored<'_> {
    pub(super) fn features(&self) -> ArrayRef {
        Arc::clone(&self.0.features)
    }

    pub(super) fn predicted(&self) -> ArrayRef {
        Arc::clone(&self.0.predicted)
    }

    pub(super) fn versions(&self) -> ArrayRef {
        Arc::new(self.0.versions.clone())
    }
}

fn lost() -> Error {
    Error::internal("a row that waits is not stored")
}

/// A key column as texts.
pub(super) fn key_texts(column: &ArrayRef, name: &str) -> Result<StringArray> {
    let texts = arrow::compute::cast(column, &DataType::Utf8);
    match texts.as_ref().ok().and_then(|t| t.as_string_opt::<i32>()) {
        Some(texts) => Ok(texts.clone()),
        None => Err(Error::data(format!(
            "key column `{name}` is {}: use a text or a number",
            column.data_type()
        ))),
    }
}
