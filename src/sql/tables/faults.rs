//! Errors of files that DataFusion reads: which file, and what to do.

use super::csv;
use crate::error::{Error, ErrorKind};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `error` of a query whose scans are `leaves`, with the file and line that are to blame where that
/// can be found out.
///
/// # Cost
///
/// A row of a CSV file that cannot be read is looked for from the beginning of the file: the threads
/// of a scan count the lines of their parts.
pub(crate) fn explain(leaves: &[&Arc<dyn ExecutionPlan>], error: Error) -> Error {
    let text = error.to_string();
    // A file that cannot be read or written to the end is not damaged.
    if text.contains("os error") {
        return error;
    }
    for scan in leaves.iter().filter_map(|leaf| scan(leaf)) {
        let kind = scan.file_source().file_type();
        let paths: Vec<PathBuf> = files(scan);
        if kind == "csv" && csv::is_fault(&text) {
            let schema = scan.file_source().table_schema().file_schema();
            if let Some(fault) = paths.iter().find_map(|p| csv::fault(p, Some((schema, &text)))) {
                return fault;
            }
        }
        if let Some(what) = damage(kind, &text) {
            let name = match &paths[..] {
                [] => continue,
                [one] => shown(one),
                [first, .., last] => format!("{}` to `{}", shown(first), shown(last)),
            };
            return Error::new(ErrorKind::Corrupt, format!("`{name}`: {what}")).with_source(error);
        }
    }
    error
}

/// What to say of an error that the reader of such files gives.
pub(super) fn damage(kind: &str, text: &str) -> Option<String> {
    let cause = |mark: &str| text.split_once(mark).map(|(_, rest)| rest.trim());
    match kind {
        "parquet" if text.starts_with("Parquet error: ") => cause("Parquet error: ")
            .map(|what| format!("the file is no whole Parquet file ({what}): write it again")),
        "arrow" | "arrow_stream" => {
            ["Arrow error: Io error: ", "Arrow error: Ipc error: ", "Failed to parse Arrow file"]
                .into_iter()
                .find_map(cause)
                .map(|_| "the file is no whole Arrow file: write it again".to_string())
        }
        "json" => cause("Arrow error: Json error: ").map(|what| {
            format!("{what}; write one object on a line, and every field alike in all of them")
        }),
        _ => None,
    }
}

/// The scan of files that `leaf` is.
pub(in crate::sql) fn scan(leaf: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    leaf.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref()
}

/// The files of a scan that lie on this machine, by name.
fn files(scan: &FileScanConfig) -> Vec<PathBuf> {
    if scan.object_store_url.as_str() != "file:///" {
        return Vec::new();
    }
    let files = scan.file_groups.iter().flat_map(|group| group.iter());
    let mut paths: Vec<PathBuf> =
        files.map(|f| absolute(f.object_meta.location.as_ref())).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// The path of a file that DataFusion names without the root.
pub(super) fn absolute(location: &str) -> PathBuf {
    Path::new("/").join(location)
}

/// `path` as somebody in the working directory would write it.
pub(super) fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let short = here.and_then(|here| path.strip_prefix(here).ok());
    short.unwrap_or(path).display().to_string()
}
