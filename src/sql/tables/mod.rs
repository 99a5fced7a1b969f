//! Files as tables: what DataFusion reads, and the formats of [`crate::formats`].

mod rows;

use super::error::{from_datafusion, to_datafusion};
use crate::data::Pattern;
use crate::error::{Error, Result};
use crate::formats::{FileReader, LabelSource};
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{DynamicFileCatalog, TableProvider, UrlTableFactory};
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::Result as DataFusionResult;
use datafusion::execution::SessionState;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use rows::RowFiles;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
        FileReader::reads(extension)
            || FORMATS.iter().any(|(format, _)| extension.eq_ignore_ascii_case(format))
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
        let files = list(&state, &url).await.map_err(named)?;
        let mut extensions = files.iter().filter_map(|f| extension(f));
        let Some(first) = extensions.find(|e| FileTables::reads(e)) else {
            let error = match files.is_empty() {
                true => Error::not_found("there is no file of this name: check the path"),
                false => unreadable(),
            };
            return Err(named(to_datafusion(error)));
        };
        if !FileReader::reads(first) {
            if url.scheme() == "file" && first.eq_ignore_ascii_case("parquet") {
                let parquet = files.iter().filter(|f| extension(f) == Some(first));
                for file in parquet {
                    check_footer(&Path::new("/").join(file))
                        .map_err(to_datafusion)
                        .map_err(named)?;
                }
            }
            return self.listing_table(&state, url, first).await.map_err(named);
        }
        let paths: Vec<PathBuf> = match url.scheme() {
            // As the user named it, for messages.
            "file" if Path::new(name).is_file() => vec![PathBuf::from(name)],
            "file" => {
                let same = files.iter().filter(|f| extension(f) == Some(first));
                same.map(|f| Path::new("/").join(f)).collect()
            }
            scheme => {
                return Err(named(to_datafusion(Error::unsupported(format!(
                    ".{first} files are read from the local disk, not by {scheme}: copy them first"
                )))));
            }
        };
        RowFiles::table(&paths, &self.options.arff_labels, state.config().target_partitions())
    }

    /// A table of the files of one extension, read by DataFusion.
    async fn listing_table(
        &self,
        state: &SessionState,
        url: ListingTableUrl,
        extension: &str,
    ) -> DataFusionResult<Arc<dyn TableProvider>> {
        let format = FORMATS.iter().find(|(name, _)| extension.eq_ignore_ascii_case(name));
        let format = format.map_or("", |f| f.1);
        let mut settings = HashMap::new();
        if format == "csv" {
            settings.insert("format.schema_infer_max_rec".into(), CSV_SAMPLE.to_string());
        }
        let factory = state.get_file_format_factory(format);
        let factory = factory.ok_or_else(|| to_datafusion(unreadable()))?;
        let options = ListingOptions::new(factory.create(state, &settings)?)
            .with_file_extension(format!(".{extension}"));
        let config = ListingTableConfig::new(url).with_listing_options(options);
        let mut config =
            config.infer_partitions_from_path(state).await?.infer_schema(state).await?;
        if config.file_schema.as_ref().is_some_and(|schema| schema.fields().is_empty()) {
            return Err(to_datafusion(Error::data("there are no columns: the file is empty")));
        }
        if let Some(schema) = config.file_schema.clone().filter(|_| format == "csv") {
            config = config.with_schema(self.csv_schema(&schema));
        }
        Ok(Arc::new(ListingTable::try_new(config)?))
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

/// The files behind `url`, by name.
async fn list(state: &SessionState, url: &ListingTableUrl) -> DataFusionResult<Vec<String>> {
    let store = state.runtime_env().object_store(url)?;
    let files = url.list_all_files(state, store.as_ref(), "").await?;
    let mut files: Vec<String> = files.map_ok(|f| f.location.to_string()).try_collect().await?;
    files.sort();
    Ok(files)
}

fn extension(file: &str) -> Option<&str> {
    Path::new(file).extension().and_then(|e| e.to_str())
}

/// Whether the footer of a Parquet file fits into the file; the reader of Parquet takes it for granted.
fn check_footer(path: &Path) -> Result<()> {
    let failed = |e| Error::io(format!("file `{}` cannot be read", path.display()), e);
    let mut file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    let mut end = [0u8; 8];
    if len >= 8 {
        file.seek(SeekFrom::End(-8)).map_err(failed)?;
        file.read_exact(&mut end).map_err(failed)?;
    }
    let [a, b, c, d, magic @ ..] = end;
    let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
    // Other ends are told by the reader.
    if &magic == b"PAR1" && footer + 8 > len {
        return Err(Error::data(format!(
            "file `{}` is no whole Parquet file: its footer would be longer than the file; write it \
             again",
            path.display()
        )));
    }
    Ok(())
}

fn unreadable() -> Error {
    let extensions: Vec<String> = FORMATS
        .iter()
        .map(|f| f.0)
        .chain(FileReader::EXTENSIONS.iter().copied())
        .map(|e| format!(".{e}"))
        .collect();
    Error::usage(format!(
        "this kind of file cannot be read: name a file, directory or pattern of {}",
        extensions.join(", ")
    ))
}
