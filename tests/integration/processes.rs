//! Commands as processes: kills and signals, pipes that are closed, threads.

#![cfg(unix)]

use crate::program::{Workplace, split};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Starts a command; what it makes in the temporary directory is in the place too.
fn start(place: &Workplace, arguments: &[&str], output: Stdio, errors: Stdio) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_labelflow"));
    command.args(arguments).current_dir(place.dir()).env("TMPDIR", place.dir());
    command.stdout(output).stderr(errors).spawn().unwrap()
}

/// The bytes below a directory; files may go while they are counted.
fn bytes_in(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    let size = |path: &Path| match path.is_dir() {
        true => bytes_in(path),
        false => path.metadata().map_or(0, |m| m.len()),
    };
    entries.flatten().map(|entry| size(&entry.path())).sum()
}

/// Waits until a megabyte more than `before` is written.
fn wait_for_output(place: &Workplace, child: &mut Child, before: u64) {
    while bytes_in(place.dir()) < before + (1 << 20) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be stopped");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A killed process leaves the old file; the same command works afterwards.
#[test]
fn a_kill_leaves_the_old_file() {
    let place = Workplace::new();
    place.write("keep.parquet", "old");
    let arguments = split("generate --rows 100000000 --features 20 keep.parquet");
    let mut child = start(&place, &arguments, Stdio::null(), Stdio::null());
    wait_for_output(&place, &mut child, 3);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.bytes("keep.parquet"), b"old");
    place.ok(&split("generate --rows 10 keep.parquet"));
    assert_eq!(place.rows("SELECT count(*) FROM 'keep.parquet'"), ["10"]);
}

/// A signal leaves the old file and nothing else, in the temporary directory too.
#[test]
fn a_signal_leaves_nothing_half_written() {
    let place = Workplace::with_data();
    place.write("keep.parquet", "old");
    place.write("keep.csv", "old");
    let (files, bytes) = (place.files("."), bytes_in(place.dir()));
    let many =
        "(SELECT a.f0, a.f1, b.id FROM 't.parquet' AS a, 't.parquet' AS b, 't.parquet' AS c)";
    let to_file = format!("COPY {many} TO 'keep.csv'");
    let to_directory = format!("COPY {many} TO 'parts/' STORED AS CSV");
    let sorted = format!(
        "SET datafusion.execution.target_partitions = 1; COPY {} TO 'keep.csv'",
        many.replace(')', " ORDER BY a.f0, b.f1)")
    );
    let generate = split("generate --rows 100000000 --features 20 keep.parquet");
    for (signal, code, command) in [
        ("-INT", 130, &generate[..]),
        ("-TERM", 143, &generate),
        ("-INT", 130, &["sql", &to_file]),
        ("-TERM", 143, &["sql", &to_directory]),
        // Its rows are spilled to disk before the first is written.
        ("-INT", 130, &["sql", "--memory", "100", &sorted]),
        ("-INT", 130, &["demo", "--rows", "100000000"]),
    ] {
        let mut child = start(&place, command, Stdio::null(), Stdio::piped());
        wait_for_output(&place, &mut child, bytes);
        let id = child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), text.as_str()), (Some(code), ""), "{command:?}");
        assert_eq!(place.files("."), files, "{command:?}");
        assert_eq!(place.bytes("keep.parquet"), b"old", "{command:?}");
        assert_eq!(place.bytes("keep.csv"), b"old", "{command:?}");
    }
}

/// Whoever closes the output has read enough; whoever closes the errors does not want them.
#[test]
fn a_closed_pipe_is_no_failure() {
    let place = Workplace::with_data();
    place.ok(&split("fit t.parquet -o m.labelflow"));
    for command in [
        "algorithms",
        "inspect m.labelflow",
        "describe t.parquet",
        "describe t.parquet --format json",
        "evaluate t.parquet --folds 2",
        "evaluate t.parquet --folds 2 --report --format csv",
        "demo --rows 100",
    ] {
        let mut child = start(&place, &split(command), Stdio::piped(), Stdio::piped());
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let told: Vec<&str> = text.lines().filter(|l| !l.starts_with("note: ")).collect();
        assert!(output.status.success() && told.is_empty(), "{command}: {text}");
    }
    for command in ["fit t.parquet -o n.labelflow", "merge m.labelflow m.labelflow -o n.labelflow"]
    {
        let mut child = start(&place, &split(command), Stdio::null(), Stdio::piped());
        drop(child.stderr.take());
        assert!(child.wait().unwrap().success(), "{command}");
        std::fs::remove_file(place.path("n.labelflow")).unwrap();
    }
}

/// `--threads` says how many threads compute, also where rows are fitted after they were read.
#[cfg(target_os = "linux")]
#[test]
fn threads_are_as_many_as_asked_for() {
    let place = Workplace::new();
    place.ok(&split("generate --rows 3000 --features 20 --labels 20 t.parquet"));
    for threads in ["1", "3"] {
        let fit = ["fit", "--threads", threads, "--algorithm", "br", "t.parquet", "-o", "m"];
        let mut child = start(&place, &fit, Stdio::null(), Stdio::null());
        let tasks = format!("/proc/{}/task", child.id());
        let mut computing = 0;
        while child.try_wait().unwrap().is_none() {
            let entries = std::fs::read_dir(&tasks).into_iter().flatten().flatten();
            let names = entries.map(|e| std::fs::read_to_string(e.path().join("comm")));
            let names: Vec<String> = names.map(Result::unwrap_or_default).collect();
            let now = names.iter().filter(|name| name.starts_with("compute-")).count();
            computing = computing.max(now);
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(child.wait().unwrap().success());
        assert_eq!(computing.to_string(), threads);
    }
}
