//! SIGINT and SIGTERM.

use crate::error::{Error, Result};
use crate::store::remove_unfinished;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The signals that ask a process to end.
const ENDING: [i32; 2] = [SIGINT, SIGTERM];
/// How often the flags are looked at: a handler may do no more than set one.
const LOOK: Duration = Duration::from_millis(50);

/// Lets a signal remove outputs that are not complete and end the process. The exit code is that of
/// a process that the signal killed: 130 or 143.
pub(super) fn remove_and_end() -> Result<()> {
    let mut flags = Vec::new();
    for signal in ENDING {
        let flag = Arc::new(AtomicBool::new(false));
        receive(signal, 128 + signal, &flag)?;
        flags.push((signal, flag));
    }
    let look = move || loop {
        if let Some((signal, _)) = flags.iter().find(|(_, flag)| flag.load(Ordering::Relaxed)) {
            remove_unfinished(|| std::process::exit(128 + signal));
        }
        std::thread::sleep(LOOK);
    };
    let thread = std::thread::Builder::new().name("signals".to_string()).spawn(look);
    thread.map(drop).map_err(unreceived)
}

/// Lets a signal set `stop`; a second one ends the process at once.
pub(super) fn stop_in_order(stop: &Arc<AtomicBool>) -> Result<()> {
    ENDING.into_iter().try_for_each(|signal| receive(signal, 1, stop))
}

/// The first `signal` sets `flag`, the second ends the process with `code`.
fn receive(signal: i32, code: i32, flag: &Arc<AtomicBool>) -> Result<()> {
    flag::register_conditional_shutdown(signal, code, Arc::clone(flag))
        .and_then(|_| flag::register(signal, Arc::clone(flag)))
        .map(drop)
        .map_err(unreceived)
}

fn unreceived(error: std::io::Error) -> Error {
    Error::io("signals cannot be received", error)
}
