//! Agreement with brute force, with plain naive Bayes, and of the beam with trying everything.

use super::brute::log_total;
use super::*;

const ALL_WORDS: [Words; 3] = [Words::Tokens, Words::Numbers, Words::Flags];

/// Names of label numbers of a model.
fn named(model: &Model, set: &[usize]) -> Vec<String> {
    set.iter().map(|&y| model.space().labels.name(LabelId::new(y)).to_string()).collect()
}

#[test]
fn equals_brute_force_on_mixed_tables() {
    let mut decided = 0;
    for case in 0..200 {
        let mut dice = Dice(case);
        let words = ALL_WORDS[case as usize % 3];
        let missing = [0.0, 0.15, 0.4][dice.below(3)];
        let (len, labels) = (3 + dice.below(14), 1 + dice.below(5));
        let mut rows = random_rows(&mut dice, len, labels, missing, words);
        rows[0].labels = vec![0];
        let test = random_rows(&mut dice, 6, labels, missing, words);
        let s = [1.0, 0.5, 0.01][dice.below(3)];
        let model = train(&format!("naibx(smoothing={s})"), &rows, words);
        let (brute, x) = brute(&rows, &test, words, s);
        let batch = features(&test, words);
        let found = log_odds(&model, &batch);
        let sets = predicted(&model, &batch);
        for (r, x) in x.iter().enumerate() {
            for (a, b) in found[r].iter().zip(brute.log_odds(x)) {
                assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "case {case}: {a} for {b}");
            }
            if let Some(set) = brute.predict(x, &brute.sizes_seen()) {
                assert_eq!(sets[r], named(&model, &set), "case {case}, row {r}");
                decided += 1;
            }
        }
    }
    assert!(decided > 900, "only {decided} of 1200 sets were compared");
}

#[test]
fn equals_brute_force_with_sizes_restricted() {
    for case in 0..30 {
        let mut dice = Dice(1000 + case);
        let rows = random_rows(&mut dice, 14, 4, 0.1, Words::Tokens);
        let test = random_rows(&mut dice, 6, 4, 0.1, Words::Tokens);
        let (brute, x) = brute(&rows, &test, Words::Tokens, 1.0);
        let batch = features(&test, Words::Tokens);
        let full: Vec<usize> = brute.sizes_seen().into_iter().filter(|m| *m > 0).collect();
        let mut with_empty = full.clone();
        with_empty.insert(0, 0);
        for (spec, sizes) in [
            ("naibx(allow_empty=false)", full),
            ("naibx(allow_empty=true)", with_empty),
            ("naibx(size=2)", vec![2]),
            ("naibx(size=4)", vec![4]),
        ] {
            let model = train(spec, &rows, Words::Tokens);
            let sets = predicted(&model, &batch);
            for (r, x) in x.iter().enumerate() {
                if let Some(set) = brute.predict(x, &sizes) {
                    assert_eq!(sets[r], named(&model, &set), "{spec}, case {case}, row {r}");
                }
            }
        }
    }
}

/// Counts of words by row and class, and the classes of new rows.
fn classes(dice: &mut Dice, len: usize) -> (Vec<Vec<f64>>, Vec<usize>) {
    let class: Vec<usize> = (0..len).map(|i| if i < 3 { i } else { dice.below(3) }).collect();
    let counts = class.iter().map(|&c| {
        let word = |w: usize, dice: &mut Dice| dice.below(if w % 3 == c { 4 } else { 2 }) as f64;
        (0..WORDS.len()).map(|w| word(w, dice)).collect()
    });
    (counts.collect(), class)
}

fn tokens(counts: &[Vec<f64>]) -> ArrayRef {
    let list = |row: &Vec<f64>| {
        (0..WORDS.len()).flat_map(|w| vec![WORDS[w]; row[w] as usize]).collect::<Vec<_>>()
    };
    token_lists(counts.iter().map(|row| Some(list(row))))
}

/// `score(class, row)` of plain naive Bayes decides; NaiBX must agree when each row has one label.
fn assert_reduces(
    model: &Model,
    batch: &ArrayRef,
    len: usize,
    score: impl Fn(usize, usize) -> f64,
) {
    for (r, set) in predicted(model, batch).into_iter().enumerate() {
        let scores: Vec<f64> = (0..3).map(|c| score(c, r)).collect();
        let best = (0..3).fold(0, |b, c| if scores[c] > scores[b] { c } else { b });
        assert_eq!(set, [format!("l{best}")], "row {r}: {scores:?}");
        // With one size, the sets of the beam are the classes with their posterior.
        let ranked = &model.rank_sets(batch, 10).unwrap()[r];
        assert_eq!(ranked.len(), 3);
        for found in ranked {
            let p = (scores[found.labels[0].index()] - log_total(&scores)).exp();
            assert!((found.probability - p).abs() < 1e-9, "row {r}: {found:?} for {p}");
        }
        assert!(r < len);
    }
}

#[test]
fn one_label_per_row_is_plain_gaussian_naive_bayes() {
    let mut dice = Dice(7);
    let class: Vec<usize> = (0..60).map(|i| i % 3).collect();
    let x: Vec<Vec<f64>> = class
        .iter()
        .map(|&c| (0..3).map(|d| dice.uniform() * 3.0 + ((c + d) % 3) as f64).collect())
        .collect();
    let array = |rows: &[Vec<f64>]| {
        let mut b = ListBuilder::new(Float64Builder::new());
        rows.iter().for_each(|r| b.append_value(r.iter().map(|v| Some(*v))));
        Arc::new(b.finish()) as ArrayRef
    };
    let model = learn("naibx", &label_lists(class.iter().map(|c| [*c])), &array(&x));
    let test: Vec<Vec<f64>> =
        (0..40).map(|_| (0..3).map(|_| dice.uniform() * 5.0).collect()).collect();
    assert_reduces(&model, &array(&test), 40, |c, r| {
        let rows: Vec<&Vec<f64>> = (0..60).filter(|&i| class[i] == c).map(|i| &x[i]).collect();
        let n = rows.len() as f64;
        let term = |d: usize| {
            let mean = rows.iter().map(|v| v[d]).sum::<f64>() / n;
            let var = rows.iter().map(|v| (v[d] - mean).powi(2)).sum::<f64>() / (n - 1.0);
            -0.5 * (var.ln() + (test[r][d] - mean).powi(2) / var)
        };
        (n + 1.0).ln() + (0..3).map(term).sum::<f64>()
    });
}

#[test]
fn one_label_per_row_is_plain_multinomial_naive_bayes() {
    let mut dice = Dice(8);
    let (x, class) = classes(&mut dice, 50);
    let (test, _) = classes(&mut dice, 30);
    let model = learn("naibx", &label_lists(class.iter().map(|c| [*c])), &tokens(&x));
    assert_reduces(&model, &tokens(&test), 30, |c, r| {
        let of_class = |w: usize| (0..50).filter(|&i| class[i] == c).map(|i| x[i][w]).sum::<f64>();
        let total: f64 = (0..5).map(of_class).sum();
        let n = class.iter().filter(|k| **k == c).count() as f64;
        let term = |w: usize| test[r][w] * ((of_class(w) + 1.0) / (total + 5.0)).ln();
        (n + 1.0).ln() + (0..5).map(term).sum::<f64>()
    });
}

#[test]
fn one_label_per_row_is_plain_bernoulli_naive_bayes() {
    let mut dice = Dice(9);
    let (x, class) = classes(&mut dice, 50);
    let (test, _) = classes(&mut dice, 30);
    let spec = "naibx(event=bernoulli, smoothing=0.5)";
    let model = learn(spec, &label_lists(class.iter().map(|c| [*c])), &tokens(&x));
    assert_reduces(&model, &tokens(&test), 30, |c, r| {
        let n = class.iter().filter(|k| **k == c).count() as f64;
        let with = |w: usize| (0..50).filter(|&i| class[i] == c && x[i][w] > 0.0).count() as f64;
        let term = |w: usize| {
            let p = (with(w) + 0.5) / (n + 1.0);
            if test[r][w] > 0.0 { p.ln() } else { (1.0 - p).ln() }
        };
        (n + 0.5).ln() + (0..5).map(term).sum::<f64>()
    });
}

#[test]
fn a_wide_beam_is_exhaustive() {
    let mut decided = 0;
    for case in 0..12 {
        let mut dice = Dice(500 + case);
        let labels = 2 + case as usize % 5;
        let words = ALL_WORDS[case as usize % 3];
        let mut rows = random_rows(&mut dice, 16, labels, 0.1, words);
        rows.iter_mut().zip(0..labels).for_each(|(r, y)| r.labels.push(y));
        rows.iter_mut().for_each(|r| {
            r.labels.sort_unstable();
            r.labels.dedup();
        });
        let test = random_rows(&mut dice, 4, labels, 0.1, words);
        let model = train("naibx(sets=1000)", &rows, words);
        let (brute, x) = brute(&rows, &test, words, 1.0);
        let batch = features(&test, words);
        let ranked = model.rank_sets(&batch, 1000).unwrap();
        let sets = predicted(&model, &batch);
        for (r, x) in x.iter().enumerate() {
            let mut expected = brute.all_sets(x);
            expected.sort_by(|a, b| b.1.total_cmp(&a.1));
            assert_eq!(ranked[r].len(), expected.len(), "every set of a size seen is there");
            let sum: f64 = ranked[r].iter().map(|s| s.probability).sum();
            assert!(sum <= 1.0 + 1e-9, "case {case}: {sum}");
            assert!(ranked[r].is_sorted_by(|a, b| a.probability >= b.probability));
            for found in &ranked[r] {
                let set: Vec<usize> = found.labels.iter().map(|y| y.index()).collect();
                let ln = expected.iter().find(|e| e.0 == set).unwrap().1;
                assert!((found.probability - ln.exp()).abs() < 1e-9, "{found:?} for {}", ln.exp());
            }
            if expected.len() == 1 || expected[0].1 > expected[1].1 + 1e-9 {
                assert_eq!(sets[r], named(&model, &expected[0].0), "case {case}, row {r}");
                decided += 1;
            }
        }
    }
    assert!(decided > 40, "only {decided} of 48 rows had one best set");
}

#[test]
fn fewer_sets_are_the_first_of_more() {
    // 5 labels: the narrowest search sees every set. 12 labels: a width is given that does not.
    for (spec, labels, counts) in
        [("naibx", 5, [1, 2, 5, 20]), ("naibx(sets=100)", 12, [1, 3, 40, 100])]
    {
        let mut dice = Dice(77);
        let rows = random_rows(&mut dice, 30, labels, 0.1, Words::Tokens);
        let model = train(spec, &rows, Words::Tokens);
        let batch =
            features(&random_rows(&mut dice, 10, labels, 0.1, Words::Tokens), Words::Tokens);
        assert!(model.rank_sets(&batch, 0).unwrap().iter().all(Vec::is_empty));
        let widest = model.rank_sets(&batch, counts[3]).unwrap();
        for most in counts {
            for (found, best) in model.rank_sets(&batch, most).unwrap().iter().zip(&widest) {
                assert_eq!(found[..], best[..most.min(best.len())], "{spec}, {most} sets");
                assert!(found.is_sorted_by(|a, b| a.probability >= b.probability));
                let mut labels: Vec<_> = found.iter().map(|s| &s.labels).collect();
                labels.sort();
                labels.dedup();
                assert_eq!(labels.len(), found.len(), "no set twice");
            }
        }
    }
}

#[test]
fn the_set_that_is_predicted_is_the_first_that_is_ranked() {
    let mut dice = Dice(78);
    let rows = random_rows(&mut dice, 60, 12, 0.1, Words::Tokens);
    let batch = features(&random_rows(&mut dice, 40, 12, 0.1, Words::Tokens), Words::Tokens);
    for spec in ["naibx(sets=2)", "naibx(sets=50)", "naibx(sets=50, size=labels)"] {
        let model = train(spec, &rows, Words::Tokens);
        let ranked = model.rank_sets(&batch, 1).unwrap();
        for (ranked, predicted) in ranked.iter().zip(predicted(&model, &batch)) {
            let labels: Vec<usize> = ranked[0].labels.iter().map(|y| y.index()).collect();
            assert_eq!(named(&model, &labels), predicted, "{spec}");
        }
    }
}
