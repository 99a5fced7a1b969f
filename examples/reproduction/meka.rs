//! What MEKA leaves to chance: the generator of Java, and the folds, bags and orders that come of it.

use labelflow::evaluate::{Protocol, Split};

/// `java.util.Random`: a linear congruence of 48 bits.
pub struct Random(u64);

impl Random {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;

    pub fn new(seed: u64) -> Self {
        Random((seed ^ Self::MULTIPLIER) & Self::MASK)
    }

    /// The upper 31 bits of the next state.
    fn bits(&mut self) -> u64 {
        self.0 = (self.0.wrapping_mul(Self::MULTIPLIER).wrapping_add(0xB)) & Self::MASK;
        self.0 >> 17
    }

    /// A number below `n`, which is positive and below 2^31.
    fn below(&mut self, n: u64) -> u64 {
        if n.is_power_of_two() {
            return (n * self.bits()) >> 31;
        }
        loop {
            let bits = self.bits();
            if bits - bits % n + n <= 1 << 31 {
                return bits % n;
            }
        }
    }

    /// The numbers up to `n` in the order that MEKA and Weka shuffle them into.
    pub fn shuffled(&mut self, n: usize) -> Vec<u32> {
        let mut numbers: Vec<u32> = (0..n as u32).collect();
        for last in (1..n).rev() {
            numbers.swap(last, self.below(last as u64 + 1) as usize);
        }
        numbers
    }

    /// As many draws of `n` rows, with replacement.
    pub fn bag(&mut self, n: usize) -> Vec<u32> {
        let mut bag: Vec<u32> = (0..n).map(|_| self.below(n as u64) as u32).collect();
        bag.sort_unstable();
        bag
    }
}

/// The rounds of MEKA's Explorer: rows shuffled with seed 1, then cut into slices.
pub fn splits(protocol: &Protocol, rows: usize) -> Vec<Split> {
    let order = Random::new(1).shuffled(rows);
    let split = |from: usize, to: usize| Split {
        train: [&order[..from], &order[to..]].concat(),
        test: order[from..to].to_vec(),
    };
    match *protocol {
        Protocol::HoldOut { train, .. } => vec![split((rows as f64 * train) as usize, rows)],
        Protocol::Folds { folds, .. } => {
            // The first folds have the rows that are left over.
            let start = |fold: usize| fold * (rows / folds) + fold.min(rows % folds);
            (0..folds).map(|fold| split(start(fold), start(fold + 1))).collect()
        }
    }
}
