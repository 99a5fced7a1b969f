//! Has the mean of a stream of numbers changed?

use crate::error::{Error, Result};
use crate::stats::{Cell, Moment};
use std::collections::VecDeque;

/// Buckets of one length; one more and the two oldest become one of double length.
const BUCKETS: usize = 5;
/// Values between two looks for a change.
const EVERY: u64 = 32;
/// The least number of values on either side of a change.
const LEAST: f64 = 5.0;

/// A change of the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The mean before.
    pub from: f64,
    /// The mean since.
    pub to: f64,
}

/// ADWIN: a window that grows while its mean stays, and drops its oldest part when it does not.
///
/// A cut of the window into an old part of n0 values and a new one of n1 is a change when the means
/// differ by more than `sqrt(2 v ln(2 / d) / m) + 2 ln(2 / d) / (3 m)` with `1 / m = 1 / n0 + 1 / n1`,
/// `v` the variance of the window and `d = delta / ln n`.
///
/// # Cost
///
/// Memory and a look for changes: O(log n) of the window. A value costs O(1) on average.
///
/// # Examples
///
/// ```
/// use labelflow::stream::Adwin;
///
/// let mut adwin = Adwin::new(0.002);
/// assert!((0..1000).all(|i| adwin.observe(f64::from(i % 10 == 0)).is_none()));
/// let change = (0..1000).find_map(|i| adwin.observe(f64::from(i % 2 == 0))).unwrap();
/// assert!(change.from < 0.2 && change.to > 0.4);
/// ```
///
/// # References
///
/// A. Bifet, R. Gavaldà: Learning from Time-Changing Data with Adaptive Windowing. SDM 2007,
/// section 3 (ADWIN2).
#[derive(Debug, Clone, PartialEq)]
pub struct Adwin {
    delta: f64,
    /// Buckets of 1, 2, 4, ... values, each oldest first.
    levels: Vec<VecDeque<Moment>>,
    seen: u64,
}

impl Adwin {
    /// A detector that is wrong with a probability of about `delta`.
    pub fn new(delta: f64) -> Self {
        Adwin { delta, levels: Vec::new(), seen: 0 }
    }

    /// Adds a value; returns the change it made apparent.
    pub fn observe(&mut self, value: f64) -> Option<Change> {
        self.add(0, Moment::of(value));
        self.seen += 1;
        if self.seen.is_multiple_of(EVERY) { self.shrink() } else { None }
    }

    fn add(&mut self, level: usize, bucket: Moment) {
        if level == self.levels.len() {
            self.levels.push(VecDeque::new());
        }
        let buckets = &mut self.levels[level];
        buckets.push_back(bucket);
        if buckets.len() > BUCKETS
            && let (Some(mut oldest), Some(next)) = (buckets.pop_front(), buckets.pop_front())
        {
            oldest.add(&next);
            self.add(level + 1, oldest);
        }
    }

    /// Drops the oldest bucket as long as some cut of the window is a change.
    fn shrink(&mut self) -> Option<Change> {
        let mut found: Option<Change> = None;
        while let Some(change) = self.cut() {
            let from = found.map_or(change.from, |first| first.from);
            found = Some(Change { from, to: change.to });
            if let Some(last) = self.levels.last_mut() {
                last.pop_front();
            }
            while self.levels.last().is_some_and(VecDeque::is_empty) {
                self.levels.pop();
            }
        }
        found
    }

    /// The first cut, from the oldest on, that is a change.
    fn cut(&self) -> Option<Change> {
        let all = self.window();
        if all.n < 2.0 * LEAST {
            return None;
        }
        let variance = all.m2 / all.n;
        let confidence = (2.0 * all.n.ln() / self.delta).ln();
        let mut old = Moment::default();
        for bucket in self.levels.iter().rev().flatten() {
            old.add(bucket);
            let n = all.n - old.n;
            if old.n < LEAST || n < LEAST {
                continue;
            }
            let new = (all.mean * all.n - old.mean * old.n) / n;
            let inverse = 1.0 / old.n + 1.0 / n;
            let bound =
                (2.0 * inverse * variance * confidence).sqrt() + 2.0 / 3.0 * inverse * confidence;
            if (old.mean - new).abs() > bound {
                return Some(Change { from: old.mean, to: new });
            }
        }
        None
    }

    fn window(&self) -> Moment {
        let mut all = Moment::default();
        self.levels.iter().rev().flatten().for_each(|bucket| all.add(bucket));
        all
    }

    /// The mean of the window.
    pub fn mean(&self) -> f64 {
        self.window().mean
    }

    /// How many values the window has.
    pub fn width(&self) -> u64 {
        self.window().n as u64
    }

    /// The state as numbers: values seen, buckets of each level, then each bucket.
    pub(super) fn numbers(&self) -> Vec<f64> {
        let mut out = vec![self.seen as f64, self.levels.len() as f64];
        out.extend(self.levels.iter().map(|l| l.len() as f64));
        out.extend(self.levels.iter().flatten().flat_map(|b| [b.n, b.mean, b.m2]));
        out
    }

    /// The detector with this state.
    pub(super) fn from_numbers(delta: f64, numbers: &[f64]) -> Result<Self> {
        let unfit = || Error::corrupt("the state of a drift detector is cut short");
        let whole = |i: usize| numbers.get(i).map(|n| *n as usize).ok_or_else(unfit);
        let levels = whole(1)?;
        let mut at = 2 + levels;
        if at > numbers.len() {
            return Err(unfit());
        }
        let mut adwin = Adwin { delta, levels: Vec::new(), seen: whole(0)? as u64 };
        for level in 0..levels {
            let mut buckets = VecDeque::new();
            for _ in 0..whole(2 + level)?.min(BUCKETS) {
                let Some(&[n, mean, m2]) = numbers.get(at..at + 3) else {
                    return Err(unfit());
                };
                let cell = [n, mean, m2];
                buckets.push_back(Moment::from_columns(|c| cell[c]));
                at += 3;
            }
            adwin.levels.push(buckets);
        }
        Ok(adwin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fixed sequence that looks random.
    fn rolls(seed: u64) -> impl Iterator<Item = f64> {
        let mut state = seed;
        std::iter::from_fn(move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            Some((state >> 33) as f64 / (1u64 << 31) as f64)
        })
    }

    #[test]
    fn finds_a_change_soon_and_forgets_what_was_before() {
        let mut adwin = Adwin::new(0.002);
        let mut dice = rolls(1);
        for _ in 0..5000 {
            let error = dice.next().unwrap() < 0.2;
            assert_eq!(adwin.observe(f64::from(error)), None);
        }
        let at = (0..1000).find(|_| {
            let error = dice.next().unwrap() < 0.6;
            adwin.observe(f64::from(error)).is_some()
        });
        assert!(at.is_some_and(|at| at < 200), "{at:?}");
        for _ in 0..500 {
            adwin.observe(f64::from(dice.next().unwrap() < 0.6));
        }
        assert!((adwin.mean() - 0.6).abs() < 0.1 && adwin.width() < 1500, "{}", adwin.mean());
    }

    #[test]
    fn false_alarms_are_rare() {
        let mut alarms = 0;
        for seed in 0..100 {
            let mut adwin = Adwin::new(0.002);
            let errors = rolls(seed).take(5000).map(|u| f64::from(u < 0.3));
            alarms += errors.filter_map(|e| adwin.observe(e)).count();
        }
        assert!(alarms <= 3, "{alarms}");
    }

    #[test]
    fn the_window_is_what_was_seen_since_the_change_and_memory_is_logarithmic() {
        let mut adwin = Adwin::new(0.002);
        let values: Vec<f64> = rolls(3).take(10_000).collect();
        values.iter().for_each(|&v| assert_eq!(adwin.observe(v), None));
        assert_eq!(adwin.width(), 10_000);
        let mean = values.iter().sum::<f64>() / 10_000.0;
        assert!((adwin.mean() - mean).abs() < 1e-12);
        assert!(adwin.levels.iter().map(VecDeque::len).sum::<usize>() < 70);
        let back = Adwin::from_numbers(0.002, &adwin.numbers()).unwrap();
        assert_eq!(back, adwin);
        assert!(Adwin::from_numbers(0.002, &adwin.numbers()[..9]).is_err());
    }
}
