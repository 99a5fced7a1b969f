//! What is being written, so that it can be taken away.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What stands between the unique part of a temporary name and the name of the destination.
pub(crate) const PART: &str = ".part-";

/// The most attempts to remove a directory that other threads still write to.
const ATTEMPTS: usize = 100;

/// Everything unfinished of this process: a signal ends the process, not one piece of work.
static ALL: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file or directory in the making. It is removed when the value is dropped; what was renamed by
/// then is not there any more.
#[derive(Debug)]
pub(crate) struct Unfinished(PathBuf);

impl Unfinished {
    /// Takes charge of `path`, whether it exists yet or not.
    pub(crate) fn new(path: PathBuf) -> Self {
        all().insert(path.clone());
        Unfinished(path)
    }

    /// A hidden name beside `destination` that nobody else has.
    pub(crate) fn beside(destination: &Path) -> Self {
        // Not the process id: threads share it, and so do containers. The extension stays, because
        // writers choose the format by it.
        let unique = RandomState::new().build_hasher().finish();
        let mut name = OsString::from(format!(".{unique:016x}{PART}"));
        name.push(destination.file_name().unwrap_or_default());
        Unfinished::new(destination.with_file_name(name))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        remove(&self.0);
        all().remove(&self.0);
    }
}

fn all() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    // A thread that panicked leaves the set whole.
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all files and directories of this process that are not complete, then calls `end`, which
/// should end the process: until it returns, none is begun or completed.
///
/// For the signal handler of a program; destructors do the same when work ends in any other way.
///
/// # Examples
///
/// ```
/// use labelflow::store::{AtomicFile, remove_unfinished};
///
/// let dir = tempfile::tempdir()?;
/// let file = AtomicFile::try_new(&dir.path().join("out.csv"))?;
/// std::fs::write(file.temporary(), "a,b\n")?;
/// remove_unfinished(|| assert!(!file.temporary().exists()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn remove_unfinished(end: impl FnOnce()) {
    let all = all();
    all.iter().for_each(|path| remove(path));
    end();
    drop(all);
}

/// Removes what is at `path`. It may not be there, and there is nobody to tell about the rest.
fn remove(path: &Path) {
    let _ = (0..ATTEMPTS).find(|_| !path.is_dir() || std::fs::remove_dir_all(path).is_ok());
    let _ = std::fs::remove_file(path);
    // An upload to the local disk goes to `name#1` first, or to the next number that is free.
    let staged = |n: &usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("#{n}"));
        std::fs::remove_file(name).is_ok()
    };
    (1..).take_while(staged).for_each(drop);
}
