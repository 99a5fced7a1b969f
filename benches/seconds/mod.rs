//! What a job costs, for benchmarks that compare two jobs in one run.

use std::time::Instant;

/// The least seconds of `repeats` runs: of the processor where a pool of one thread does the work
/// and the system tells them, else of the clock.
pub fn seconds(repeats: usize, mut job: impl FnMut()) -> f64 {
    let start = Instant::now();
    let processor = || {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let spent: f64 = text.split(' ').next()?.parse().ok()?;
        (rayon::current_num_threads() == 1).then_some(spent * 1e-9)
    };
    let now = || processor().unwrap_or_else(|| start.elapsed().as_secs_f64());
    let once = |_| {
        let before = now();
        job();
        now() - before
    };
    (0..repeats).map(once).fold(f64::INFINITY, f64::min)
}

/// Runs `job` in a pool of so many threads.
pub fn with_threads<T: Send>(threads: usize, job: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("threads").install(job)
}
