//! Values that can be worked out by hand, bounds, and bad input.

use super::*;
use crate::error::ErrorKind;
use crate::models::lazy::fit::fit_together;
use crate::models::lazy::posterior::PosteriorCounts;
use crate::models::lazy::predict::{Voting, chunk};
use crate::stats::StateWriter;
use crate::store::to_bytes;

#[test]
fn votes_are_counted_as_defined() {
    // Around 0: three rows with {a}, two with {b, c}, one with nothing; far away two with {d}.
    let x = line([0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 1.0, 0.99]);
    let labels = lists(&[&["a"], &["b", "c"], &["a"], &["b", "c"], &["a"], &[], &["d"], &["d"]]);
    let near = line([0.0]);
    let predicted = |spec: &str| sets(&learn(spec, &labels, &x), &near).remove(0);
    assert_eq!(predicted("brknn(k=1)"), ["a"]);
    assert_eq!(predicted("brknn(k=3)"), ["a"]);
    // Half is not more than half.
    assert!(predicted("brknn(k=6)").is_empty());
    assert_eq!(predicted("brknn_a(k=6)"), ["a"]);
    // Seven labels in six sets: one label; in the nearest four sets six labels, 1.5 rounds to two.
    assert_eq!(predicted("brknn_b(k=6)"), ["a"]);
    assert_eq!(predicted("brknn_b(k=4)"), ["a", "b"]);
    assert_eq!(predicted("lpknn(k=6)"), ["a"]);
    // Two of each: the set of the nearest.
    assert_eq!(predicted("lpknn(k=4)"), ["a"]);
    assert_eq!(sets(&learn("lpknn(k=4)", &labels, &x), &line([0.03])).remove(0), ["b", "c"]);
    let ranked = learn("lpknn(k=6)", &labels, &x).rank_sets(&near, 9).unwrap().remove(0);
    let shares: Vec<f64> = ranked.iter().map(|r| r.probability).collect();
    assert_eq!(shares, [3.0 / 6.0, 2.0 / 6.0, 1.0 / 6.0]);
    // Scores are shares.
    let shares = &answers(&learn("brknn(k=6)", &labels, &x), &near)[0].1;
    for (share, expected) in shares.iter().zip([0.5, 1.0 / 3.0, 1.0 / 3.0, 0.0]) {
        assert!((share - expected).abs() < 1e-12, "{shares:?}");
    }
}

/// Rows on a line, each between two of the other kind.
fn alternating(copies: usize) -> (ArrayRef, ArrayRef) {
    let rows: Vec<usize> = (0..40).flat_map(|i| vec![i; copies]).collect();
    let on: &[&str] = &["on"];
    let sets: Vec<&[&str]> = rows.iter().map(|i| if i % 2 == 0 { on } else { &[] }).collect();
    (lists(&sets), line(rows.iter().map(|&i| i as f64)))
}

#[test]
fn a_row_is_not_its_own_neighbour() {
    // The nearest other row is always of the other kind, so a neighbour that is on says off. With
    // itself as neighbour, each row would say what it is.
    let (labels, x) = alternating(1);
    let model = learn("mlknn(k=1)", &labels, &x);
    let predicted = sets(&model, &x);
    assert!(predicted.iter().enumerate().all(|(i, set)| set.is_empty() == (i % 2 == 0)));
    // Every row twice: now the nearest other row is its copy, which is of the same kind.
    let (labels, x) = alternating(2);
    let predicted = sets(&learn("mlknn(k=1)", &labels, &x), &x);
    assert!(predicted.iter().enumerate().all(|(i, set)| set.is_empty() == (i / 2 % 2 == 1)));
    // Two rows at every place, one on and one off: each is the neighbour of the other, so none of
    // the 40 rows that are on has a neighbour that is. With itself as neighbour, half would.
    let twins: Vec<&[&str]> = (0..80).map(|i| if i % 2 == 0 { &["on"][..] } else { &[] }).collect();
    let x = line((0..80).map(|i| f64::from(i / 2)));
    for (set, scores) in answers(&learn("mlknn(k=1)", &lists(&twins), &x), &x) {
        let expected = if set.is_empty() { 1.0 / 42.0 } else { 41.0 / 42.0 };
        assert!((scores[0] - expected).abs() < 1e-12, "{scores:?}");
    }
}

/// The parameters of other specs that know the rows of `model`.
fn together(model: &Model, specs: &[&str]) -> Vec<Voting> {
    let params = |spec: &&str| {
        let (algorithm, spec) = Registry::default().resolve(spec).unwrap();
        let learner = (algorithm.start)(&spec).unwrap();
        (learner.as_any().downcast_ref::<Lazy>().unwrap().params, None)
    };
    let params = specs.iter().map(params).collect();
    let fitted = fit_together(&state(model).store, params, model.space()).unwrap();
    fitted.into_iter().map(|f| f.1).collect()
}

#[test]
fn a_graph_is_shared_by_those_who_search_it_alike() {
    let rows = grid(&mut Dice(4), 400, 0);
    let model = train("brknn(k=2)", &rows, Columns::Mixed);
    let specs = [2, 3, 300].map(|k| format!("brknn(k={k}, index=hnsw)"));
    let fitted = together(&model, &specs.each_ref().map(|s| s.as_str()));
    assert!(Arc::ptr_eq(&fitted[0].near, &fitted[1].near));
    assert!(!Arc::ptr_eq(&fitted[0].near, &fitted[2].near));
    assert!(
        together(&model, &["brknn(k=2)", "lpknn(k=300)"])
            .windows(2)
            .all(|two| Arc::ptr_eq(&two[0].near, &two[1].near))
    );
}

#[test]
fn rows_that_are_asked_again_are_searched_once() {
    // More rows than are searched at a time, asked by two learners in turn.
    let rows = grid(&mut Dice(4), 50, 0);
    let model = train("brknn(k=2)", &rows, Columns::Mixed);
    let fitted = together(&model, &["brknn(k=2)", "mlknn(k=3)"]);
    let asked = features(&grid(&mut Dice(5), 9000, 0), Columns::Mixed);
    let asked = model.read(&asked).unwrap();
    let near = |voting: &Voting| [0..8192, 8192..9000].map(|range| voting.near.of(&asked, range));
    let (first, second) = (near(&fitted[0]), near(&fitted[1]));
    assert!(first.iter().zip(&second).all(|(a, b)| Arc::ptr_eq(a, b)));
    assert_eq!(first.each_ref().map(|n| n.len()), [8192, 808]);
    // A learner of few rows that asks alone remembers little.
    let alone = together(&model, &["brknn(k=11)"]).remove(0);
    let first = near(&alone);
    assert!(Arc::ptr_eq(&first[1], &alone.near.of(&asked, 8192..9000)));
    assert!(!Arc::ptr_eq(&first[0], &alone.near.of(&asked, 0..8192)));
    // The more neighbours, the fewer rows at a time.
    assert_eq!([1, 10, 1000, 1_000_000].map(chunk), [8192, 8192, 2796, 2]);
}

#[test]
fn parts_merge_into_the_same_model() {
    let rows = grid(&mut Dice(3), 120, 6);
    let whole = train("mlknn(k=4)", &rows, Columns::Mixed);
    let mut merged = Trainer::try_new(&Registry::default(), "mlknn(k=4)").unwrap();
    // Parts with other extremes, and in another order.
    let mut sorted = rows.clone();
    sorted.sort_by(|a, b| b.x[0].partial_cmp(&a.x[0]).unwrap());
    for part in sorted.chunks(15) {
        merged.merge(&train("mlknn(k=4)", part, Columns::Mixed)).unwrap();
    }
    assert_eq!(to_bytes(&merged.finish().unwrap()).unwrap(), to_bytes(&whole).unwrap());
}

#[test]
fn counts_of_neighbours_are_kept_and_renewed() {
    let (rows, more) = (grid(&mut Dice(8), 60, 6), grid(&mut Dice(9), 20, 6));
    let all: Vec<Row> = rows.iter().chain(&more).cloned().collect();
    let (registry, columns) = (Registry::default(), Columns::Mixed);
    for spec in ["mlknn(k=4)", "mlknn(k=200)", "mlknn(k=3, weight=distance, distance=manhattan)"] {
        let model = train(spec, &rows, columns);
        let stored = crate::store::from_bytes(&to_bytes(&model).unwrap(), &registry).unwrap();
        assert!(state(&stored).counts.is_some());
        assert_eq!(state(&stored).counts, state(&model).counts);
        agrees_with_brute_force(&stored, &features(&more, columns));
        // With more rows, and without them again, they are those of the rows there are.
        let mut trainer = stored.reopen().unwrap();
        trainer.observe(&labels(&more), &features(&more, columns)).unwrap();
        let grown = trainer.finish().unwrap();
        assert_eq!(to_bytes(&grown).unwrap(), to_bytes(&train(spec, &all, columns)).unwrap());
        assert_ne!(state(&grown).counts, state(&model).counts);
        trainer.forget(&train(spec, &more, columns)).unwrap();
        assert_eq!(to_bytes(&trainer.finish().unwrap()).unwrap(), to_bytes(&model).unwrap());
        // What is still open has none, and other learners never have.
        assert!(state(&trainer.state().unwrap()).counts.is_none());
    }
    assert!(state(&train("brknn", &rows, columns)).counts.is_none());
}

#[test]
fn counts_that_do_not_fit_the_rows_are_corrupt() {
    let model = train("mlknn(k=4)", &grid(&mut Dice(8), 30, 0), Columns::Dense);
    let table = state(&model).store.table();
    let read = |counted: u32, label: u32, neighbours: u32, with: f64, without: f64| {
        let mut writer = StateWriter::default();
        writer.u32s("counted", [counted]);
        writer.u32s("label", [label]);
        writer.u32s("neighbours", [neighbours]);
        writer.f64s("with", [with]);
        writer.f64s("without", [without]);
        PosteriorCounts::decode(&table, 4, 4, &writer.finish())
    };
    assert!(read(1, 3, 4, 1.0, 0.0).is_ok());
    let odd = [
        read(1, 4, 1, 1.0, 0.0),
        read(1, 0, 0, 1.0, 0.0),
        read(1, 0, 5, 1.0, 0.0),
        read(1, 0, 1, 31.0, 0.0),
        read(1, 0, 1, 0.0, 31.0),
        read(1, 0, 1, -1.0, 1.0),
        read(1, 0, 1, 0.5, 0.0),
        read(1, 0, 1, f64::NAN, 1.0),
        read(1, 0, 1, f64::INFINITY, 1.0),
        read(1, 0, 1, 0.0, 0.0),
        read(0, 0, 1, 1.0, 0.0),
        read(2, 0, 1, 1.0, 0.0),
    ];
    for (case, counts) in odd.into_iter().enumerate() {
        assert_eq!(counts.unwrap_err().kind(), ErrorKind::Corrupt, "case {case}");
    }
}

#[test]
fn counts_take_the_memory_of_what_was_seen() {
    // A model of one row that says it was seen ever so often, and asks for as many neighbours.
    let mut trainer = Trainer::try_new(&Registry::default(), "mlknn(k=1000000)").unwrap();
    let often: ArrayRef = Arc::new(Float64Array::from(vec![1e9]));
    trainer.observe_weighted(&lists(&[&["a", "b"]]), &line([1.0]), Some(&often)).unwrap();
    let table = state(&trainer.state().unwrap()).store.table();
    assert_eq!(table.total(), 1_000_000_000);
    let mut empty = StateWriter::default();
    empty.u32s("counted", [1]);
    ["label", "neighbours"].iter().for_each(|name| empty.u32s(*name, []));
    ["with", "without"].iter().for_each(|name| empty.f64s(*name, []));
    let state = empty.finish();
    let counts = PosteriorCounts::decode(&table, 1000, 1_000_000, &state).unwrap().unwrap();
    assert!(counts.heap_size() < 50_000);
    let model = trainer.finish().unwrap();
    let scores = &answers(&model, &line([1.0]))[0].1;
    assert!(scores.iter().all(|s| *s > 0.99), "{scores:?}");
}

#[test]
fn peers_say_what_they_would_say_alone() {
    let rows = grid(&mut Dice(5), 70, 6);
    let queries = features(&grid(&mut Dice(6), 30, 6), Columns::Mixed);
    let registry = Registry::default();
    let mut specs = Vec::new();
    for method in METHODS {
        specs.extend([1, 3, 30, 500].map(|k| format!("{method}(k={k})")));
        specs.push(format!("{method}(k=2, distance=manhattan, weight=distance)"));
    }
    let resolved: Vec<_> = specs.iter().map(|s| registry.resolve(s).unwrap()).collect();
    let peers = train("brknn", &rows, Columns::Mixed).peers(&resolved).unwrap();
    for (spec, peer) in specs.iter().zip(&peers) {
        let alone = train(spec, &rows, Columns::Mixed);
        assert_eq!(answers(peer, &queries), answers(&alone, &queries), "{spec}");
        assert_eq!(to_bytes(peer).unwrap(), to_bytes(&alone).unwrap());
    }
    let other = registry.resolve("brknn(keep=sample(5))").unwrap();
    let refused = train("brknn", &rows, Columns::Mixed).peers(&[other]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Incompatible);
}

#[test]
fn more_neighbours_than_rows_are_all_rows() {
    let (labels, x) = alternating(1);
    let model = learn("brknn(k=41)", &labels, &x);
    let note = "k=41 is more than the 40 rows there are: all of them are asked";
    assert_eq!(model.notes(), [note]);
    assert!(learn("brknn(k=40)", &labels, &x).notes().is_empty());
    assert!(answers(&model, &x).iter().all(|a| (a.1[0] - 0.5).abs() < 1e-12));
    let error = Trainer::try_new(&Registry::default(), "brknn(k=0)").unwrap_err();
    assert!(error.to_string().contains("it takes a whole number from 1 to 1000000"), "{error}");
}

#[test]
fn odd_rows_are_scored() {
    // A constant feature says nothing, wherever a query lies; a feature that is always missing too.
    let constant: ArrayRef = Arc::new(Float64Array::from(vec![5.0; 4]));
    let missing: ArrayRef = Arc::new(Float64Array::from(vec![None; 4]));
    let x: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 1.0, 2.0, 3.0]));
    let table = |c: &ArrayRef, m: &ArrayRef, x: &ArrayRef| -> ArrayRef {
        let named = vec![("c", Arc::clone(c)), ("m", Arc::clone(m)), ("x", Arc::clone(x))];
        Arc::new(StructArray::try_from(named).unwrap())
    };
    let labels = lists(&[&["a"], &["b"], &["c"], &["d"]]);
    let model = learn("brknn(k=1)", &labels, &table(&constant, &missing, &x));
    let far: ArrayRef = Arc::new(Float64Array::from(vec![1e300, -1e300, 5.0, 0.0]));
    assert_eq!(sets(&model, &table(&far, &far, &x)), [["a"], ["b"], ["c"], ["d"]]);
    // A row of which nothing is known stands at the mean, 1.5: two rows are equally near, and the
    // first in the order of content is asked.
    let nothing = sets(&model, &table(&missing, &missing, &missing));
    assert!(nothing[0] == ["b"] || nothing[0] == ["c"], "{nothing:?}");
    assert!(nothing.iter().all(|set| *set == nothing[0]));
    // A spread that is small beside the values, and a range that is infinite.
    let close = line([1e9, 1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0]);
    let model = learn("brknn(k=1, scale=standard)", &labels, &close);
    let near = line([1e9 + 0.4, 1e9 + 1.4, 1e9 + 2.4, 1e9 + 9.0]);
    assert_eq!(sets(&model, &near), [["a"], ["b"], ["c"], ["d"]]);
    let wide = line([-1.7e308, 0.3e308, 1.7e308, -0.2e308]);
    let model = learn("brknn(k=1)", &labels, &wide);
    assert_eq!(sets(&model, &line([0.4e308, 1.5e308, -1.4e308])), [["b"], ["c"], ["a"]]);
    // Values whose squares are infinite.
    let huge: ArrayRef = Arc::new(Float64Array::from(vec![-1.7e308, 1.7e308, 1e300, 0.0]));
    for scale in ["minmax", "standard", "none"] {
        let model = learn(&format!("brknn(k=1, scale={scale})"), &labels, &table(&huge, &x, &x));
        assert_eq!(sets(&model, &table(&huge, &x, &x))[1], ["b"], "{scale}");
        answers(&model, &table(&far, &far, &x));
    }
}

#[test]
fn the_last_rows_exist_in_a_stream_only() {
    let registry = Registry::default();
    let error = Trainer::try_new(&registry, "brknn(k=1, keep=last(2))").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("depends on the order of rows"), "{error}");
    let (algorithm, spec) = registry.resolve("brknn(k=1, keep=last(2))").unwrap();
    let mut trainer = Trainer::start_in_order(algorithm, spec).unwrap();
    for (label, x) in [("a", 0.0), ("b", 1.0), ("c", 2.0)] {
        trainer.observe(&lists(&[&[label]]), &line([x])).unwrap();
    }
    let model = trainer.finish().unwrap();
    assert_eq!(sets(&model, &line([0.0, 2.0])), [["b"], ["c"]]);
    // Stored and reopened, it goes on.
    let stored = crate::store::from_bytes(&to_bytes(&model).unwrap(), &registry).unwrap();
    let mut trainer = stored.reopen().unwrap();
    trainer.observe(&lists(&[&["d"]]), &line([3.0])).unwrap();
    assert_eq!(sets(&trainer.finish().unwrap(), &line([0.0, 3.0])), [["c"], ["d"]]);
    let error = trainer.merge(&model).unwrap_err();
    assert!(error.to_string().contains("use keep=sample(2)"), "{error}");
}

#[test]
fn a_graph_finds_nearly_all_neighbours() {
    let mut dice = Dice(21);
    let mut numbers = |n: usize| -> Vec<ArrayRef> {
        let column = |d: &mut Dice| (0..n).map(|_| d.below(1 << 20) as f64).collect::<Vec<_>>();
        (0..8).map(|_| Arc::new(Float64Array::from(column(&mut dice))) as ArrayRef).collect()
    };
    let table = |columns: Vec<ArrayRef>| -> ArrayRef {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
        Arc::new(StructArray::try_from(names.into_iter().zip(columns).collect::<Vec<_>>()).unwrap())
    };
    let (stored, queries) = (table(numbers(3000)), table(numbers(200)));
    let names: Vec<String> = (0..3000).map(|i| format!("{i:04}")).collect();
    let sets: Vec<[&str; 1]> = names.iter().map(|n| [n.as_str()]).collect();
    let labels = lists(&sets.iter().map(|s| s.as_slice()).collect::<Vec<_>>());
    // Every row has a label of its own: the labels with a share are the neighbours.
    let neighbours = |spec: &str| -> Vec<Vec<usize>> {
        let model = learn(spec, &labels, &stored);
        let near = |scores: Vec<f64>| (0..3000).filter(|&y| scores[y] > 0.05).collect();
        answers(&model, &queries).into_iter().map(|a| near(a.1)).collect()
    };
    let exact = neighbours("brknn(k=10)");
    let found = neighbours("brknn(k=10, index=hnsw)");
    assert!(exact.iter().all(|n| n.len() == 10));
    let common = |(a, b): (&Vec<usize>, &Vec<usize>)| a.iter().filter(|i| b.contains(i)).count();
    let hits: usize = exact.iter().zip(&found).map(common).sum();
    assert!(hits >= 1980, "{hits} of 2000 neighbours found");
    assert_eq!(found, neighbours("brknn(k=10, index=hnsw)"));
}
