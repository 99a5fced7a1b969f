//! Replays the corpus, then tries changed inputs for a while: `replay [SECONDS] [TARGET...]`.
//!
//! Needs nothing but stable Rust. The changes are those of a fixed random sequence, so a run can be
//! repeated; an input that fails is kept in `artifacts/`.

use labelflow_fuzz::{TARGETS, Target};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// An input that takes longer is a bug.
const SLOW: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().map_or(Ok(2.0), |s| s.parse::<f64>());
    let Ok(seconds) = seconds else {
        eprintln!("usage: replay [SECONDS] [TARGET...]");
        return ExitCode::from(2);
    };
    let wanted: Vec<String> = arguments.collect();
    let chosen = |t: &&Target| wanted.is_empty() || wanted.iter().any(|w| w == t.0);
    for target in TARGETS.iter().filter(chosen) {
        if let Err(failure) = run(target, Duration::from_secs_f64(seconds)) {
            eprintln!("{}: {failure}", target.0);
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn run(target: &Target, time: Duration) -> Result<(), String> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = read_all(&home.join("corpus").join(target.0))?;
    if corpus.is_empty() {
        return Err("the corpus is empty".into());
    }
    for (name, input) in &corpus {
        attempt(target, input).map_err(|e| format!("{}: {e}", name.display()))?;
    }
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let start = Instant::now();
    let mut tried = 0u64;
    while start.elapsed() < time {
        let mut input = corpus[random.below(corpus.len())].1.clone();
        for _ in 0..=random.below(4) {
            change(&mut input, &corpus, &mut random);
        }
        if let Err(failure) = attempt(target, &input) {
            let kept = home.join("artifacts").join(target.0);
            std::fs::create_dir_all(&kept).map_err(|e| e.to_string())?;
            let kept = kept.join(format!("crash-{tried}"));
            std::fs::write(&kept, &input).map_err(|e| e.to_string())?;
            return Err(format!("{failure}; the input is kept in {}", kept.display()));
        }
        tried += 1;
    }
    println!("{}: {} inputs of the corpus, {tried} changed ones", target.0, corpus.len());
    Ok(())
}

fn read_all(directory: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let say = |e: std::io::Error| format!("{}: {e}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(say)? {
        let path = entry.map_err(say)?.path();
        let bytes = std::fs::read(&path).map_err(say)?;
        files.push((path, bytes));
    }
    files.sort();
    Ok(files)
}

fn attempt(target: &Target, input: &[u8]) -> Result<(), String> {
    let start = Instant::now();
    let body = target.1;
    catch_unwind(|| body(input)).map_err(|_| "it panicked".to_string())?;
    match start.elapsed() {
        taken if taken > SLOW => Err(format!("it took {taken:?}")),
        _ => Ok(()),
    }
}

/// Changes `input` in one place.
fn change(input: &mut Vec<u8>, corpus: &[(PathBuf, Vec<u8>)], random: &mut Random) {
    const ODD: [&[u8]; 16] = [
        b"?",
        b"'",
        b"\"",
        b"\\",
        b"{",
        b"}",
        b",",
        b":",
        b"%",
        b"nan",
        b"-1",
        b"1e999",
        b"99999999999999999999",
        b"\n",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x80",
    ];
    let at = random.below(input.len() + 1);
    let end = (at + 1 + random.below(16)).min(input.len());
    match random.below(6) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = random.next() as u8,
        2 => drop(input.drain(at.min(end)..end)),
        3 => drop(input.splice(at..at, ODD[random.below(ODD.len())].iter().copied())),
        4 => {
            let other = &corpus[random.below(corpus.len())].1;
            let from = random.below(other.len() + 1);
            let to = (from + random.below(64)).min(other.len());
            drop(input.splice(at..at, other[from..to].iter().copied()));
        }
        _ => {
            let piece = input[at.min(end)..end].to_vec();
            let to = random.below(input.len() + 1);
            drop(input.splice(to..to, piece));
        }
    }
}

/// Xorshift: quick, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}
