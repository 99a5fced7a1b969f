//! `labelflow stream` from outside: pipes, checkpoints, kills, faults.

use crate::program::{Workplace, split};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Kills in the suite; `LABELFLOW_KILLS=100` is the full run.
const KILLS: usize = 12;

fn spawn(place: &Workplace, arguments: &[&str], input: Stdio, output: Stdio) -> Child {
    Command::new(env!("CARGO_BIN_EXE_labelflow"))
        .args(arguments)
        .current_dir(place.dir())
        .stdin(input)
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn errors(child: &mut Child) -> String {
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// Rows of a stream in `data.parquet`.
fn with_rows(rows: usize) -> Workplace {
    let place = Workplace::new();
    let rows = rows.to_string();
    let shape = ["--features", "8", "--labels", "10", "--seed", "2", "data.parquet"];
    place.ok(&[&["generate", "--rows", &rows], &shape[..]].concat());
    place
}

#[test]
fn a_stream_is_scored_as_a_file_is() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    place.ok(&split("score --model m.labelflow t.parquet -o s.parquet"));
    let parts = "stream --model m.labelflow --checkpoint c -o parts t.parquet";
    place.ok(&split(parts));
    let same = "SELECT count(*) FROM 's.parquet' AS a JOIN 'parts/part-0000000001.parquet' AS b \
                ON a.id = b.id WHERE a.predicted_labels = b.predicted_labels AND b.model_version = 200";
    assert_eq!(place.rows(same), ["200"]);
}

#[test]
fn batches_on_a_pipe_are_learned_and_the_model_is_that_of_fit() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    let out =
        place.run(&split("stream --algorithm naibx --learn t.parquet --save streamed.labelflow"));
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let info = |file: &str| place.ok(&split(&format!("inspect {file}")));
    assert!(info("streamed.labelflow").contains("200"));
    let agree = "SELECT count(*) FROM 't.parquet' WHERE predict_labels('m.labelflow', f0, f1, f2, f3) \
                 = predict_labels('streamed.labelflow', f0, f1, f2, f3)";
    assert_eq!(place.rows(agree), ["200"]);
    // The output is an Arrow stream: it goes in again by a pipe, with its old answers left out.
    place.write("out.arrows", &out.stdout);
    let again = split(
        "stream --model streamed.labelflow --features f0 --features f1 --features f2 --features f3",
    );
    let mut child = spawn(&place, &again, Stdio::piped(), Stdio::piped());
    let error = {
        child.stdin.take().unwrap().write_all(&out.stdout).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(2));
        errors(&mut child)
    };
    assert!(error.contains("has a column `predicted_labels` already"), "{error}");
}

#[test]
fn killed_at_any_moment_it_ends_as_if_it_never_was() {
    let kills: usize =
        std::env::var("LABELFLOW_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let place = with_rows(60_000);
    let arguments = |name: &str| {
        format!(
            "stream --algorithm naibx --learn --half-life 5000 --checkpoint {name}-c \
             --checkpoint-every 2000 -o {name} --parts arrow --save {name}.labelflow data.parquet"
        )
    };
    let start = Instant::now();
    place.ok(&split(&arguments("calm")));
    let whole = start.elapsed();
    let command = arguments("killed");
    let (mut killed, mut wait) = (0, 0x9e37_79b9_7f4a_7c15_u64);
    while killed < kills {
        let mut child = spawn(&place, &split(&command), Stdio::null(), Stdio::null());
        wait = wait.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Up to a fifth of a whole run: most die before they are through.
        let share = (wait >> 40) as f64 / (1u64 << 24) as f64;
        std::thread::sleep(whole.mul_f64(0.2 * share));
        // SIGKILL: nothing can be tidied up.
        child.kill().unwrap();
        let status = child.wait().unwrap();
        killed += usize::from(!status.success());
        if status.success() {
            // It got through: start over, so that all kills hit something.
            for name in ["killed", "killed-c"] {
                std::fs::remove_dir_all(place.path(name)).unwrap();
            }
        }
    }
    place.ok(&split(&command));
    println!("killed {killed} times");
    assert_eq!(place.bytes("calm.labelflow"), place.bytes("killed.labelflow"));
    let rows = |name: &str| {
        let query = format!(
            "SELECT id, labels, predicted_labels, model_version FROM '{name}/' ORDER BY id"
        );
        place.rows(&query)
    };
    let calm = rows("calm");
    assert_eq!(calm.len(), 60_000);
    assert_eq!(rows("killed"), calm);
}

#[test]
fn a_terminated_run_writes_a_checkpoint_and_goes_on() {
    let place = with_rows(200_000);
    let command = "stream --algorithm naibx --learn --checkpoint c --checkpoint-every 1000000 -o out data.parquet";
    let mut child = spawn(&place, &split(command), Stdio::null(), Stdio::null());
    std::thread::sleep(Duration::from_millis(1500));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let status = child.wait().unwrap();
    let text = errors(&mut child);
    assert!(status.success(), "{text}");
    assert_eq!(place.files("c").len(), 1, "{text}");
    let out = place.run(&split(command));
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(text.contains("going on from checkpoint 1"), "{text}");
    assert_eq!(place.rows("SELECT count(*), count(DISTINCT id) FROM 'out/'"), ["200000,200000"]);
}

#[test]
fn a_closed_pipe_ends_at_once_and_quietly() {
    let place = with_rows(100_000);
    let start = Instant::now();
    let mut child = spawn(
        &place,
        &split("stream --algorithm naibx --learn data.parquet"),
        Stdio::null(),
        Stdio::piped(),
    );
    let mut head = vec![0; 1000];
    child.stdout.take().unwrap().read_exact(&mut head).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success());
    assert_eq!(errors(&mut child), "");
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn a_changed_option_is_refused_with_the_difference() {
    let place = Workplace::with_data();
    place.ok(&split("stream --algorithm naibx --learn --checkpoint c -o out t.parquet"));
    let (code, text) = place.failure(&split(
        "stream --algorithm naibx --learn --window 50 --checkpoint c -o out t.parquet",
    ));
    assert_eq!(code, 2);
    assert!(text.contains("`forgetting` \"Never\" and it is"), "{text}");
    let (_, text) =
        place.failure(&split("stream --algorithm naibx --learn --checkpoint c -o other t.parquet"));
    assert!(text.contains("`output`"), "{text}");
}

#[test]
fn a_corrupt_newest_checkpoint_falls_back() {
    let place = with_rows(20_000);
    let command = "stream --algorithm naibx --learn --checkpoint c --checkpoint-every 5000 -o out data.parquet";
    place.ok(&split(command));
    let newest = place.files("c").pop().unwrap();
    let bytes = place.bytes(&format!("c/{newest}"));
    place.write(&format!("c/{newest}"), &bytes[..bytes.len() / 3]);
    let out = place.run(&split(command));
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success() && text.contains("falling back"), "{text}");
    assert_eq!(place.rows("SELECT count(*), count(DISTINCT id) FROM 'out/'"), ["20000,20000"]);
}

#[test]
fn bad_files_and_batches_are_named_counted_and_left_out() {
    let place = Workplace::new();
    std::fs::create_dir(place.path("in")).unwrap();
    place.write("in/a.csv", "x,y,labels\n1,2,a\n");
    let rows = |name: &str, x: &str| {
        let query = format!(
            "COPY (SELECT value AS id, CAST({x} AS DOUBLE) AS x, make_array('l' || CAST(value % 3 AS VARCHAR)) AS labels \
             FROM generate_series(1, 100)) TO 'in/{name}.parquet'"
        );
        place.ok(&["sql", &query]);
    };
    std::fs::remove_file(place.path("in/a.csv")).unwrap();
    rows("a", "value");
    rows("b", "CASE WHEN value = 50 THEN 1e308 * 10 ELSE value END");
    place.write("in/c.parquet", b"PAR1 this is no parquet file PAR1");
    rows("d", "value * 2");
    let command = "stream --algorithm naibx --learn-only in --save m.labelflow --report r.json";
    let (code, text) = place.failure(&split(command));
    assert_eq!(code, 2);
    assert!(
        text.contains("rows 100 to 200") && text.contains("`x` holds an infinite value"),
        "{text}"
    );
    let out = place.run(&split(&format!("{command} --on-error divert bad.arrows")));
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success(), "{text}");
    assert!(text.contains("diverted: rows 100 to 200") && text.contains("c.parquet"), "{text}");
    assert!(
        text.contains("200 rows in") && text.contains("2 batches (100 rows) refused"),
        "{text}"
    );
    let diverted = |file: &str| place.rows(&format!("SELECT count(*), max(x) FROM '{file}'"));
    assert_eq!(diverted("bad.arrows"), ["100,inf"]);
    let report = String::from_utf8(place.bytes("r.json")).unwrap();
    let last: serde_json::Value = serde_json::from_str(report.lines().last().unwrap()).unwrap();
    assert_eq!((last["rows"].as_u64(), last["refused_rows"].as_u64()), (Some(200), Some(100)));
    // What was diverted before stays, and skipping says why.
    place.ok(&split(&format!("{command} --on-error divert=bad.arrows")));
    assert_eq!(
        (diverted("bad.arrows"), diverted("bad-2.arrows")),
        (vec!["100,inf".into()], vec!["100,inf".into()])
    );
    let out = place.run(&split(&format!("{command} --on-error skip")));
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(text.contains("passed over: rows 100 to 200 of the stream: feature `x`"), "{text}");
}

#[test]
fn labels_are_texts_or_columns_of_0_and_1_as_in_fit() {
    let place = Workplace::new();
    let rows = |head: &str, line: &dyn Fn(i32) -> String| {
        let lines = (0..300).map(|i| format!("{},{},{}\n", i % 7, i * i % 11, line(i)));
        format!("x,y,{head}\n{}", lines.collect::<String>())
    };
    let on = |i: i32| (i % 7 > 3, i * i % 11 > 4);
    let texts = rows("tags", &|i| match on(i) {
        (true, true) => "a|b".to_string(),
        (true, false) => "a".to_string(),
        (false, true) => "b".to_string(),
        (false, false) => String::new(),
    });
    place.write("texts.csv", texts);
    let flags = rows("is_a,is_b", &|i| format!("{},{}", i32::from(on(i).0), i32::from(on(i).1)));
    place.write("flags.csv", flags);
    for (name, options) in
        [("texts", "--labels tags --separator |"), ("flags", "--labels is_a --labels is_b")]
    {
        place.ok(&split(&format!("fit {name}.csv {options} -o {name}.labelflow")));
        let command = "stream --algorithm naibx --learn --report r.json";
        let out = place.run(&split(&format!("{command} {name}.csv {options} --save s.labelflow")));
        let text = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.success() && text.contains("300 learned"), "{text}");
        let agree = format!(
            "SELECT count(*) FROM '{name}.csv' WHERE predict_labels('{name}.labelflow', x, y) = \
             predict_labels('s.labelflow', x, y)"
        );
        assert_eq!(place.rows(&agree), ["300"], "{name}");
        let report = String::from_utf8(place.bytes("r.json")).unwrap();
        let last: serde_json::Value = serde_json::from_str(report.lines().last().unwrap()).unwrap();
        assert!(last["cumulative"]["jaccard"].as_f64().unwrap() > 0.6, "{last}");
    }
    let command = "stream --algorithm naibx --learn texts.csv --labels tags --separator |";
    let out = place.run(&split(&format!("{command} --empty-labels unlabelled")));
    let empty = (0..300).filter(|&i| on(i) == (false, false)).count();
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(text.contains(&format!("{} learned", 300 - empty)), "{text}");
}

#[test]
fn a_directory_is_watched_and_a_model_reloaded() {
    let place = Workplace::with_data();
    std::fs::create_dir(place.path("in")).unwrap();
    std::fs::copy(place.path("t.parquet"), place.path("in/a.parquet")).unwrap();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    let mut child = spawn(
        &place,
        &split(
            "stream --model m.labelflow --reload in --watch --checkpoint c --checkpoint-every 50ms -o out",
        ),
        Stdio::null(),
        Stdio::null(),
    );
    wait_for(&mut child, || place.path("out/part-0000000001.parquet").exists());
    // A new model of other rows, then a new file.
    place.ok(&["sql", "COPY (SELECT * FROM 't.parquet' WHERE id < 50) TO 'half.parquet'"]);
    place.ok(&split("fit half.parquet -o m.labelflow"));
    std::thread::sleep(Duration::from_millis(1500));
    std::fs::copy(place.path("t.parquet"), place.path("in/b.parquet")).unwrap();
    wait_for(&mut child, || place.path("out/part-0000000002.parquet").exists());
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert!(errors(&mut child).contains("took the new model"));
    let versions = "SELECT model_version, count(*) FROM 'out/' GROUP BY model_version ORDER BY 1";
    assert_eq!(place.rows(versions), ["50,200", "200,200"]);
}

fn wait_for(child: &mut Child, done: impl Fn() -> bool) {
    for _ in 0..600 {
        if done() {
            return;
        }
        assert!(child.try_wait().unwrap().is_none(), "{}", errors(child));
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("it takes too long");
}

#[test]
fn a_half_life_recovers_from_drift_and_the_labels_are_named() {
    let place = Workplace::new();
    let shape = "--features 8 --labels 10 --seed 5 --drift d.parquet";
    place.ok(&split(&format!("generate --rows 24000 {shape}")));
    let last = |options: &str| -> serde_json::Value {
        let report = format!("{}.json", options.len());
        let command = format!(
            "stream --algorithm naibx --learn --report-window 2000 --report {report} {options} d.parquet"
        );
        let out = place.run(&split(&command));
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let text = String::from_utf8(place.bytes(&report)).unwrap();
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    };
    let (fading, steady) = (last("--half-life 1000"), last(""));
    let jaccard = |report: &serde_json::Value| report["window"]["jaccard"].as_f64().unwrap();
    assert!(jaccard(&fading) > jaccard(&steady) + 0.05, "{fading} {steady}");
    let named: Vec<&str> =
        steady["drifted"].as_array().unwrap().iter().filter_map(|d| d["label"].as_str()).collect();
    for label in ["label_00", "label_01", "label_05", "label_06"] {
        assert!(named.contains(&label), "{named:?}");
    }
}

#[test]
fn bad_usage_is_said() {
    let place = Workplace::with_data();
    for (arguments, part) in [
        ("stream --algorithm naibx t.parquet", "scoring needs a model"),
        ("stream --algorithm naibx --learn --half-life 6h t.parquet", "--time"),
        (
            "stream --algorithm naibx --learn --on-error ignore t.parquet",
            "stop, skip or divert FILE",
        ),
        ("stream --algorithm naibx --learn gone.parquet", "does not exist"),
        ("stream --algorithm naibx --learn --labels tags t.parquet", "no label column `tags`"),
        ("stream --algorithm naibx --learn --watch t.parquet", "--watch needs a directory"),
    ] {
        let (code, text) = place.failure(&split(arguments));
        assert_eq!(code, 2, "{arguments}: {text}");
        assert!(text.contains(part), "{arguments}: {text}");
    }
    assert!(!Path::new("c").exists());
}
