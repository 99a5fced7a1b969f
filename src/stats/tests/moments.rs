//! [`GroupMoments`] against a naive two-pass computation, on data that is hard on it.

use super::super::{GroupMoments, Moment};
use crate::data::Rows;

/// Numbers between -1 and 1 that look random.
fn noise(i: usize) -> f64 {
    let mut x = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((x ^ (x >> 29)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Rows of one feature with the groups of each.
type Data = Vec<(f64, Vec<u32>)>;

fn block(data: &[(f64, Vec<u32>)]) -> Rows {
    Rows {
        len: data.len(),
        dense: data.iter().map(|r| r.0).collect(),
        dense_width: 1,
        dense_missing: data.iter().any(|r| r.0.is_nan()),
        ..Rows::default()
    }
}

/// The moments of `data`, observed in blocks of `size` rows.
fn observed(data: &Data, size: usize) -> GroupMoments {
    let mut moments = GroupMoments::default();
    for rows in data.chunks(size) {
        moments.observe(&block(rows), |r| &rows[r].1);
    }
    moments
}

/// Two passes, each about a value near the mean, so that nothing cancels.
fn two_pass(data: &Data, group: u32) -> Moment {
    let of_group = |(x, groups): &&(f64, Vec<u32>)| groups.contains(&group) && !x.is_nan();
    let values: Vec<f64> = data.iter().filter(of_group).map(|r| r.0).collect();
    let Some(&start) = values.first() else { return Moment::default() };
    let n = values.len() as f64;
    let offset = values.iter().map(|x| x - start).sum::<f64>() / n;
    let about: Vec<f64> = values.iter().map(|x| (x - start) - offset).collect();
    let rest = about.iter().sum::<f64>() / n;
    let m2 = about.iter().map(|d| (d - rest) * (d - rest)).sum();
    Moment { n, mean: start + (offset + rest), m2 }
}

/// Mean within 1e-12 of the root mean square, variance within 1e-12 of itself; a constant group has
/// a standard deviation below 1e-12 of its value.
#[track_caller]
fn assert_tight(found: Moment, expected: Moment) {
    assert_eq!(found.n, expected.n);
    let scale = (expected.mean * expected.mean + expected.m2 / expected.n.max(1.0)).sqrt();
    let mean = (found.mean - expected.mean).abs();
    assert!(mean <= 1e-12 * scale, "mean {} for {}", found.mean, expected.mean);
    if expected.m2 > 0.0 {
        let m2 = (found.m2 - expected.m2).abs();
        assert!(m2 <= 1e-12 * expected.m2, "m2 {} for {}", found.m2, expected.m2);
    } else {
        assert!(found.m2 >= 0.0 && found.m2.sqrt() <= 1e-12 * scale, "m2 {} for 0", found.m2);
    }
}

#[track_caller]
fn assert_one_pass(data: &Data, groups: u32) {
    let moments = observed(data, data.len());
    (0..groups).for_each(|g| assert_tight(moments.get(g, 0), two_pass(data, g)));
}

/// Rows that are in one, two or no groups of four, with every `holes`-th value missing.
fn overlapping(offset: f64, spread: f64, holes: usize) -> Data {
    (0..400)
        .map(|i| {
            let x = if i % holes == holes - 1 { f64::NAN } else { offset + spread * noise(i) };
            let groups = match i % 5 {
                0 => vec![],
                1 => vec![0, 3],
                g => vec![g as u32 - 1],
            };
            (x, groups)
        })
        .collect()
}

#[test]
fn plain_data_with_and_without_holes() {
    assert_one_pass(&overlapping(0.0, 1.0, usize::MAX), 5);
    assert_one_pass(&overlapping(3.0, 10.0, 7), 5);
    assert_one_pass(&overlapping(0.0, 1.0, 1), 5);
}

#[test]
fn a_large_offset() {
    assert_one_pass(&overlapping(1e8, 1.0, usize::MAX), 5);
    assert_one_pass(&overlapping(-1e8, 1.0, 9), 5);
}

#[test]
fn a_large_offset_in_small_blocks() {
    // Merging keeps a mean as one number: 1e-12 times the condition number of 1e8.
    let data = overlapping(1e8, 1.0, 9);
    for size in [1, 2, 7, 64] {
        let moments = observed(&data, size);
        for g in 0..4 {
            let (found, expected) = (moments.get(g, 0), two_pass(&data, g));
            assert_eq!(found.n, expected.n);
            assert!((found.mean - expected.mean).abs() <= 1e-12 * expected.mean.abs());
            assert!((found.m2 / expected.m2 - 1.0).abs() <= 1e-6, "blocks of {size}");
        }
    }
}

#[test]
fn one_group_far_away() {
    let mut data = overlapping(0.0, 1.0, 11);
    data.iter_mut().filter(|r| r.1 == [2]).for_each(|r| r.0 += 1e8);
    assert_one_pass(&data, 5);
}

#[test]
fn constant_groups() {
    let mut data = overlapping(0.0, 1.0, 11);
    data.iter_mut().filter(|r| r.1 == [2]).for_each(|r| r.0 = 0.1);
    data.iter_mut().filter(|r| r.1 == [1]).for_each(|r| r.0 = -123.456);
    assert_one_pass(&data, 5);
    assert_one_pass(&vec![(0.1, vec![0]); 1000], 1);
    assert_one_pass(&vec![(0.0, vec![0, 1]); 3], 2);
}

#[test]
fn one_outlier() {
    let mut data = overlapping(5.0, 1.0, 11);
    data[2].0 = 1e10;
    assert_eq!(data[2].1, [1]);
    assert_one_pass(&data, 5);
}

#[test]
fn a_group_seen_once_keeps_its_value_beside_an_outlier() {
    let data = vec![(0.1, vec![0]), (1e10, vec![1]), (1e10, vec![1])];
    assert_one_pass(&data, 2);
}

#[test]
fn any_cut_equals_one_pass_beside_an_outlier() {
    // Blocks of two rows, each with one row of the small group and one of the far one.
    let far = |i: usize| 1e10 * (1.0 + 0.1 * noise(i));
    let data: Data =
        (0..40).map(|i| if i % 2 == 0 { (noise(i), vec![0]) } else { (far(i), vec![1]) }).collect();
    let moments = observed(&data, 2);
    let (found, expected) = (moments.get(0, 0), two_pass(&data, 0));
    assert!((found.mean - expected.mean).abs() <= 1e-12, "{found:?} for {expected:?}");
    assert!((found.m2 / expected.m2 - 1.0).abs() <= 1e-12, "{found:?} for {expected:?}");
}

#[test]
fn a_huge_value_in_one_group_leaves_the_others_alone() {
    for huge in [1e18, 1e20, 1e25, 1e100, 1e300] {
        let mut data: Data = (0..7).map(|i| (1.0 + noise(i), vec![0])).collect();
        data.push((1.1 * huge, vec![1]));
        data.push((1.37 * huge, vec![1]));
        assert_tight(observed(&data, data.len()).get(0, 0), two_pass(&data, 0));
    }
}

#[test]
fn huge_values_stay_finite() {
    for (a, b) in [(1e300, -1e300), (1e300, 1e300), (f64::MAX, -f64::MAX), (f64::MAX, 1.0)] {
        let data = vec![(a, vec![0]), (b, vec![0, 1]), (1.0, vec![1]), (b, vec![0])];
        for size in 1..=4 {
            let mut moments = observed(&data, size);
            moments.merge(&observed(&data, 4));
            for g in 0..2 {
                let m = moments.get(g, 0);
                assert!(m.n > 0.0 && m.mean.is_finite() && m.m2.is_finite(), "{m:?}");
                assert!(m.m2 >= 0.0 && m.variance().is_some_and(f64::is_finite));
            }
        }
    }
}

#[test]
fn missing_values_leave_other_features_alone() {
    let rows = Rows {
        len: 3,
        dense: vec![1.0, f64::NAN, 3.0, 7.0, f64::NAN, 9.0],
        dense_width: 2,
        dense_missing: true,
        ..Rows::default()
    };
    let mut moments = GroupMoments::default();
    moments.observe(&rows, |_| &[4]);
    assert_eq!(moments.get(4, 0), Moment { n: 2.0, mean: 2.0, m2: 2.0 });
    assert_eq!(moments.get(4, 1), Moment { n: 2.0, mean: 8.0, m2: 2.0 });
    assert_eq!((moments.groups(), moments.width()), (5, 2));
    assert_eq!(moments.get(9, 0), Moment::default());
}

#[test]
fn what_decayed_to_nothing_leaves_no_mean() {
    let one = |x: f64| vec![(x, vec![0])];
    let mut moments = observed(&one(1e15), 1);
    moments.decay(0.0);
    let rows = one(0.3);
    moments.observe(&block(&rows), |r| &rows[r].1);
    assert_eq!(moments.get(0, 0), Moment::of(0.3));
}
