//! Files as tables: what DataFusion reads, and the formats of [`crate::formats`].

mod rows;

use super::error::{from_datafusion, to_datafusion};
use crate::data::Pattern;
use crate::error::{Error, Result};
use crate::formats::{FileReader, LabelSource};
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{DynamicFileCatalog, Session, TableProvider, UrlTableFactory};
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
        let named = |e| to_datafusion(from_datafusion(e).context(format!("`{url}`")));
        self.open(url, table).await.map(Some).map_err(named)
    }
}

impl FileTables {
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
        let state = self.session().map_err(to_datafusion)?;
        let store = state.runtime_env().object_store(&url)?;
        let files = url.list_all_files(&state, store.as_ref(), "").await?;
        let mut files: Vec<_> = files.map_ok(|f| f.location).try_collect().await?;
        files.sort();
        let extension =
            |path: &str| Path::new(path).extension().map(|e| e.to_string_lossy().into_owned());
        let known = |e: &String| {
            FileReader::reads(e) || FORMATS.iter().any(|(name, _)| e.eq_ignore_ascii_case(name))
        };
        let first = files.iter().filter_map(|f| extension(f.as_ref())).find(known);
        let Some(first) = first else {
            return Err(to_datafusion(match files.is_empty() {
                true => Error::not_found("there is no file of this name: check the path"),
                false => unreadable(),
            }));
        };
        if FileReader::reads(&first) {
            let same = |f: &&_| extension(AsRef::<str>::as_ref(*f)).as_ref() == Some(&first);
            let paths = match url.scheme() {
                // As the user named it, for messages.
                "file" if Path::new(name).is_file() => vec![PathBuf::from(name)],
                "file" => {
                    files.iter().filter(same).map(|f| Path::new("/").join(f.as_ref())).collect()
                }
                scheme => {
                    return Err(to_datafusion(Error::unsupported(format!(
                        ".{first} files are read from the local disk, not by {scheme}: copy it first"
                    ))));
                }
            };
            let partitions = state.config().target_partitions();
            return RowFiles::table(&paths, &self.options.arff_labels, partitions);
        }
        self.listing_table(&state, url, &first).await
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
