//! Orders, bags, thresholds, preparation, and counts that merge and unlearn.

use super::*;
use crate::store::to_bytes;

#[test]
fn orders_are_what_they_say() {
    let (labels, features) = dependent(300, 4);
    let scores = |spec: &str| log_odds(&train(spec, &labels, &features), &features);
    let relevance = scores("br");
    // The first label of a chain has no parents, so it scores as binary relevance does.
    let first = |spec: &str| -> Vec<usize> {
        let chain = scores(spec);
        let same =
            |y: &usize| (0..300).all(|r| (chain[4 * r + y] - relevance[4 * r + y]).abs() < 1e-4);
        (0..4).filter(same).collect()
    };
    assert_eq!(first("cc(order=given)"), [0]);
    assert_eq!(first("cc(order=given(l02, l01))"), [2]);
    let counts = train("br", &labels, &features).insight(0).label_counts;
    let most = (0..4).max_by(|&a, &b| counts[a].total_cmp(&counts[b])).unwrap();
    assert_eq!(first("cc(order=frequency)"), [most]);
    let orders: Vec<Vec<usize>> =
        (0..6).map(|s| first(&format!("cc(order=random({s}))"))).collect();
    assert!(orders.iter().any(|o| *o != orders[0]), "{orders:?}");
}

#[test]
fn a_random_order_without_a_seed_takes_that_of_the_model() {
    let (labels, features) = dependent(100, 6);
    for base in ["logistic", "naive_bayes"] {
        let scores = |parameters: &str| {
            let spec = format!("cc(base={base}{parameters})");
            log_odds(&train(&spec, &labels, &features), &features)
        };
        assert_eq!(scores(""), scores(", order=random(1)"));
        assert_eq!(scores(", seed=4"), scores(", order=random(4)"));
        assert_eq!(scores(", order=random, seed=4"), scores(", order=random(4)"));
        assert_ne!(scores(", seed=4"), scores(""));
    }
}

#[test]
fn what_was_chosen_for_each_label_is_told() {
    let (labels, features) = dependent(200, 4);
    let chosen = |spec: &str| train(spec, &labels, &features).insight(3).chosen;
    assert!(chosen("br").is_empty() && chosen("br(base=naive_bayes)").is_empty());
    for spec in ["br", "ecc"] {
        let tuned = chosen(&format!(
            "{spec}(threshold=tuned(macro_f1), base=logistic(lambda=grid(1, 0.1, 0.01)))"
        ));
        let [("threshold", thresholds), ("lambda", lambdas)] = &tuned[..] else {
            panic!("{tuned:?}");
        };
        assert!(thresholds.len() == 4 && thresholds.iter().all(|t| (0.0..=1.0).contains(t)));
        assert!(lambdas.len() == 4 && lambdas.iter().all(|l| [1.0, 0.1, 0.01].contains(l)));
    }
}

#[test]
fn tuned_thresholds_find_rare_labels() {
    // A label of one row in eight that the features only hint at: at one half it is never predicted.
    let rows = 800;
    let x: Vec<f64> = (0..rows).map(noise).collect();
    let on = |r: u64| noise(r) > 0.5 && noise(r + 5_000) < 0.25;
    let labels = label_lists((0..rows).map(|r| if on(r) { vec!["rare"] } else { vec![] }));
    let x = numbers(&[x]);
    let count = |spec: &str| {
        predicted(&train(spec, &labels, &x), &x).iter().filter(|set| !set.is_empty()).count()
    };
    assert_eq!(count("br"), 0);
    for metric in ["macro_f1", "micro_f1"] {
        let found = count(&format!("br(threshold=tuned({metric}))"));
        assert!((300..=500).contains(&found), "{metric}: {found}");
    }
    assert!(count("br(threshold=tuned(hamming_score))") < 40);
    assert_eq!(count("br(threshold=0)"), rows as usize);
}

#[test]
fn a_grid_picks_a_penalty_that_fits() {
    // Forty columns of noise and one that tells: a strong penalty is right.
    let rows = 80;
    let mut columns: Vec<Vec<f64>> =
        (0..40).map(|d| (0..rows).map(|r| noise(r * 40 + d) - 0.5).collect()).collect();
    let signal: Vec<f64> = (0..rows).map(|r| noise(r + 9_999) - 0.5).collect();
    let on = |r: u64| signal[r as usize] + 0.3 * (noise(r + 77_777) - 0.5) > 0.0;
    let labels = label_lists((0..rows).map(|r| if on(r) { vec!["a"] } else { vec![] }));
    columns.push(signal.clone());
    let x = numbers(&columns);
    let grid = train("br(base=logistic(lambda=grid(10, 1, 0.001)))", &labels, &x);
    let one = train("br(base=logistic(lambda=1))", &labels, &x);
    let weak = train("br(base=logistic(lambda=0.001))", &labels, &x);
    let (grid, one, weak) = (log_odds(&grid, &x), log_odds(&one, &x), log_odds(&weak, &x));
    let apart =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart(&grid, &one) < 1e-4, "{}", apart(&grid, &one));
    assert!(apart(&grid, &weak) > 1.0);
}

#[test]
fn a_grid_is_shared_where_held_out_rows_say_too_little() {
    // As above, with eight labels on two rows each: they get the penalty of the others.
    let rows = 80;
    let mut columns: Vec<Vec<f64>> =
        (0..40).map(|d| (0..rows).map(|r| noise(r * 40 + d) - 0.5).collect()).collect();
    let signal: Vec<f64> = (0..rows).map(|r| noise(r + 9_999) - 0.5).collect();
    let names: Vec<String> = (0..8).map(|y| format!("rare{y}")).collect();
    let set = |r: u64| {
        let on = signal[r as usize] + 0.3 * (noise(r + 77_777) - 0.5) > 0.0;
        let rare = (0..8u64).filter(|y| r == 7 * y + 3 || r == 5 * y + 40);
        let rare = rare.map(|y| names[y as usize].as_str());
        rare.chain(on.then_some("a")).collect::<Vec<_>>()
    };
    let labels = label_lists((0..rows).map(set));
    columns.push(signal.clone());
    let x = numbers(&columns);
    let grid = train("br(base=logistic(lambda=grid(10, 1, 0.001)))", &labels, &x);
    let one = train("br(base=logistic(lambda=1))", &labels, &x);
    let (grid, one) = (log_odds(&grid, &x), log_odds(&one, &x));
    let apart = grid.iter().zip(&one).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 1e-4, "{apart}");
}

#[test]
fn a_weight_is_a_number_of_copies() {
    let (labels, features) = dependent(60, 3);
    let weights: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..60).map(|r| f64::from(r % 4))));
    let copies = (0..60u32).flat_map(|r| std::iter::repeat_n(r, r as usize % 4));
    let copies: Vec<u32> = copies.collect();
    for spec in ["br", "cc(base=svm)", "ecc(chains=2, prepare=standard)"] {
        let mut weighted = Trainer::try_new(&Registry::default(), spec).unwrap();
        weighted.observe_weighted(&labels, &features, Some(&weights)).unwrap();
        let repeated =
            train(spec, &slice(&labels, copies.clone()), &slice(&features, copies.clone()));
        let weighted = weighted.finish().unwrap();
        assert_eq!(log_odds(&weighted, &features), log_odds(&repeated, &features), "{spec}");
    }
    let half: ArrayRef = Arc::new(Float64Array::from(vec![0.5; 60]));
    let mut refused = Trainer::try_new(&Registry::default(), "br").unwrap();
    let error = refused.observe_weighted(&labels, &features, Some(&half)).unwrap_err();
    assert!(error.to_string().contains("weight 0.5"), "{error}");
}

#[test]
fn tfidf_rows_have_unit_length() {
    let rows: Vec<Vec<f64>> =
        (0..40).map(|r| vec![f64::from(r % 4), f64::from(r % 3), 1.0]).collect();
    let labels = label_lists((0..40).map(|r| if r % 4 > 1 { vec!["a"] } else { vec![] }));
    let model = train("br(prepare=tfidf)", &labels, &maps(&rows));
    let scores = log_odds(&model, &maps(&[vec![2.0, 1.0, 1.0], vec![20.0, 10.0, 10.0]]));
    // Only proportions count.
    assert!((scores[0] - scores[1]).abs() < 1e-12, "{scores:?}");
    let scores = log_odds(&model, &maps(&[vec![3.0, 0.0, 1.0], vec![0.0, 2.0, 1.0]]));
    assert!(scores[0] > 0.0 && scores[1] < 0.0, "{scores:?}");
}

#[test]
fn missing_numbers_are_the_mean_and_missing_maps_are_empty() {
    let (labels, _) = dependent(30, 1);
    let x: Vec<Option<f64>> = (0..30).map(|r| (r % 5 != 0).then_some(f64::from(r))).collect();
    let known: Vec<f64> = x.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    let column = |values: Vec<Option<f64>>| -> ArrayRef {
        let values: ArrayRef = Arc::new(Float64Array::from(values));
        Arc::new(StructArray::try_from(vec![("x", values)]).unwrap())
    };
    let model = train("br", &labels, &column(x.clone()));
    let filled = train("br", &labels, &column(x.iter().map(|x| x.or(Some(mean))).collect()));
    let test = column(vec![None, Some(mean), Some(3.0)]);
    let (a, b) = (log_odds(&model, &test), log_odds(&filled, &test));
    assert!((a[0] - a[1]).abs() < 1e-12);
    // Imputation changes the deviation, not the objective of raw weights.
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5), "{a:?} {b:?}");
}

#[test]
fn counts_by_batches_by_partitions_and_at_once_are_one_model() {
    let (labels, features) = dependent(240, 5);
    for method in ["br", "cc", "ecc(chains=3", "pcc"] {
        let spec = match method.split_once('(') {
            Some((name, rest)) => format!("{name}({rest}, base=naive_bayes)"),
            None => format!("{method}(base=naive_bayes)"),
        };
        let whole = train(&spec, &labels, &features);
        let expected = log_odds(&whole, &features);
        let agrees = |model: &Model| {
            let found = log_odds(model, &features);
            let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-8, "{spec}: {worst}");
            assert_eq!(predicted(model, &features), predicted(&whole, &features));
        };
        let part =
            |n: u32| (slice(&labels, n * 60..(n + 1) * 60), slice(&features, n * 60..(n + 1) * 60));

        let mut by_batch = Trainer::try_new(&Registry::default(), &spec).unwrap();
        (0..4).for_each(|n| by_batch.observe(&part(n).0, &part(n).1).unwrap());
        agrees(&by_batch.finish().unwrap());

        let models: Vec<Model> = (0..4).map(|n| train(&spec, &part(n).0, &part(n).1)).collect();
        let mut merged = models[3].reopen().unwrap();
        [2, 0, 1].iter().for_each(|&n: &usize| merged.merge(&models[n]).unwrap());
        agrees(&merged.finish().unwrap());

        // Unlearning the last part gives the model that never saw it.
        let mut left = whole.reopen().unwrap();
        left.forget(&models[3]).unwrap();
        let left = left.finish().unwrap();
        let never = train(&spec, &slice(&labels, 0..180), &slice(&features, 0..180));
        assert_eq!(left.rows(), 180);
        let (a, b) = (log_odds(&left, &features), log_odds(&never, &features));
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-6), "{spec}");
    }
}

#[test]
fn rows_in_any_order_and_any_cut_give_the_same_bytes() {
    let (labels, features) = dependent(120, 3);
    for spec in ["br", "cc(base=svm)", "ecc(chains=2, keep=all)", "pcc"] {
        let whole = to_bytes(&train(spec, &labels, &features)).unwrap();
        let order = || (0..120u32).map(|i| i * 49 % 120);
        let turned = train(spec, &slice(&labels, order()), &slice(&features, order()));
        assert!(to_bytes(&turned).unwrap() == whole, "{spec}: shuffled");
        let state = |rows: std::ops::Range<u32>| {
            trainer(spec, &slice(&labels, rows.clone()), &slice(&features, rows)).state().unwrap()
        };
        let mut merged = Trainer::try_new(&Registry::default(), spec).unwrap();
        [state(70..120), state(0..30), state(30..70)].iter().for_each(|s| merged.merge(s).unwrap());
        assert!(to_bytes(&merged.finish().unwrap()).unwrap() == whole, "{spec}: merged");
    }
}

#[test]
fn a_closed_model_is_small_and_one_with_rows_learns_on() {
    let (labels, features) = dependent(400, 3);
    let closed = train("br", &labels, &features);
    let open = train("br(keep=all)", &labels, &features);
    let size = |model: &Model| to_bytes(model).unwrap().len();
    assert!(2 * size(&closed) < size(&open), "{} and {}", size(&closed), size(&open));
    assert_eq!(log_odds(&closed, &features), log_odds(&open, &features));
    let mut less = open.reopen().unwrap();
    let half = |array: &ArrayRef| slice(array, 200..400);
    less.forget(&train("br(keep=all)", &half(&labels), &half(&features))).unwrap();
    let first = |array: &ArrayRef| slice(array, 0..200);
    let expected = train("br(keep=all)", &first(&labels), &first(&features));
    assert!(to_bytes(&less.finish().unwrap()).unwrap() == to_bytes(&expected).unwrap());
}
