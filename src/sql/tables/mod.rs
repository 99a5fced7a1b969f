//! Files as tables: what DataFusion reads, and the formats of [`crate::formats`].

mod buffers;
mod columns;
mod csv;
mod faults;
mod rows;
mod visible;

pub(super) use buffers::{Buffer, Buffers};
pub use columns::Gap;
pub(super) use faults::{explain, scan};
pub(super) use visible::{Bytes, is_local};

use super::error::{from_datafusion, to_datafusion};
use crate::data::Pattern;
use crate::error::{Error, Result};
use crate::formats::{FileReader, LabelSource};
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{DynamicFileCatalog, TableProvider, UrlTableFactory};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::datasource::source_as_provider;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::SessionState;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::LogicalPlan;
use datafusion::object_store::ObjectMeta;
use datafusion::prelude::{DataFrame, SessionContext};
use faults::{absolute, damage, shown};
use futures::TryStreamExt;
use rows::RowFiles;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Extensions, and what DataFusion calls the format of such files.
const FORMATS: &[(&str, &str)] = &[
    ("parquet", "parquet"),
    ("csv", "csv"),
    ("json", "json"),
    ("jsonl", "json"),
    ("ndjson", "json"),
    ("arrow", "arrow"),
    ("arrows", "arrow"),
];

/// What DataFusion calls the format of files of `extension`, if it reads them.
fn format_of(extension: &str) -> Option<&'static str> {
    FORMATS.iter().find(|(name, _)| extension.eq_ignore_ascii_case(name)).map(|f| f.1)
}

/// The rows of a CSV file from which the types of its columns are taken.
const CSV_SAMPLE: usize = 10_000;

/// How files become tables.
#[derive(Debug, Clone, Default)]
pub struct FileOptions {
    /// Where the label attributes of ARFF files are named.
    pub arff_labels: LabelSource,
    /// Columns of CSV files that are text, whatever their first rows look like.
    pub csv_text: Vec<Pattern>,
}

/// Makes a table of every file named in a query: `FROM 'train.parquet'`, `FROM 'emotions.arff'`.
pub fn enable_file_tables(ctx: &SessionContext, options: FileOptions) {
    let listing = DynamicListTableFactory::default();
    listing.session_store().with_state(ctx.state_weak_ref());
    let inner = Arc::clone(ctx.state().catalog_list());
    // A session without a local disk has nothing to hide.
    let _ = visible::hide(&ctx.runtime_env(), &ObjectStoreUrl::local_filesystem());
    let files = FileTables { listing, options };
    ctx.register_catalog_list(Arc::new(DynamicFileCatalog::new(inner, Arc::new(files))));
}

/// Finds the table behind the name of a file, a directory or a pattern.
#[derive(Debug)]
pub struct FileTables {
    /// Holds on to the session.
    listing: DynamicListTableFactory,
    options: FileOptions,
}

#[async_trait]
impl UrlTableFactory for FileTables {
    async fn try_new(&self, url: &str) -> DataFusionResult<Option<Arc<dyn TableProvider>>> {
        let path = Path::new(url);
        let is_url = url.contains("://");
        let is_pattern = url.contains(['*', '?', '[']);
        if !is_url && !is_pattern && !path.exists() {
            // A plain name is a table that does not exist; what looks like a file should be one.
            if url.contains(['/', '\\']) || path.extension().is_some() {
                return Err(to_datafusion(Error::not_found(format!(
                    "file `{url}` does not exist: check the path"
                ))));
            }
            return Ok(None);
        }
        let Ok(table) = ListingTableUrl::parse(url) else { return Ok(None) };
        self.open(url, table).await.map(Some)
    }
}

impl FileTables {
    /// Whether files of this extension are tables.
    pub fn reads(extension: &str) -> bool {
        format_of(extension).is_some() || FileReader::reads(extension)
    }

    /// Whether `query` reads CSV, in which an empty field and a NULL are one.
    pub fn is_csv(query: &DataFrame) -> bool {
        listing_tables(query).iter().any(|files| files.options().format.get_ext() == "csv")
    }

    fn session(&self) -> Result<SessionState> {
        let session = self.listing.session_store().get_session().upgrade();
        session
            .and_then(|s| s.read().as_any().downcast_ref::<SessionState>().cloned())
            .ok_or_else(|| Error::internal("the session of a query is gone"))
    }

    async fn open(
        &self,
        name: &str,
        url: ListingTableUrl,
    ) -> DataFusionResult<Arc<dyn TableProvider>> {
        let named = |e| to_datafusion(from_datafusion(e).context(format!("`{name}`")));
        let state = self.session().map_err(to_datafusion)?;
        visible::hide(state.runtime_env(), &url.object_store()).map_err(named)?;
        let files = list(&state, &url).await.map_err(named)?;
        let extension = match common_extension(&files, &url) {
            Ok(extension) => extension,
            Err(error) => return Err(named(to_datafusion(error))),
        };
        let local: Vec<PathBuf> = match url.scheme() {
            // As the user named it, for messages.
            "file" if Path::new(name).is_file() => vec![PathBuf::from(name)],
            "file" => {
                let same = files.iter().filter(|f| extension_of(f) == Some(&extension));
                same.map(|f| absolute(f.location.as_ref())).collect()
            }
            _ => Vec::new(),
        };
        if format_of(&extension).is_some() || !FileReader::reads(&extension) {
            return self.listing_table(&state, name, url, &extension, &local).await;
        }
        if local.is_empty() {
            return Err(named(to_datafusion(Error::unsupported(format!(
                ".{extension} files are read from the local disk, not by {}: copy them first",
                url.scheme()
            )))));
        }
        RowFiles::table(&local, &self.options.arff_labels, state.config().target_partitions())
    }

    /// A table of the files of one extension, read by DataFusion; `local` are those on this machine.
    async fn listing_table(
        &self,
        state: &SessionState,
        name: &str,
        url: ListingTableUrl,
        extension: &str,
        local: &[PathBuf],
    ) -> DataFusionResult<Arc<dyn TableProvider>> {
        let format = format_of(extension).unwrap_or("");
        let named = |e| {
            let error = from_datafusion(e);
            let error = match damage(format, &error.to_string()) {
                Some(what) => Error::corrupt(what).with_source(error),
                None => error,
            };
            to_datafusion(error.context(format!("`{name}`")))
        };
        if format == "parquet" {
            local.iter().try_for_each(|file| check_footer(file)).map_err(to_datafusion)?;
        }
        let mut settings = HashMap::new();
        if format == "csv" {
            settings.insert("format.schema_infer_max_rec".into(), CSV_SAMPLE.to_string());
            let whole = must_stay_whole(state, &url, local).await?;
            settings.insert("format.newlines_in_values".into(), whole.to_string());
        }
        let factory = state.get_file_format_factory(format);
        let factory = factory.ok_or_else(|| named(to_datafusion(unreadable())))?;
        let options = ListingOptions::new(factory.create(state, &settings).map_err(named)?)
            .with_file_extension(format!(".{extension}"));
        let config = ListingTableConfig::new(url).with_listing_options(options);
        let config = config.infer_partitions_from_path(state).await.map_err(named)?;
        let mut config = match format {
            "csv" if !local.is_empty() => {
                config.with_schema(csv::schema(local).map_err(to_datafusion)?)
            }
            _ => infer_schema(config, state).await.map_err(named)?,
        };
        if config.file_schema.as_ref().is_some_and(|schema| schema.fields().is_empty()) {
            let error = Error::data("there are no columns: the file is empty");
            return Err(named(to_datafusion(error)));
        }
        if let Some(schema) = config.file_schema.clone().filter(|_| format == "csv") {
            config = config.with_schema(self.csv_schema(&schema));
        }
        let config = columns::settle(state, config).await?;
        Ok(Arc::new(ListingTable::try_new(config).map_err(named)?))
    }

    /// The schema of a CSV file with the columns that are known to be text.
    fn csv_schema(&self, schema: &Schema) -> SchemaRef {
        let text = |name: &str| self.options.csv_text.iter().any(|p| p.matches(name));
        let fields = schema.fields().iter().map(|field| match text(field.name()) {
            true => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
            false => Arc::clone(field),
        });
        Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
    }
}

/// Takes the columns from the files: a task, because the memory that footers take while they are read
/// serves the tasks that read rows afterwards, and not the thread that waits for those.
async fn infer_schema(
    config: ListingTableConfig,
    state: &SessionState,
) -> DataFusionResult<ListingTableConfig> {
    if Handle::try_current().is_err() {
        return config.infer_schema(state).await;
    }
    let state = state.clone();
    let task = SpawnedTask::spawn(async move { config.infer_schema(&state).await });
    task.join_unwind().await.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))?
}

/// Whether CSV files must not be cut for several threads: a line break inside quotes, taken for the
/// end of a row, would give wrong rows without a word. What cannot be looked at stays whole.
async fn must_stay_whole(
    state: &SessionState,
    url: &ListingTableUrl,
    local: &[PathBuf],
) -> DataFusionResult<bool> {
    let settings = &state.config_options().optimizer;
    if state.config().target_partitions() < 2 || !settings.repartition_file_scans {
        return Ok(false);
    }
    if url.scheme() != "file" {
        return Ok(true);
    }
    let files = local.to_vec();
    let search = move || -> Result<bool> {
        for file in files {
            if csv::has_breaks_in_quotes(&file)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let found = tokio::task::spawn_blocking(search).await;
    found.map_err(|e| DataFusionError::External(Box::new(e)))?.map_err(to_datafusion)
}

/// The tables of files that `query` has DataFusion read.
fn listing_tables(query: &DataFrame) -> Vec<ListingTable> {
    let mut found = Vec::new();
    // The visitor never fails.
    let _ = query.logical_plan().apply(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(table) = source_as_provider(&scan.source)
        {
            found.extend(table.downcast_ref::<ListingTable>().cloned());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// The files behind `url`, by name.
async fn list(state: &SessionState, url: &ListingTableUrl) -> DataFusionResult<Vec<ObjectMeta>> {
    let store = state.runtime_env().object_store(url)?;
    let files = url.list_all_files(state, store.as_ref(), "").await?;
    let mut files: Vec<ObjectMeta> = files.try_collect().await?;
    files.sort_by(|a, b| a.location.cmp(&b.location));
    Ok(files)
}

fn extension_of(file: &ObjectMeta) -> Option<&str> {
    Path::new(file.location.as_ref()).extension().and_then(|e| e.to_str())
}

/// The extension of all files that can be read.
fn common_extension(files: &[ObjectMeta], url: &ListingTableUrl) -> Result<String> {
    let mut readable = files.iter().filter(|f| extension_of(f).is_some_and(FileTables::reads));
    let Some((first, extension)) = readable.next().and_then(|f| Some((f, extension_of(f)?))) else {
        return Err(match files.is_empty() {
            false => unreadable(),
            true if url.get_glob().is_some() => {
                Error::not_found("no file matches this pattern: check the path")
            }
            true if url.is_collection() => Error::not_found(
                "there is no file in this directory, besides those whose names begin with . or _: \
                 name one with data",
            ),
            true => Error::not_found("there is no file of this name: check the path"),
        });
    };
    if let Some(other) = readable.find(|f| extension_of(f) != Some(extension)) {
        let name = |f: &ObjectMeta| f.location.filename().unwrap_or_default().to_string();
        return Err(Error::usage(format!(
            "there are files of two kinds, `{}` and `{}`: choose one kind with a pattern such as \
             `*.{extension}`",
            name(first),
            name(other)
        )));
    }
    Ok(extension.to_string())
}

/// Whether a Parquet file ends with a footer that fits into it; the reader takes that for granted.
fn check_footer(path: &Path) -> Result<()> {
    let name = shown(path);
    let failed = |e| Error::io(format!("file `{name}` cannot be read"), e);
    let mut file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    let mut end = [0u8; 8];
    if len >= 8 {
        file.seek(SeekFrom::End(-8)).map_err(failed)?;
        file.read_exact(&mut end).map_err(failed)?;
    }
    let [a, b, c, d, magic @ ..] = end;
    let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
    // An empty file has no rows and no columns, and the reader passes over it.
    if len > 0 && (&magic != b"PAR1" || footer + 8 > len) {
        return Err(Error::corrupt(format!(
            "file `{name}` is no whole Parquet file: write it again"
        )));
    }
    Ok(())
}

fn unreadable() -> Error {
    let others = FileReader::EXTENSIONS.iter().copied().filter(|e| format_of(e).is_none());
    let extensions: Vec<String> =
        FORMATS.iter().map(|f| f.0).chain(others).map(|e| format!(".{e}")).collect();
    Error::usage(format!(
        "this kind of file cannot be read: name a file, directory or pattern of {}",
        extensions.join(", ")
    ))
}
