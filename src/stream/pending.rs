//! Rows that wait for their labels.

use crate::error::{Error, Result};
use crate::math::FixedState;
use arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, StringArray, UInt32Array, new_null_array,
};
use arrow::compute::{interleave, take_record_batch};
use arrow::datatypes::{DataType, Field, Schema};
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
/// Rows of a batch stay together; when more than half of what is kept no longer waits, or when it is
/// in many small pieces, the rest is copied together. What happens to a row does not depend on how
/// rows are cut into batches.
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
    rows: RecordBatch,
    live: usize,
}

/// Rows that may be kept in vain before the others are copied together.
const COMPACT_FROM: usize = 8192;
/// Pieces in which waiting rows may be kept.
const SEGMENTS: usize = 512;
/// The column of keys in a checkpoint.
const KEY: &str = "key";

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

    /// How many rows are kept, those that no longer wait too, and in how many pieces.
    #[cfg(test)]
    pub(super) fn stored(&self) -> (usize, usize) {
        (self.kept, self.segments.len())
    }

    /// What each row of a batch is, one after the other, without changing anything.
    ///
    /// # Errors
    ///
    /// A key that is NULL names the row; too many rows that wait, if that is to stop.
    pub(super) fn roles(&self, keys: &StringArray, labels: &ArrayRef) -> Result<Vec<Role>> {
        let unlabelled = labels.logical_nulls();
        let mut plan = Plan { pending: self, changed: HashMap::default(), waiting: self.len() };
        let (mut oldest, mut asked) = (self.order.iter(), VecDeque::new());
        let mut roles = Vec::with_capacity(keys.len());
        for row in 0..keys.len() {
            if keys.is_null(row) {
                return Err(Error::data(format!(
                    "row {row} has no key: give every row one, so that labels find it"
                )));
            }
            let key = keys.value(row);
            let found = plan.take(key);
            if !unlabelled.as_ref().is_some_and(|n| n.is_null(row)) {
                roles.push(found.unwrap_or(Role::Unmatched));
                continue;
            }
            roles.push(Role::Question);
            if plan.waiting >= self.most {
                match self.when_full {
                    WhenFull::Stop => return Err(self.full()),
                    WhenFull::DropNewest => continue,
                    WhenFull::DropOldest => plan.give_up(&mut oldest, &mut asked),
                }
            }
            plan.waiting += 1;
            plan.changed.insert(key, Some(row));
            asked.push_back((row, key));
        }
        Ok(roles)
    }

    fn full(&self) -> Error {
        Error::limit(format!(
            "more than {} rows wait for their labels: raise the limit, or give up the oldest",
            self.most
        ))
    }

    /// A column whose values come from `own`, a column of the batch, or from column `name` of
    /// waiting rows, or are NULL.
    pub(super) fn gather(
        &self,
        own: &ArrayRef,
        places: &[Option<Origin>],
        name: &str,
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
                        sources.push(Arc::clone(kept.rows.column_by_name(name).ok_or_else(lost)?));
                    }
                    (known, row)
                }
            });
        }
        let sources: Vec<&dyn Array> = sources.iter().map(AsRef::as_ref).collect();
        Ok(interleave(&sources, &indices)?)
    }

    /// Lets the questions of a batch wait and the answered ones go. `answered` are the rows of the
    /// batch: what is kept of a question.
    pub(super) fn settle(
        &mut self,
        keys: &StringArray,
        roles: &[Role],
        answered: &RecordBatch,
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
            self.kept += rows.len();
            let rows = take_record_batch(answered, &UInt32Array::from(rows))?;
            self.segments.insert(segment, Segment { rows, live });
        }
        let kept = self.kept.max(self.order.len());
        if kept > 2 * self.waiting.len() + COMPACT_FROM || self.segments.len() > SEGMENTS {
            self.compact()?;
        }
        Ok(())
    }

    fn remove(&mut self, key: &str) {
        let Some(place) = self.waiting.remove(key) else { return };
        if let Some(segment) = self.segments.get_mut(&place.segment) {
            segment.live -= 1;
            if segment.live == 0 {
                self.kept -= segment.rows.num_rows();
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
        let keys: ArrayRef = Arc::new(StringArray::from_iter_values(waiting.iter().map(|w| w.0)));
        let mut fields = vec![Field::new(KEY, DataType::Utf8, false)];
        let mut columns = vec![keys];
        for (field, own) in first.rows.schema().fields().iter().zip(first.rows.columns()) {
            columns.push(self.gather(own, &places, field.name())?);
            fields.push(field.as_ref().clone());
        }
        Ok(Some(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?))
    }

    /// The store whose rows [`Pending::encode`] gave.
    pub(super) fn decode(batch: &RecordBatch, most: usize, when_full: WhenFull) -> Result<Self> {
        let unfit = || Error::corrupt("the rows that wait for labels cannot be read");
        let at = batch.schema().index_of(KEY).map_err(|_| unfit())?;
        let mut rows = batch.clone();
        let keys = rows.remove_column(at);
        let keys = keys.as_string_opt::<i32>().ok_or_else(unfit)?;
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
            pending.segments.insert(0, Segment { rows, live: keys.len() });
        }
        Ok(pending)
    }
}

/// What a batch would change, found out row by row.
struct Plan<'a> {
    pending: &'a Pending,
    /// Keys of the batch: the row of it that waits, or `None` when none waits any more.
    changed: HashMap<&'a str, Option<usize>, FixedState>,
    waiting: usize,
}

impl<'a> Plan<'a> {
    /// The row that waits under `key`, which waits no longer.
    fn take(&mut self, key: &'a str) -> Option<Role> {
        let found = match self.changed.get(key) {
            Some(here) => here.map(Role::AnswerTo),
            None => {
                let stored = self.pending.waiting.get(key);
                stored.map(|place| Role::Answer { segment: place.segment, row: place.row })
            }
        };
        if found.is_some() {
            self.waiting -= 1;
            self.changed.insert(key, None);
        }
        found
    }

    /// Gives up the row that has waited longest: first those of the store, in their `order`, then
    /// those `asked` in this batch.
    fn give_up(
        &mut self,
        order: &mut std::collections::vec_deque::Iter<'a, (u64, String)>,
        asked: &mut VecDeque<(usize, &'a str)>,
    ) {
        let stored = order.find(|(came, key)| {
            let waits = self.pending.waiting.get(key).is_some_and(|place| place.came == *came);
            waits && !self.changed.contains_key(key.as_str())
        });
        let key = match stored {
            Some((_, key)) => Some(key.as_str()),
            None => loop {
                match asked.pop_front() {
                    Some((row, key)) if self.changed.get(key) == Some(&Some(row)) => {
                        break Some(key);
                    }
                    Some(_) => {}
                    None => break None,
                }
            },
        };
        if let Some(key) = key {
            self.changed.insert(key, None);
            self.waiting -= 1;
        }
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
