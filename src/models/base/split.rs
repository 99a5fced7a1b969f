//! Random choices that are functions of seed and row content.

use crate::math::content_hash;

/// More copies of a row than this are drawn at once.
const MANY: u64 = 256;

/// What a choice is for: choices for one purpose do not depend on those for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::models) enum Purpose {
    /// Rows on which thresholds are tuned.
    Threshold = 1,
    /// Rows on which the weight of a penalty is chosen.
    Lambda = 2,
    /// Parts of a cross-validation for probabilities.
    Calibration = 3,
    /// Bags of an ensemble.
    Bag = 4,
}

/// The part, of `parts`, that the row with content hash `key` belongs to.
///
/// Rows with equal features have equal keys and share a part, so that no copy of a held-out row is
/// learned from.
pub(in crate::models) fn held_out(seed: u64, purpose: Purpose, key: u64, parts: u64) -> u64 {
    draw(seed, purpose, key, 0) % parts
}

/// How often the rows with content hash `key`, of which there are `copies`, are in bag `bag`: each is
/// drawn by itself, Poisson with mean 1, which is what drawing with replacement tends to.
pub(in crate::models) fn bag_weight(seed: u64, bag: u32, key: u64, copies: u64) -> f64 {
    let uniform = |copy: u64| {
        let hash = draw(seed, Purpose::Bag, key, (u64::from(bag) << 32) | copy);
        (hash >> 11) as f64 / (1u64 << 53) as f64
    };
    if copies > MANY {
        // The normal distribution that the sum tends to, by Box and Muller.
        let n = copies as f64;
        let angle = 2.0 * std::f64::consts::PI * uniform(1);
        let deviation = (-2.0 * (1.0 - uniform(0)).ln()).sqrt() * angle.cos();
        return (n + n.sqrt() * deviation).round().max(0.0);
    }
    (0..copies).map(|copy| poisson(uniform(copy))).sum()
}

/// The Poisson number of mean 1 at the quantile `uniform`.
fn poisson(uniform: f64) -> f64 {
    let (mut k, mut mass) = (0.0, (-1.0f64).exp());
    let mut below = mass;
    while uniform >= below && k < 20.0 {
        k += 1.0;
        mass /= k;
        below += mass;
    }
    k
}

fn draw(seed: u64, purpose: Purpose, key: u64, number: u64) -> u64 {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&(purpose as u64).to_le_bytes());
    bytes[8..16].copy_from_slice(&key.to_le_bytes());
    bytes[16..].copy_from_slice(&number.to_le_bytes());
    content_hash(seed, &bytes) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bags_are_poisson_and_depend_on_seed_bag_and_row() {
        let n = 20_000u64;
        let mut counts = [0.0; 4];
        let mut sum = 0.0;
        for key in 0..n {
            let weight = bag_weight(7, 2, key, 1);
            sum += weight;
            if let Some(slot) = counts.get_mut(weight as usize) {
                *slot += 1.0 / n as f64;
            }
        }
        assert!((sum / n as f64 - 1.0).abs() < 0.03, "{sum}");
        for (found, expected) in counts.iter().zip([0.3679, 0.3679, 0.1839, 0.0613]) {
            assert!((found - expected).abs() < 0.012, "{counts:?}");
        }
        let weights = |seed: u64, bag: u32| (0..50).map(move |k| bag_weight(seed, bag, k, 1));
        assert!(weights(7, 2).eq(weights(7, 2)));
        assert!(!weights(7, 2).eq(weights(7, 3)));
        assert!(!weights(7, 2).eq(weights(8, 2)));
    }

    #[test]
    fn copies_are_drawn_one_by_one() {
        for copies in [50, 256, 257, 10_000] {
            let drawn: Vec<f64> = (0..2_000).map(|key| bag_weight(7, 2, key, copies)).collect();
            let (n, draws) = (copies as f64, drawn.len() as f64);
            let mean = drawn.iter().sum::<f64>() / draws;
            let variance = drawn.iter().map(|w| (w - mean) * (w - mean)).sum::<f64>() / draws;
            assert!((mean / n - 1.0).abs() < 4.0 / (n * draws).sqrt(), "{copies}: {mean}");
            assert!((variance / n - 1.0).abs() < 0.15, "{copies}: {variance}");
            assert!(drawn.iter().all(|w| w.fract() == 0.0), "{copies}");
        }
    }

    #[test]
    fn parts_are_of_one_size() {
        let mut sizes = [0; 4];
        (0..8_000).for_each(|k| sizes[held_out(1, Purpose::Lambda, k, 4) as usize] += 1);
        assert!(sizes.iter().all(|n| (1_850..2_150).contains(n)), "{sizes:?}");
    }
}
