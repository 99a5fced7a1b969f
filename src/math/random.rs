//! Numbers without pattern, the same everywhere.
//!
//! # References
//!
//! Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014 (SplitMix64).

/// The step of a SplitMix64 sequence: 2^64 divided by the golden ratio, odd.
pub(crate) const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Scrambles `z` so that every output bit depends on every input bit; a bijection.
#[inline]
pub(crate) fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A SplitMix64 sequence, from the number it starts at.
#[derive(Debug, Clone)]
pub(crate) struct Sequence(pub(crate) u64);

impl Sequence {
    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number in `[0, 1)`, a multiple of 2^-53.
    #[inline]
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// An index in `0..n`; 0 when `n` is 0. The bias is below `n` / 2^64.
    #[inline]
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// True with probability `p`.
    #[inline]
    pub(crate) fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// `size` or `-size`.
    pub(crate) fn either_sign(&mut self, size: f64) -> f64 {
        if self.chance(0.5) { size } else { -size }
    }

    /// `value`, or `None` with probability `missing`.
    #[cfg(test)]
    pub(crate) fn unless<T>(
        &mut self,
        missing: f64,
        value: impl FnOnce(&mut Self) -> T,
    ) -> Option<T> {
        if self.chance(missing) { None } else { Some(value(self)) }
    }

    /// Puts `items` in random order (Fisher-Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_on_every_platform() {
        assert_eq!(mix(1), 0x5692_161D_100B_05E5);
        let mut sequence = Sequence(0);
        // The first two outputs of the reference SplitMix64 with seed 0.
        assert_eq!(sequence.next(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(sequence.next(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn below_covers_its_range_and_shuffle_permutes() {
        let mut sequence = Sequence(3);
        let mut seen = [0usize; 5];
        (0..1_000).for_each(|_| seen[sequence.below(5)] += 1);
        assert!(seen.iter().all(|&n| n > 140), "{seen:?}");
        assert_eq!(sequence.below(0), 0);
        let mut items: Vec<usize> = (0..50).collect();
        sequence.shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<_>>());
    }
}
