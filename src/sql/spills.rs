//! Files that queries write when memory is short.

use crate::store::Unfinished;
use datafusion::error::Result;
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder};
use datafusion::execution::{SpillFile, TempFileFactory};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Files in a temporary directory of DataFusion's, which a signal takes away with all that is not
/// complete: destructors do not run then. A directory that a user sets (`SET
/// datafusion.runtime.temp_directory`) is DataFusion's alone.
pub(super) struct SpillFiles {
    files: Arc<DiskManager>,
    directory: OnceLock<Unfinished>,
}

impl SpillFiles {
    /// For a session: nothing is made before it is needed.
    ///
    /// # Errors
    ///
    /// When DataFusion refuses its own settings.
    pub(super) fn builder() -> Result<DiskManagerBuilder> {
        let files = Arc::new(DiskManagerBuilder::default().build()?);
        let spills = SpillFiles { files, directory: OnceLock::new() };
        Ok(DiskManagerBuilder::default().with_temp_file_factory(Arc::new(spills)))
    }
}

impl TempFileFactory for SpillFiles {
    fn create_temp_file(&self, description: &str) -> Result<Arc<dyn SpillFile>> {
        let file = self.files.create_tmp_file(description)?;
        if let Some(directory) = self.files.temp_dir_paths().pop() {
            self.directory.get_or_init(|| Unfinished::new(directory));
        }
        Ok(file)
    }
}

impl fmt::Debug for SpillFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillFiles").field("directory", &self.directory).finish_non_exhaustive()
    }
}
