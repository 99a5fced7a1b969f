//! Which labels a row carries.
//!
//! 1. The set size `m`: `1 + Binomial(L - 1, (c - 1) / (L - 1))` for a cardinality `c >= 1`, so no set is empty;
//!    `Binomial(L, c / L)` below 1. Both have the mean `c` exactly and end at `L`.
//! 2. One or two topics. A topic is a group of about `sqrt(L)` labels, drawn as often as its labels are.
//! 3. `m` different labels, nine of ten from the topics, by weight. The weight of the label of rank `r` is
//!    `(r + 1)^(-3/4)`; ranks are dealt to names at random.

use crate::data::{Id, LabelId};
use crate::math::Sequence;

/// The share of labels drawn from the topics of the row, not from all labels.
const FROM_TOPICS: f64 = 0.9;
/// The share of rows with a second topic.
const SECOND_TOPIC: f64 = 0.4;

/// The labels of the rows of a batch, by row and by label.
#[derive(Debug)]
pub(super) struct LabelSets {
    ids: Vec<LabelId>,
    ends: Vec<usize>,
    rows: Vec<u32>,
    row_starts: Vec<usize>,
}

impl LabelSets {
    /// Row `r` has the labels `ids[ends[r - 1]..ends[r]]`, all below `labels`.
    pub(super) fn new(labels: usize, ids: Vec<LabelId>, ends: Vec<usize>) -> Self {
        // A counting sort by label keeps the rows of each label in order.
        let mut row_starts = vec![0; labels + 1];
        ids.iter().for_each(|id| row_starts[id.index() + 1] += 1);
        for label in 0..labels {
            row_starts[label + 1] += row_starts[label];
        }
        let (mut next, mut rows, mut start) = (row_starts.clone(), vec![0; ids.len()], 0);
        for (row, &end) in ends.iter().enumerate() {
            for id in &ids[std::mem::replace(&mut start, end)..end] {
                rows[next[id.index()]] = row as u32;
                next[id.index()] += 1;
            }
        }
        LabelSets { ids, ends, rows, row_starts }
    }

    /// The labels of all rows, one row after the other.
    pub(super) fn ids(&self) -> &[LabelId] {
        &self.ids
    }

    /// The number of labels of each row.
    pub(super) fn sizes(&self) -> impl Iterator<Item = usize> {
        let mut start = 0;
        self.ends.iter().map(move |&end| end - std::mem::replace(&mut start, end))
    }

    /// The rows that have `label`, ascending.
    pub(super) fn rows_with(&self, label: LabelId) -> &[u32] {
        let label = label.index();
        &self.rows[self.row_starts[label]..self.row_starts[label + 1]]
    }
}

/// The distribution of label sets.
#[derive(Debug, Clone)]
pub(super) struct LabelModel {
    /// `size_cdf[i]`: the probability of at most `smallest + i` labels.
    size_cdf: Vec<f64>,
    /// The smallest set size.
    smallest: usize,
    /// Label ids, topic by topic.
    slots: Vec<LabelId>,
    /// The topic of each slot.
    topic_of_slot: Vec<u32>,
    /// The first slot of each topic, and the number of slots at the end.
    topic_starts: Vec<usize>,
    /// The weights of all slots before each slot, and the total at the end.
    weights_before: Vec<f64>,
}

impl LabelModel {
    /// Draws topics and weights for `labels >= 1` labels and `0 < cardinality <= labels`.
    pub(super) fn new(labels: usize, cardinality: f64, mut random: Sequence) -> Self {
        let (smallest, size_cdf) = size_distribution(labels, cardinality);
        let topics = (labels as f64).sqrt().round().max(1.0) as usize;
        let mut ids: Vec<LabelId> = LabelId::all(labels).collect();
        random.shuffle(&mut ids);
        let mut model = LabelModel {
            size_cdf,
            smallest,
            slots: Vec::with_capacity(labels),
            topic_of_slot: Vec::with_capacity(labels),
            topic_starts: vec![0],
            weights_before: vec![0.0],
        };
        let mut total = 0.0;
        // Rank r goes to topic r mod topics: every topic has frequent and rare labels.
        for topic in 0..topics {
            for rank in (topic..labels).step_by(topics) {
                let root = ((rank + 1) as f64).sqrt();
                total += 1.0 / (root * root.sqrt());
                model.slots.push(ids[rank]);
                model.topic_of_slot.push(topic as u32);
                model.weights_before.push(total);
            }
            model.topic_starts.push(model.slots.len());
        }
        model
    }

    /// The number of labels.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Appends one label set, ascending, to `ids`.
    ///
    /// `taken` is scratch space: one entry for each label, all false, also afterwards.
    pub(super) fn draw(&self, mut random: Sequence, taken: &mut [bool], ids: &mut Vec<LabelId>) {
        let random = &mut random;
        let start = ids.len();
        let size = self.draw_size(random);
        let first = self.draw_topic(random);
        let second = if random.chance(SECOND_TOPIC) { self.draw_topic(random) } else { first };
        // Drawing again what is taken stops paying when a topic or the whole vocabulary runs dry.
        let mut attempts = 4 * size + 16;
        while ids.len() < start + size && attempts > 0 {
            attempts -= 1;
            let slot = if random.chance(FROM_TOPICS) {
                let topic = if random.chance(0.5) { first } else { second };
                self.draw_slot(random, self.topic_starts[topic], self.topic_starts[topic + 1])
            } else {
                self.draw_slot(random, 0, self.len())
            };
            take(self.slots[slot], taken, ids);
        }
        let mut slot = random.below(self.len());
        while ids.len() < start + size {
            take(self.slots[slot], taken, ids);
            slot = (slot + 1) % self.len();
        }
        let set = &mut ids[start..];
        set.sort_unstable();
        set.iter().for_each(|id| taken[id.index()] = false);
    }

    fn draw_size(&self, random: &mut Sequence) -> usize {
        let u = random.uniform();
        let step = self.size_cdf.partition_point(|&p| p <= u);
        self.smallest + step.min(self.size_cdf.len() - 1)
    }

    fn draw_topic(&self, random: &mut Sequence) -> usize {
        self.topic_of_slot[self.draw_slot(random, 0, self.len())] as usize
    }

    /// A slot in `from..to`, by weight.
    fn draw_slot(&self, random: &mut Sequence, from: usize, to: usize) -> usize {
        let (low, high) = (self.weights_before[from], self.weights_before[to]);
        let target = low + random.uniform() * (high - low);
        let ends = &self.weights_before[from + 1..to];
        from + ends.partition_point(|&end| end <= target)
    }
}

fn take(id: LabelId, taken: &mut [bool], ids: &mut Vec<LabelId>) {
    if !std::mem::replace(&mut taken[id.index()], true) {
        ids.push(id);
    }
}

/// The smallest set size and the distribution function from there on.
///
/// Binomial weights by their ratio, from the mode outwards: nothing under- or overflows for any number of labels.
fn size_distribution(labels: usize, cardinality: f64) -> (usize, Vec<f64>) {
    let smallest = if cardinality < 1.0 { 0 } else { 1 };
    let trials = labels - smallest;
    if trials == 0 {
        return (smallest, vec![1.0]);
    }
    let p = (cardinality - smallest as f64) / trials as f64;
    let mode = (((trials + 1) as f64 * p) as usize).min(trials);
    let mut weights = vec![0.0; trials + 1];
    weights[mode] = 1.0;
    for k in mode..trials {
        weights[k + 1] = weights[k] * ((trials - k) as f64 * p) / ((k + 1) as f64 * (1.0 - p));
    }
    for k in (0..mode).rev() {
        weights[k] = weights[k + 1] * ((k + 1) as f64 * (1.0 - p)) / ((trials - k) as f64 * p);
    }
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let cdf = weights.iter().map(|w| {
        sum += w;
        sum / total
    });
    (smallest, cdf.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_distribution_has_the_mean_it_is_asked_for() {
        for (labels, cardinality) in [
            (1, 0.3),
            (1, 1.0),
            (6, 1.87),
            (6, 6.0),
            (6, 5.9),
            (8, 0.5),
            (100, 4.4),
            (20_000, 9_999.5),
        ] {
            let (smallest, cdf) = size_distribution(labels, cardinality);
            assert_eq!(smallest + cdf.len() - 1, labels);
            // E[m] = smallest + sum of P(m > k).
            let mean = smallest as f64 + cdf.iter().map(|p| 1.0 - p).sum::<f64>();
            assert!(
                (mean - cardinality).abs() < 1e-9 * labels as f64,
                "{labels} {cardinality}: {mean}"
            );
        }
    }

    #[test]
    fn sets_are_found_by_row_and_by_label() {
        let sets = LabelSets::new(4, [0, 2, 2, 0, 1, 2].map(LabelId).to_vec(), vec![2, 2, 3, 6]);
        assert_eq!(sets.sizes().collect::<Vec<_>>(), [2, 0, 1, 3]);
        let rows: Vec<&[u32]> = LabelId::all(4).map(|label| sets.rows_with(label)).collect();
        assert_eq!(rows, [&[0, 3][..], &[3], &[0, 2, 3], &[]]);
    }

    #[test]
    fn sets_are_ascending_and_leave_the_scratch_space_clean() {
        let model = LabelModel::new(7, 6.5, Sequence(1));
        let (mut taken, mut ids) = (vec![false; 7], Vec::new());
        for row in 0..500 {
            ids.clear();
            model.draw(Sequence(row), &mut taken, &mut ids);
            assert!(ids.windows(2).all(|w| w[0] < w[1]), "{ids:?}");
            assert!(taken.iter().all(|t| !t));
        }
    }

    #[test]
    fn labels_of_a_topic_occur_together() {
        let model = LabelModel::new(30, 3.0, Sequence(5));
        let mut topic = [0; 30];
        for (slot, id) in model.slots.iter().enumerate() {
            topic[id.index()] = model.topic_of_slot[slot];
        }
        let (mut same, mut pairs) = (0, 0);
        for row in 0..2_000 {
            let (mut taken, mut ids) = (vec![false; 30], Vec::new());
            model.draw(Sequence(row), &mut taken, &mut ids);
            for pair in ids.windows(2) {
                pairs += 1;
                same += usize::from(topic[pair[0].index()] == topic[pair[1].index()]);
            }
        }
        // Five topics of six labels: independent labels would share one in less than a quarter of pairs.
        assert!(same as f64 / pairs as f64 > 0.45, "{same} of {pairs}");
    }
}
