//! The one place where errors pass between labelflow and DataFusion.

use super::tables::FileTables;
use crate::error::{Error, ErrorKind};
use datafusion::error::DataFusionError;
use std::sync::Arc;

/// `error` as a DataFusion error, from which [`from_datafusion`] gets it back.
pub fn to_datafusion(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The labelflow error inside `error`, or its nearest equivalent with the kind kept.
pub fn from_datafusion(error: DataFusionError) -> Error {
    if let Some(own) = find_own(&error) {
        return Error::new(own.kind(), own.to_string());
    }
    let text = error.find_root().strip_backtrace();
    if let Some(unknown) = unknown_store(&text) {
        return Error::usage(unknown).with_source(error);
    }
    if let Some(unquoted) = unquoted_file(&text) {
        return Error::not_found(unquoted).with_source(error);
    }
    if let DataFusionError::ResourcesExhausted(what) = error.find_root() {
        return Error::limit(out_of_memory(what)).with_source(error);
    }
    let kind = match error.find_root() {
        DataFusionError::SQL(..)
        | DataFusionError::Plan(_)
        | DataFusionError::Configuration(_)
        | DataFusionError::NotImplemented(_)
        | DataFusionError::SchemaError(..) => ErrorKind::Usage,
        DataFusionError::ParquetError(_) => ErrorKind::Corrupt,
        DataFusionError::Execution(_) | DataFusionError::ArrowError(..) => ErrorKind::Data,
        DataFusionError::IoError(_) | DataFusionError::ObjectStore(_) => ErrorKind::Io,
        _ => ErrorKind::Internal,
    };
    let text = text.replace("Parquet error: Parquet error: ", "Parquet error: ");
    Error::new(kind, text).with_source(error)
}

/// What to say of a URL whose object store the session does not know.
fn unknown_store(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("No suitable object store found for ")?;
    let url = rest.split(". See").next()?;
    Some(format!(
        "no object store is known for `{url}`: copy the file to a disk of this machine, or embed \
         labelflow and register the store with the session"
    ))
}

/// What to say of `FROM s.csv`, which is a table `csv` in a schema `s`.
fn unquoted_file(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("table 'datafusion.")?;
    let (name, _) = rest.split_once("' not found")?;
    let (schema, table) = name.rsplit_once('.')?;
    let is_file = schema != "public" && FileTables::reads(table);
    is_file.then(|| format!("there is no table `{name}`: a file stands in quotes, FROM '{name}'"))
}

/// What to say when the pool has less than what is asked for.
fn out_of_memory(what: &str) -> String {
    let asked = || {
        let (_, rest) = what.split_once("Failed to allocate additional ")?;
        let (more, rest) = rest.split_once(" for ")?;
        let (who, rest) = rest.split_once(" with ")?;
        let (_, rest) = rest.split_once(" - ")?;
        let (left, _) = rest.split_once(" remain available")?;
        Some(format!("{who} needs {more} more and {left} are left"))
    };
    let asked = asked().unwrap_or_else(|| what.to_string());
    let otherwise = match asked.split('[').next().unwrap_or_default() {
        name if name.starts_with("ExternalSorter") => {
            ", or sort in one partition (SET datafusion.execution.target_partitions = 1)"
        }
        name if name.contains("Join") => ", or join fewer rows",
        _ => ", or learn with an algorithm that keeps counts instead of rows",
    };
    format!("the memory limit is reached ({asked}): raise it (--memory){otherwise}")
}

fn find_own<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Error> {
    let mut next = Some(error);
    while let Some(e) = next {
        if let Some(own) = e.downcast_ref::<Error>() {
            return Some(own);
        }
        // An I/O error and a shared error do not name the error they hold as their source.
        if let Some(inner) = e.downcast_ref::<std::io::Error>().and_then(|io| io.get_ref()) {
            next = Some(inner as &(dyn std::error::Error + 'static));
        } else if let Some(shared) = e.downcast_ref::<Arc<DataFusionError>>() {
            next = Some(shared.as_ref());
        } else {
            next = e.source();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_survives_the_way_through_datafusion() {
        let inner = to_datafusion(Error::limit("too many labels"));
        let wrapped = DataFusionError::Shared(Arc::new(inner.context("while planning")));
        let back = from_datafusion(wrapped);
        assert_eq!(back.kind(), ErrorKind::Limit);
        assert_eq!(back.to_string(), "too many labels");
        let full = "Failed to allocate additional 12.0 MB for AggregateStream[0] with 1.0 MB already \
                    allocated for this reservation - 3.0 MB remain available for the total memory pool";
        let full = from_datafusion(DataFusionError::ResourcesExhausted(full.into()));
        assert_eq!(full.kind(), ErrorKind::Limit);
        let told = "the memory limit is reached (AggregateStream[0] needs 12.0 MB more and 3.0 MB are \
                    left): raise it (--memory), or learn with an algorithm that keeps counts instead of rows";
        assert_eq!(full.to_string(), told);
        let full = "Failed to allocate additional 256.0 KB for ExternalSorterMerge[0] with 2.0 MB already \
                    allocated for this reservation - 27.0 KB remain available for the total memory pool";
        let full = from_datafusion(DataFusionError::ResourcesExhausted(full.into()));
        assert!(full.to_string().ends_with("target_partitions = 1)"), "{full}");
        let full = "Failed to allocate additional 1.0 MB for CrossJoinExec with 2.0 MB already allocated \
                    for this reservation - 1.0 KB remain available for the total memory pool";
        let full = from_datafusion(DataFusionError::ResourcesExhausted(full.into()));
        assert!(full.to_string().ends_with("(--memory), or join fewer rows"), "{full}");
        let plan = from_datafusion(DataFusionError::Plan("no such table".into()));
        assert_eq!(plan.kind(), ErrorKind::Usage);
    }
}
