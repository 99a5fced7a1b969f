//! The largest entries of a slice.

/// Writes the indices of the `k` largest `scores` into `out`, best first; ties go to the lower index.
///
/// `NaN` counts as the smallest value. `out` is cleared first and keeps its capacity.
///
/// # Cost
///
/// O(n + k log k) on average.
///
/// # Examples
///
/// ```
/// let mut out = Vec::new();
/// labelflow::math::top_k(&[0.1, 0.9, 0.5, 0.9], 3, &mut out);
/// assert_eq!(out, [1, 3, 2]);
/// ```
pub fn top_k(scores: &[f64], k: usize, out: &mut Vec<u32>) {
    out.clear();
    out.extend(0..scores.len() as u32);
    let key = |i: &u32| {
        let s = scores[*i as usize];
        if s.is_nan() { f64::NEG_INFINITY } else { s }
    };
    let order = |a: &u32, b: &u32| key(b).total_cmp(&key(a)).then(a.cmp(b));
    if k == 0 {
        out.clear();
    } else if k < out.len() {
        out.select_nth_unstable_by(k - 1, order);
        out.truncate(k);
    }
    out.sort_unstable_by(order);
}
