//! Random numbers that are a function of their address.
//!
//! Everything is integer arithmetic, additions, products and one scaling: no `ln`, `exp` or `cos`, whose last
//! bit differs between platforms. The same seed gives the same bytes everywhere.
//!
//! # References
//!
//! Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014 (SplitMix64).

/// The step of a SplitMix64 sequence: 2^64 divided by the golden ratio, odd.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// Scrambles `z` so that every output bit depends on every input bit; a bijection.
#[inline]
pub(super) fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The key of item `index` in the family of `seed`.
#[inline]
pub(super) fn key(seed: u64, index: u64) -> u64 {
    mix(mix(seed.wrapping_add(STEP)) ^ index.wrapping_add(1).wrapping_mul(STEP))
}

/// A value of mean 0 and variance 1 at the address `key`, close to normal.
///
/// The sum of eight uniform 16-bit numbers (Irwin-Hall) cut from two SplitMix64 outputs, plus 16 hashed bits as
/// the fraction, so that values hardly ever repeat. Against the normal: excess kurtosis -0.15, nothing beyond
/// 4.9 standard deviations. Chosen over Box-Muller because it has no branch, table or transcendental function.
#[inline]
pub(super) fn noise(key: u64) -> f64 {
    const LANES: u64 = 0x0000_FFFF_0000_FFFF;
    // The mean of the sum with its fraction, in units of 2^-16.
    const CENTRE: i64 = ((8 * 0xFFFF / 2) << 16) + (1 << 15);
    // 1 / deviation: the variance of the sum is 8 * 2^32 / 12, and sqrt(12 / 8) = 1.2247...
    const SCALE: f64 = 1.224_744_871_391_589 / (65_536.0 * 65_536.0);
    let a = mix(key);
    let b = mix(a.wrapping_add(STEP));
    let pairs = (a & LANES) + ((a >> 16) & LANES) + (b & LANES) + ((b >> 16) & LANES);
    let sum = (pairs & 0xFFFF_FFFF) + (pairs >> 32);
    let fraction = (a ^ b).wrapping_mul(STEP) >> 48;
    (((sum << 16) | fraction) as i64 - CENTRE) as f64 * SCALE
}

/// A SplitMix64 sequence.
#[derive(Debug, Clone)]
pub(super) struct Sequence(u64);

impl Sequence {
    /// The sequence that starts at `key`.
    #[inline]
    pub(super) fn new(key: u64) -> Self {
        Sequence(key)
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// A number in `[0, 1)`, a multiple of 2^-53.
    #[inline]
    pub(super) fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// An index in `0..n`; 0 when `n` is 0. The bias is below `n` / 2^64.
    #[inline]
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// True with probability `p`.
    #[inline]
    pub(super) fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// `size` or `-size`.
    pub(super) fn either_sign(&mut self, size: f64) -> f64 {
        if self.chance(0.5) { size } else { -size }
    }

    /// Puts `items` in random order (Fisher-Yates).
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_has_the_moments_it_promises() {
        let n = 400_000u64;
        let mut power = [0.0f64; 5];
        for i in 0..n {
            let x = noise(key(7, i));
            assert!(x.abs() < 4.9, "{x}");
            for (k, sum) in power.iter_mut().enumerate() {
                *sum += x.powi(k as i32) / n as f64;
            }
        }
        assert!(power[1].abs() < 0.01, "mean {}", power[1]);
        assert!((power[2] - 1.0).abs() < 0.01, "variance {}", power[2]);
        assert!(power[3].abs() < 0.02, "skewness {}", power[3]);
        assert!((power[4] - 2.85).abs() < 0.05, "kurtosis {}", power[4]);
    }

    #[test]
    fn values_are_the_same_on_every_platform() {
        assert_eq!(mix(1), 0x5692_161D_100B_05E5);
        let mut sequence = Sequence::new(0);
        // The first two outputs of the reference SplitMix64 with seed 0.
        assert_eq!(sequence.next(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(sequence.next(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn below_covers_its_range_and_shuffle_permutes() {
        let mut sequence = Sequence::new(3);
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
