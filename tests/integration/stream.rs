//! `labelflow stream` from outside: pipes, checkpoints, kills, faults.

use crate::program::{Workplace, split};
use arrow::array::RecordBatch;
use arrow::ipc::writer::StreamWriter;
use labelflow::data::generate::{Generator, GeneratorOptions};
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

/// The rows of `t.parquet` in batches of 10, as a producer would make them.
fn batches() -> Vec<RecordBatch> {
    let shape =
        GeneratorOptions { rows: 200, features: 4, labels: 5, seed: 3, ..Default::default() };
    Generator::try_new(shape).unwrap().batches(10).map(Result::unwrap).collect()
}

/// Starts a command, sends it batches on a pipe and returns what it prints.
fn send(place: &Workplace, command: &str, batches: &[RecordBatch]) -> (Vec<u8>, String) {
    let mut child = spawn(place, &split(command), Stdio::piped(), Stdio::piped());
    let input = child.stdin.take().unwrap();
    let mut writer = StreamWriter::try_new(input, &batches[0].schema()).unwrap();
    let sent: Vec<RecordBatch> = batches.to_vec();
    let producer = std::thread::spawn(move || {
        sent.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    });
    let mut output = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
    producer.join().unwrap();
    let text = errors(&mut child);
    assert!(child.wait().unwrap().success(), "{text}");
    (output, text)
}

#[test]
fn batches_on_a_pipe_are_learned_replayed_and_the_model_is_that_of_fit() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    let command = "stream --algorithm naibx --learn --checkpoint c --save streamed.labelflow";
    let all = batches();
    let (first, text) = send(&place, command, &all[..12]);
    assert!(text.contains("column `id` is taken to be a row number and left out"), "{text}");
    // The producer sends everything again; what is known is passed over.
    let (second, text) = send(&place, command, &all);
    assert!(text.contains("going on from checkpoint 1, after 120 rows"), "{text}");
    assert!(text.contains("200 rows in") && text.contains("200 learned"), "{text}");
    place.write("first.arrows", &first);
    place.write("second.arrows", &second);
    let rows = |file: &str| {
        place.rows(&format!("SELECT count(*), min(id), max(id), max(model_version) FROM '{file}'"))
    };
    assert_eq!(
        (rows("first.arrows"), rows("second.arrows")),
        (vec!["120,0,119,119".into()], vec!["80,120,199,199".into()])
    );
    let agree = "SELECT count(*) FROM 't.parquet' WHERE predict_labels('m.labelflow', f0, f1, f2, f3) \
                 = predict_labels('streamed.labelflow', f0, f1, f2, f3)";
    assert_eq!(place.rows(agree), ["200"]);
    // Answers that go in again are refused: the columns are there already.
    let again = split(
        "stream --model streamed.labelflow --features f0 --features f1 --features f2 --features f3",
    );
    let mut child = spawn(&place, &again, Stdio::piped(), Stdio::piped());
    child.stdin.take().unwrap().write_all(&first).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2));
    let error = errors(&mut child);
    assert!(error.contains("has a column `predicted_labels` already"), "{error}");
}

/// One way to run a stream: its options, and the column in whose order rows come.
struct Setup {
    name: &'static str,
    options: &'static str,
    input: &'static str,
    order: &'static str,
}

const SETUPS: [Setup; 4] = [
    Setup {
        name: "fading",
        options: "--learn --half-life 5000 --parts arrow",
        input: "data.parquet",
        order: "id",
    },
    Setup {
        name: "window",
        options: "--learn --window 7000 --parts arrow",
        input: "data.parquet",
        order: "id",
    },
    Setup {
        name: "delayed",
        options: "--key id --pending 1500 --exclude place --parts arrow",
        input: "late.parquet",
        order: "place",
    },
    Setup { name: "plain", options: "--learn --scores", input: "data.parquet", order: "id" },
];

impl Setup {
    fn command(&self, run: &str) -> String {
        let Setup { name, options, input, .. } = self;
        format!(
            "stream --algorithm naibx {options} --checkpoint {run}-{name}-c --checkpoint-every 2000 \
             -o {run}-{name} --save {run}-{name}.labelflow {input}"
        )
    }

    /// The model and the rows of a run that is through are those of the calm one.
    fn check(&self, place: &Workplace) {
        let name = self.name;
        let model = |run: &str| place.bytes(&format!("{run}-{name}.labelflow"));
        assert!(model("calm") == model("killed"), "{name}: the models differ");
        let rows = |run: &str| {
            let query = format!(
                "SELECT {0}, labels, predicted_labels, model_version FROM '{run}-{name}/' ORDER BY {0}",
                self.order
            );
            place.rows(&query)
        };
        let calm = rows("calm");
        assert!(calm.len() >= 30_000, "{name}: {} rows", calm.len());
        assert!(rows("killed") == calm, "{name}: the rows differ");
    }
}

#[test]
fn killed_at_any_moment_it_ends_as_if_it_never_was() {
    let kills: usize =
        std::env::var("LABELFLOW_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let place = with_rows(30_000);
    // Labels come a thousand rows after their row, those of every 50th never.
    let late = "COPY (SELECT * FROM (SELECT * EXCEPT (labels), NULL AS labels, 2 * id AS place FROM 'data.parquet' \
                UNION ALL SELECT * EXCEPT (labels), labels, 2 * id + 2001 AS place FROM 'data.parquet' WHERE id % 50 > 0) \
                ORDER BY place) TO 'late.parquet'";
    place.ok(&["sql", late]);
    let mut whole = Vec::new();
    for setup in &SETUPS {
        let start = Instant::now();
        place.ok(&split(&setup.command("calm")));
        whole.push(start.elapsed());
    }
    let (mut killed, mut late, mut through) = (0, 0, 0);
    let mut wait = 0x9e37_79b9_7f4a_7c15_u64;
    for (setup, whole) in SETUPS.iter().zip(whole).cycle() {
        if killed == kills {
            break;
        }
        let command = setup.command("killed");
        let mut child = spawn(&place, &split(&command), Stdio::null(), Stdio::null());
        wait = wait.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Up to three fifths of a whole run: most die before they are through.
        let share = (wait >> 40) as f64 / (1u64 << 24) as f64;
        std::thread::sleep(whole.mul_f64(0.6 * share));
        // SIGKILL: nothing can be tidied up.
        child.kill().unwrap();
        let status = child.wait().unwrap();
        let (out, checkpoints) =
            (format!("killed-{}", setup.name), format!("killed-{}-c", setup.name));
        if status.success() {
            // It got through: start over, so that all kills hit something.
            setup.check(&place);
            through += 1;
            for name in [out, checkpoints] {
                std::fs::remove_dir_all(place.path(&name)).unwrap();
            }
            continue;
        }
        killed += 1;
        let written = place.path(&checkpoints).exists()
            && place.files(&checkpoints).iter().any(|name| name.starts_with("checkpoint-"));
        late += usize::from(written);
    }
    for setup in &SETUPS {
        place.ok(&split(&setup.command("killed")));
        setup.check(&place);
    }
    println!(
        "killed {killed} times, {late} of them after a checkpoint; {through} runs got through"
    );
    assert!(late > 0, "no kill fell after a checkpoint");
}

#[test]
fn a_terminated_run_writes_a_checkpoint_and_goes_on() {
    let place = with_rows(200_000);
    let command = "stream --algorithm naibx --learn --checkpoint c --checkpoint-every 1000000 -o out data.parquet";
    let mut child = spawn(&place, &split(command), Stdio::null(), Stdio::null());
    wait_for(&mut child, || place.path("out/.part-0000000001.parquet").exists());
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let status = child.wait().unwrap();
    let text = errors(&mut child);
    assert!(status.success(), "{text}");
    let before: u64 = place.rows("SELECT count(*) FROM 'out/'")[0].parse().unwrap();
    assert!(before > 0 && before < 200_000, "{before} rows were done when it was terminated");
    let out = place.run(&split(command));
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(text.contains(&format!("going on from checkpoint 1, after {before} rows")), "{text}");
    assert_eq!(place.rows("SELECT count(*), count(DISTINCT id) FROM 'out/'"), ["200000,200000"]);
}

#[test]
fn a_closed_pipe_ends_at_once_and_quietly() {
    let place = Workplace::new();
    let command = "stream --algorithm naibx --learn --exclude id";
    let mut child = spawn(&place, &split(command), Stdio::piped(), Stdio::piped());
    // A producer that never ends, unless nobody reads.
    let input = child.stdin.take().unwrap();
    let producer = std::thread::spawn(move || {
        let all = batches();
        let mut writer = StreamWriter::try_new(input, &all[0].schema()).unwrap();
        all.iter().cycle().take_while(|batch| writer.write(batch).is_ok()).count()
    });
    let mut head = vec![0; 1000];
    let mut output = child.stdout.take().unwrap();
    output.read_exact(&mut head).unwrap();
    let start = Instant::now();
    drop(output);
    let status = child.wait().unwrap();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(status.success());
    assert_eq!(errors(&mut child), "");
    assert!(producer.join().unwrap() > 0);
}

#[test]
fn a_changed_option_is_refused_with_the_difference() {
    let place = Workplace::with_data();
    place.ok(&split("stream --algorithm naibx --learn --checkpoint c -o out t.parquet"));
    let other = "stream --algorithm naibx --learn --checkpoint c -o out --empty-labels unlabelled t.parquet";
    let (_, text) = place.failure(&split(other));
    assert!(text.contains("`empty-labels`"), "{text}");
    let (code, text) = place.failure(&split(
        "stream --algorithm naibx --learn --window 50 --checkpoint c -o out t.parquet",
    ));
    assert_eq!(code, 2);
    assert!(text.contains("`forgetting` \"Never\" and it is"), "{text}");
    let (_, text) =
        place.failure(&split("stream --algorithm naibx --learn --checkpoint c -o other t.parquet"));
    assert!(text.contains("`output`"), "{text}");
    // A model that only answers must be the same.
    place.ok(&split("fit t.parquet -o m.labelflow"));
    let command = "stream --model m.labelflow --checkpoint scored-c -o scored t.parquet";
    place.ok(&split(command));
    place.ok(&split("fit t.parquet --exclude f0 -o m.labelflow"));
    let (code, text) = place.failure(&split(command));
    assert!(code == 2 && text.contains("`model digest`"), "{text}");
}

#[test]
fn answers_of_another_day_are_not_removed() {
    let place = Workplace::with_data();
    place.ok(&split("stream --algorithm naibx --learn --checkpoint monday -o out t.parquet"));
    let (code, text) = place
        .failure(&split("stream --algorithm naibx --learn --checkpoint tuesday -o out t.parquet"));
    assert!(code == 2 && text.contains("of another run"), "{text}");
    assert_eq!(place.rows("SELECT count(*) FROM 'out/'"), ["200"]);
}

#[test]
fn files_that_come_late_are_named_and_files_that_are_done_may_be_put_away() {
    let place = Workplace::with_data();
    std::fs::create_dir(place.path("in")).unwrap();
    let add = |name: &str| {
        std::fs::copy(place.path("t.parquet"), place.path(&format!("in/{name}.parquet"))).unwrap();
    };
    add("b");
    let command =
        "stream --algorithm naibx --learn --checkpoint c --checkpoint-every 50ms -o out in";
    let mut child =
        spawn(&place, &split(&format!("{command} --watch")), Stdio::null(), Stdio::null());
    wait_for(&mut child, || place.path("out/part-0000000001.parquet").exists());
    add("a");
    std::thread::sleep(Duration::from_millis(600));
    add("c");
    wait_for(&mut child, || place.path("out/part-0000000002.parquet").exists());
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    let text = errors(&mut child);
    assert!(text.contains("a.parquet` is not read: it came after `b.parquet`"), "{text}");
    // All that was read goes to the archive; the next file is read all the same.
    ["a", "b", "c"]
        .iter()
        .for_each(|n| std::fs::remove_file(place.path(&format!("in/{n}.parquet"))).unwrap());
    add("d");
    let out = place.run(&split(command));
    let text = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success() && text.contains("600 learned"), "{text}");
    std::fs::remove_dir_all(place.path("in")).unwrap();
    let (code, text) = place.failure(&split(command));
    assert!(code == 2 && text.contains("`in` does not exist"), "{text}");
}

#[test]
fn a_new_model_is_taken_after_a_restart() {
    let place = Workplace::with_data();
    place.ok(&["sql", "COPY (SELECT * FROM 't.parquet' WHERE id < 50) TO 'half.parquet'"]);
    place.ok(&split("fit half.parquet -o m.labelflow"));
    std::fs::create_dir(place.path("in")).unwrap();
    std::fs::copy(place.path("t.parquet"), place.path("in/a.parquet")).unwrap();
    let command = "stream --model m.labelflow --learn --reload --checkpoint c -o out in";
    let learned = || {
        let out = place.run(&split(command));
        let text = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.success(), "{text}");
        text
    };
    assert!(learned().contains("250 learned"));
    // Nothing runs while the model changes.
    place.ok(&split("fit t.parquet -o m.labelflow"));
    std::fs::copy(place.path("t.parquet"), place.path("in/b.parquet")).unwrap();
    let text = learned();
    assert!(
        text.contains("took the new model of 200 rows") && text.contains("400 learned"),
        "{text}"
    );
    // It is taken once.
    std::fs::copy(place.path("t.parquet"), place.path("in/c.parquet")).unwrap();
    let text = learned();
    assert!(!text.contains("took") && text.contains("600 learned"), "{text}");
}

#[test]
fn a_stage_is_a_stream_of_datafusion() {
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use datafusion::physical_plan::{SendableRecordBatchStream, common::collect};
    use futures::TryStreamExt;
    use labelflow::stream::{Mode, Stage, StageOptions, StageStream};
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let out = runtime.block_on(async {
        let context = datafusion::prelude::SessionContext::new();
        context.register_batch("t", batches()[0].clone()).unwrap();
        let query = context.sql("SELECT f0, f1, labels FROM t").await.unwrap();
        let input = query.execute_stream().await.unwrap();
        let columns = input.schema();
        let input = input.map_err(labelflow::sql::from_datafusion);
        let options = StageOptions { mode: Mode::TestThenTrain, ..StageOptions::default() };
        let stage = Stage::try_new(&Default::default(), "naibx", options).unwrap();
        let stream = StageStream::with_columns(stage, &columns, input).unwrap();
        let schema = stream.schema().unwrap();
        let stream = stream.map_err(labelflow::sql::to_datafusion);
        let stream: SendableRecordBatchStream =
            Box::pin(RecordBatchStreamAdapter::new(schema, stream));
        assert_eq!(stream.schema().field(3).name(), "predicted_labels");
        collect(stream).await.unwrap()
    });
    assert_eq!(out.iter().map(RecordBatch::num_rows).sum::<usize>(), 10);
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
