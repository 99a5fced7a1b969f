//! What a file is made of, and what it depends on.

use crate::sql::footer::tests::rows;
use crate::sql::tables::Bytes;
use crate::sql::{BATCH, SessionOptions, session};
use datafusion::arrow::array::{
    ArrayRef, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Int8Array, StringArray,
};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{Field, Int8Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::config::TableParquetOptions;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
use datafusion::parquet::file::properties::WriterPropertiesBuilder;
use std::sync::Arc;

/// All bytes of a file but those of its footer, to which those of page indexes do not belong.
fn before_footer(file: &[u8]) -> &[u8] {
    let (rest, end) = file.split_at(file.len() - 8);
    let length = u32::from_le_bytes(end[..4].try_into().unwrap()) as usize;
    &rest[..rest.len() - length]
}

/// As the writer of the crate `parquet` writes them, which encodes on one thread and keeps structs for
/// the footer. That has ranges of values also in a form that Parquet has given up since.
#[test]
fn files_are_those_of_the_plain_writer() {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let path = dir.path().join("a.parquet").display().to_string();
    let rows = rows(1000);
    let written = |set: &dyn Fn(&mut TableParquetOptions)| {
        let mut options = TableParquetOptions::default();
        options.global.max_row_group_size = 300;
        options.global.data_page_row_count_limit = 50;
        options.global.write_batch_size = 50;
        options.key_value_metadata.insert("made by".into(), Some("a test".into()));
        set(&mut options);
        runtime.block_on(async {
            let ctx = session(&SessionOptions::default()).unwrap();
            let frame = ctx.read_batch(rows.clone()).unwrap();
            let single = DataFrameWriteOptions::new().with_single_file_output(true);
            frame.write_parquet(&path, single, Some(options.clone())).await.unwrap();
        });
        options.arrow_schema(&rows.schema());
        let properties = WriterPropertiesBuilder::try_from(&options).unwrap().build();
        let mut plain = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut plain, rows.schema(), Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        let (plain, ours) = (Bytes::from(plain), Bytes::from(std::fs::read(&path).unwrap()));
        assert!(before_footer(&ours) == before_footer(&plain));
        let read = |file: &Bytes| {
            let reader = ParquetMetaDataReader::new();
            let reader = reader.with_page_index_policy(PageIndexPolicy::Optional);
            reader.parse_and_finish(file).unwrap()
        };
        let footer = read(&ours);
        assert_eq!(footer, read(&plain));
        footer
    };
    let footer = written(&|_| ());
    assert_eq!(footer.num_row_groups(), 4);
    let footer = written(&|options| options.global.bloom_filter_on_write = true);
    assert!(footer.row_group(3).column(0).bloom_filter_offset().is_some());
    written(&|options| options.global.statistics_enabled = Some("chunk".into()));
    written(&|options| options.global.statistics_enabled = Some("none".into()));
}

/// Batches as others cut them: what is written depends on the rows alone.
#[test]
fn files_depend_on_rows_and_not_on_batches() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet").display().to_string();
    let all = rows(40_000);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let written = |lengths: &[usize], set: &dyn Fn(&mut TableParquetOptions)| {
        let mut options = TableParquetOptions::default();
        options.global.max_row_group_size = 30_000;
        options.global.data_page_row_count_limit = 5000;
        set(&mut options);
        let mut at = 0;
        let mut cut = |&rows: &usize| {
            let rows = rows.min(all.num_rows() - at);
            at += rows;
            all.slice(at - rows, rows)
        };
        let batches: Vec<RecordBatch> = lengths
            .iter()
            .cycle()
            .map_while(|n| Some(cut(n)).filter(|b| b.num_rows() > 0))
            .collect();
        runtime.block_on(async {
            let options = Some(options);
            // Batches as they are: a scan cuts those that are longer than a session's.
            let batch_size = 100_000;
            let options_of = SessionOptions { partitions: 1, batch_size, ..Default::default() };
            let ctx = session(&options_of).unwrap();
            let frame = ctx.read_batches(batches).unwrap();
            let single = DataFrameWriteOptions::new().with_single_file_output(true);
            frame.write_parquet(&path, single, options).await.unwrap();
        });
        std::fs::read(&path).unwrap()
    };
    let small_dictionaries = |options: &mut TableParquetOptions| {
        options.global.dictionary_page_size_limit = 4000;
    };
    let settings: [&dyn Fn(&mut TableParquetOptions); 2] = [&|_| (), &small_dictionaries];
    for set in settings {
        let expected = written(&[BATCH], set);
        for lengths in [&[40_000][..], &[1, 5000, 8000], &[577], &[BATCH, 3, 2 * BATCH]] {
            assert!(written(lengths, set) == expected, "{lengths:?}");
        }
    }
}

/// Dictionaries that together have more values than their keys can name: with values that can be merged
/// and with others, in a column and in lists.
#[test]
fn dictionaries_that_do_not_fit_together_are_written_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet").display().to_string();
    let keys = || Int8Array::from_iter_values(0..100);
    let texts = |part: i32| -> ArrayRef {
        let values: StringArray = (0..100).map(|i| Some(format!("{part} {i}"))).collect();
        Arc::new(DictionaryArray::<Int8Type>::new(keys(), Arc::new(values)))
    };
    let codes = |part: i32| -> ArrayRef {
        let values = (0..100).map(|i| (100 * part + i).to_le_bytes());
        let values = FixedSizeBinaryArray::try_from_iter(values).unwrap();
        Arc::new(DictionaryArray::<Int8Type>::new(keys(), Arc::new(values)))
    };
    let pairs = |part: i32| -> ArrayRef {
        let items = concat(&[&texts(part)]).unwrap();
        let item = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        Arc::new(FixedSizeListArray::new(item, 1, items, None))
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let kinds: [&dyn Fn(i32) -> ArrayRef; 3] = [&texts, &codes, &pairs];
    for (kind, column) in kinds.into_iter().enumerate() {
        let part = |part: i32| RecordBatch::try_from_iter([("a", column(part))]).unwrap();
        let written = runtime.block_on(async {
            let ctx = session(&SessionOptions { partitions: 1, ..Default::default() }).unwrap();
            let frame = ctx.read_batches([part(0), part(1)]).unwrap();
            let single = DataFrameWriteOptions::new().with_single_file_output(true);
            let mut options = TableParquetOptions::default();
            // Whoever reads has one dictionary for all, which such keys cannot name either.
            options.global.skip_arrow_metadata = true;
            frame.write_parquet(&path, single, Some(options)).await.unwrap();
            // The crate `parquet` has a fault of its own: it writes such codes as others.
            let distinct = if kind == 1 { "" } else { "DISTINCT" };
            let query = format!("SELECT {distinct} a FROM '{path}'");
            ctx.sql(&query).await.unwrap().count().await.unwrap()
        });
        assert_eq!(written, 200, "{kind}");
    }
}

#[test]
fn more_row_groups_than_a_file_can_have_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet").display().to_string();
    let rows = rows(32_769).project(&[0]).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let error = runtime.block_on(async {
        let mut options = TableParquetOptions::default();
        options.global.max_row_group_size = 1;
        let ctx = session(&SessionOptions::default()).unwrap();
        let single = DataFrameWriteOptions::new().with_single_file_output(true);
        let frame = ctx.read_batch(rows).unwrap();
        frame.write_parquet(&path, single, Some(options)).await.unwrap_err()
    });
    let told = error.to_string();
    assert!(told.contains("32,768 row groups") && told.contains("max_row_group_size"), "{told}");
}
