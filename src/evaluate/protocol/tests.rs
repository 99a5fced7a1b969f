//! Divisions of rows, and how well labels are balanced in them.

use super::*;
use crate::data::{Id, LabelId};
use crate::math::content_hash;

/// Label sets of `rows` rows over `labels` labels, label y being in about one of 2 + 3 y rows.
fn sets(rows: usize, labels: u32) -> LabelSets {
    let mut sets = LabelSets::default();
    for row in 0..rows {
        let has = |y: &u32| {
            let key = ((row as u64) << 32) | u64::from(*y);
            content_hash(77, &key.to_le_bytes()).is_multiple_of(u128::from(2 + 3 * y))
        };
        sets.push((0..labels).filter(has).map(LabelId));
    }
    sets
}

const ALL: [Stratify; 3] = [Stratify::None, Stratify::Iterative, Stratify::Rarest];

/// Rows of each label among `rows`.
fn counts(truth: &LabelSets, rows: &[u32], labels: u32) -> Vec<f64> {
    let mut counts = vec![0.0; labels as usize];
    for &row in rows {
        truth.row(row as usize).iter().for_each(|y| counts[y.index()] += 1.0);
    }
    counts
}

#[test]
fn every_row_tests_once_and_never_trains_then() {
    let truth = sets(103, 6);
    for stratify in ALL {
        let splits = Protocol::Folds { folds: 4, repeats: 3 }.splits(&truth, stratify, 1).unwrap();
        assert_eq!(splits.len(), 12);
        assert_eq!(Protocol::Folds { folds: 4, repeats: 3 }.rounds(), 12);
        let hold_out = Protocol::HoldOut { train: 0.66, repeats: 5 };
        let splits_once = hold_out.splits(&truth, stratify, 1).unwrap();
        assert_eq!(splits_once.len(), hold_out.rounds());
        for repeat in splits.chunks(4) {
            let mut tested: Vec<u32> = repeat.iter().flat_map(|s| s.test.clone()).collect();
            tested.sort_unstable();
            assert_eq!(tested, (0..103).collect::<Vec<u32>>());
            for split in repeat {
                let mut both = [split.train.clone(), split.test.clone()].concat();
                both.sort_unstable();
                assert_eq!(both, (0..103).collect::<Vec<u32>>());
            }
        }
        assert_ne!(splits[..4], splits[4..8], "{stratify}");
        let again = Protocol::Folds { folds: 4, repeats: 3 }.splits(&truth, stratify, 1).unwrap();
        assert_eq!(splits, again, "{stratify}");
        let other = Protocol::folds(4).splits(&truth, stratify, 2).unwrap();
        assert_ne!(splits[..4], other, "{stratify}");
    }
}

/// Folds of a seed are the same in every version.
#[test]
fn folds_are_fixed() {
    let splits = Protocol::folds(3).splits(&sets(10, 3), Stratify::None, 1).unwrap();
    let tests: Vec<&[u32]> = splits.iter().map(|s| &s.test[..]).collect();
    assert_eq!(tests, [&[3, 4, 6, 9][..], &[1, 2, 5], &[0, 7, 8]]);
}

#[test]
fn hold_outs_have_their_share() {
    let truth = sets(100, 5);
    for stratify in [Stratify::None, Stratify::Rarest] {
        let splits =
            Protocol::HoldOut { train: 0.66, repeats: 3 }.splits(&truth, stratify, 1).unwrap();
        assert_eq!(splits.len(), 3);
        assert!(splits.iter().all(|s| s.train.len() == 66 && s.test.len() == 34), "{stratify}");
        assert_ne!(splits[0], splits[1]);
    }
    let splits = Protocol::HoldOut { train: 0.66, repeats: 3 }
        .splits(&truth, Stratify::Iterative, 1)
        .unwrap();
    assert!(splits.iter().all(|s| s.train.len().abs_diff(66) <= 3));
}

/// The measure of Sechidis et al. (Label Distribution): how far the odds of each label in a part
/// are from those in all rows, mean of labels and parts.
fn label_distribution(truth: &LabelSets, splits: &[Split], labels: u32) -> f64 {
    let all: Vec<u32> = (0..truth.len() as u32).collect();
    let odds = |rows: &[u32]| -> Vec<f64> {
        let of = |n: f64| n / (rows.len() as f64 - n);
        counts(truth, rows, labels).into_iter().map(of).collect()
    };
    let whole = odds(&all);
    let far = |split: &Split| -> f64 {
        odds(&split.test).iter().zip(&whole).map(|(a, b)| (a - b).abs()).sum::<f64>()
    };
    splits.iter().map(far).sum::<f64>() / (splits.len() as f64 * f64::from(labels))
}

#[test]
fn strata_balance_labels() {
    let (truth, labels) = (sets(600, 12), 12);
    let distance = |stratify: Stratify, seed: u64| {
        let splits = Protocol::folds(10).splits(&truth, stratify, seed).unwrap();
        label_distribution(&truth, &splits, labels)
    };
    for seed in 0..5 {
        let [none, iterative, rarest] = ALL.map(|s| distance(s, seed));
        assert!(iterative < 0.35 * none, "{iterative} {none}");
        assert!(rarest < 0.85 * none, "{rarest} {none}");
    }
}

#[test]
fn iterative_strata_give_each_fold_its_rows_of_rare_labels() {
    // Label 0 in ten rows of 500: each of ten folds tests one, whatever the seed.
    let mut truth = LabelSets::default();
    for row in 0..500u32 {
        let has = |&y: &u32| if y == 0 { row % 50 == 7 } else { row.is_multiple_of(y + 1) };
        truth.push((0..4).filter(has).map(LabelId));
    }
    for stratify in [Stratify::Iterative, Stratify::Rarest] {
        for seed in 0..20 {
            for split in Protocol::folds(10).splits(&truth, stratify, seed).unwrap() {
                assert_eq!(counts(&truth, &split.test, 4)[0], 1.0, "{stratify}");
            }
        }
    }
}

#[test]
fn rows_without_labels_are_a_stratum() {
    let mut truth = LabelSets::default();
    (0..90).for_each(|row| truth.push((row % 3 == 0).then_some(LabelId(0))));
    for stratify in [Stratify::Iterative, Stratify::Rarest] {
        for split in Protocol::folds(5).splits(&truth, stratify, 3).unwrap() {
            assert_eq!(split.test.len(), 18, "{stratify}");
            assert_eq!(counts(&truth, &split.test, 1), [6.0], "{stratify}");
        }
        let half = Protocol::HoldOut { train: 0.5, repeats: 1 };
        let split = &half.splits(&truth, stratify, 3).unwrap()[0];
        assert_eq!(counts(&truth, &split.test, 1), [15.0], "{stratify}");
        assert_eq!(split.test.len(), 45, "{stratify}");
    }
}

/// The part of each row by Algorithm 1 as printed: every label counted anew in each step. Ties are
/// left out of the comparison by giving each part its own share.
#[test]
fn iterative_strata_follow_the_algorithm() {
    let (truth, labels) = (sets(40, 5), 5u32);
    let train = 0.61803;
    let shares = [train, 1.0 - train];
    let protocol = Protocol::HoldOut { train, repeats: 1 };
    for seed in 0..10 {
        let split = &protocol.splits(&truth, Stratify::Iterative, seed).unwrap()[0];
        let order = {
            let mut order: Vec<u32> = (0..40).collect();
            order.sort_by_key(|row| content_hash(seed, &row.to_le_bytes()));
            order
        };
        let mut rest = order;
        let mut parts = [Vec::new(), Vec::new()];
        let all: Vec<u32> = (0..40).collect();
        let mut wanted =
            shares.map(|s| counts(&truth, &all, labels).iter().map(|n| s * n).collect::<Vec<_>>());
        let mut rows = shares.map(|s| 40.0 * s);
        while !rest.is_empty() {
            let left = counts(&truth, &rest, labels);
            let rarest = (0..labels as usize)
                .filter(|&y| left[y] > 0.0)
                .min_by(|&a, &b| left[a].total_cmp(&left[b]));
            let has = |row: &u32| {
                rarest.is_none_or(|y| truth.row(*row as usize).contains(&LabelId::new(y)))
            };
            let (now, later): (Vec<u32>, Vec<u32>) = rest.into_iter().partition(has);
            rest = later;
            for row in now {
                let wish = |p: usize| (rarest.map_or(0.0, |y| wanted[p][y]), rows[p]);
                let part = usize::from(wish(1) > wish(0));
                parts[part].push(row);
                rows[part] -= 1.0;
                truth.row(row as usize).iter().for_each(|y| wanted[part][y.index()] -= 1.0);
            }
        }
        parts.iter_mut().for_each(|p| p.sort_unstable());
        assert_eq!((&split.train, &split.test), (&parts[0], &parts[1]), "seed {seed}");
    }
}

#[test]
fn protocols_are_typed() {
    assert_eq!(
        "0.66x3".parse::<Protocol>().unwrap(),
        Protocol::HoldOut { train: 0.66, repeats: 3 }
    );
    assert_eq!("10".parse::<Protocol>().unwrap(), Protocol::folds(10));
    assert_eq!("5x2".parse::<Protocol>().unwrap().to_string(), "5 folds x 2");
    assert_eq!("0.5".parse::<Protocol>().unwrap().to_string(), "hold-out 0.5");
    for text in ["1.5", "1", "0", "0.5x0", "10x", "x3", "ten", "-3", "0.0", "1.0", "NaN"] {
        let error = text.parse::<Protocol>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{text}` is no protocol: write")), "{error}");
    }
    for stratify in ALL {
        assert_eq!(stratify.to_string().parse::<Stratify>().unwrap(), stratify);
    }
    let error = "all".parse::<Stratify>().unwrap_err().to_string();
    assert_eq!(error, "there is no stratification `all`; there are: none, iterative, rarest");
}

#[test]
fn parts_without_rows_are_refused() {
    let truth = sets(10, 3);
    let error = |protocol: Protocol, stratify| {
        protocol.splits(&truth, stratify, 1).unwrap_err().to_string()
    };
    for stratify in ALL {
        let folds = "--folds is 11: give a number from 2 to the number of rows, 10";
        assert_eq!(error(Protocol::folds(11), stratify), folds);
        let none = error(Protocol::HoldOut { train: 0.99, repeats: 1 }, stratify);
        assert_eq!(none, "--split 0.99 of 10 rows leaves no row to test");
        let none = error(Protocol::HoldOut { train: 0.01, repeats: 1 }, stratify);
        assert_eq!(none, "--split 0.01 of 10 rows leaves no row to learn from");
    }
}
