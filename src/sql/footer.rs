//! Row groups of Parquet footers, packed.
//!
//! The footer of a file says of every column of every row group where it is, and of every page where it
//! is and which values it has. As structs that is more than a kilobyte for each column of a row group, in
//! a dozen allocations, and whoever reads or writes a file keeps it to the end. As the bytes that a
//! footer is made of it is a third of that, in one allocation; the few row groups that are read at a
//! time, and all of them when a footer is written, become structs again.

use super::tables::Bytes;
use datafusion::common::HashMap;
use datafusion::execution::cache::cache_manager::FileMetadata;
use datafusion::parquet::errors::{ParquetError, Result};
use datafusion::parquet::file::metadata::{
    ColumnChunkMetaData, FileMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataBuilder,
    ParquetMetaDataOptions, ParquetMetaDataReader, ParquetMetaDataWriter, RowGroupMetaData,
};
use datafusion::parquet::file::page_index::column_index::ColumnIndexMetaData;
use datafusion::parquet::file::page_index::offset_index::OffsetIndexMetaData;
use std::any::Any;
use std::ops::Range;

/// The footer of a Parquet file, its row groups packed.
pub(super) struct PackedFooter {
    file: FileMetaData,
    groups: Vec<Group>,
    /// For each row group, the footer of a file that has no other.
    bytes: Vec<u8>,
}

struct Group {
    rows: usize,
    /// Where it ends in the bytes.
    end: usize,
}

impl PackedFooter {
    /// One without row groups; what else `file` says of the file is kept.
    pub(super) fn new(file: FileMetaData) -> Self {
        PackedFooter { file, groups: Vec::new(), bytes: Vec::new() }
    }

    /// Packs what reading rows takes of `footer`: where columns and pages are, not which values they have.
    ///
    /// # Errors
    ///
    /// When a footer contradicts itself.
    pub(super) fn of_places(footer: &ParquetMetaData) -> Result<Self> {
        let mut packed = PackedFooter::new(footer.file_metadata().clone());
        let plain = |column: ColumnChunkMetaData| {
            let column = column.into_builder().clear_statistics();
            let column = column.set_unencoded_byte_array_data_bytes(None);
            let column = column.set_repetition_level_histogram(None);
            column.set_definition_level_histogram(None).build()
        };
        for (i, group) in footer.row_groups().iter().enumerate() {
            let mut group = group.clone().into_builder();
            let columns = group.take_columns().into_iter().map(plain).collect::<Result<_>>()?;
            let group = group.set_column_metadata(columns).build()?;
            let places = footer.offset_index().and_then(|index| index.get(i).cloned());
            packed.push(group, None, places)?;
        }
        packed.bytes.shrink_to_fit();
        Ok(packed)
    }

    /// Adds a row group: for each column of it there may be known which values and places its pages have.
    ///
    /// # Errors
    ///
    /// When a row group contradicts itself.
    pub(super) fn push(
        &mut self,
        group: RowGroupMetaData,
        values: Option<Vec<ColumnIndexMetaData>>,
        places: Option<Vec<OffsetIndexMetaData>>,
    ) -> Result<()> {
        let rows = usize::try_from(group.num_rows())?;
        let mut group = group.into_builder();
        // Where the index of pages was in the file says nothing here, and is written anew.
        let without_index = |column: ColumnChunkMetaData| {
            column
                .into_builder()
                .set_column_index_offset(None)
                .set_column_index_length(None)
                .set_offset_index_offset(None)
                .set_offset_index_length(None)
                .build()
        };
        let columns = group.take_columns().into_iter().map(without_index);
        let columns = columns.collect::<Result<Vec<_>>>()?;
        // It is written as a sum that is not looked after.
        let mut sizes = columns.iter().map(ColumnChunkMetaData::compressed_size);
        if sizes.try_fold(0i64, i64::checked_add).is_none() {
            return Err(ParquetError::General("columns are longer than any file".to_string()));
        }
        let group = group.set_column_metadata(columns).build()?;
        let schema = self.file.schema_descr_ptr();
        let file =
            FileMetaData::new(self.file.version(), group.num_rows(), None, None, schema, None);
        let single = ParquetMetaDataBuilder::new(file)
            .add_row_group(group)
            .set_column_index(values.map(|values| vec![values]))
            .set_offset_index(places.map(|places| vec![places]))
            .build();
        let mut bytes = Vec::new();
        ParquetMetaDataWriter::new(&mut bytes, &single)
            .with_write_path_in_schema(false)
            .finish()?;
        self.bytes.extend_from_slice(&bytes);
        self.groups.push(Group { rows, end: self.bytes.len() });
        Ok(())
    }

    /// What is said of the file as a whole.
    pub(super) fn file(&self) -> &FileMetaData {
        &self.file
    }

    /// How many rows each row group has.
    pub(super) fn rows(&self) -> impl ExactSizeIterator<Item = usize> {
        self.groups.iter().map(|group| group.rows)
    }

    fn bytes(&self, group: usize) -> Option<&[u8]> {
        let end = self.groups.get(group)?.end;
        let begin = group.checked_sub(1).map_or(0, |before| self.groups[before].end);
        self.bytes.get(begin..end)
    }

    /// The footer of a file that has only these row groups.
    ///
    /// # Errors
    ///
    /// When there are no such row groups.
    pub(super) fn unpack(&self, groups: Range<usize>) -> Result<ParquetMetaData> {
        let options = ParquetMetaDataOptions::new()
            .with_schema(self.file.schema_descr_ptr())
            .with_encoding_stats_as_mask(false);
        let (mut found, mut values, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for i in groups {
            let missing = || ParquetError::General(format!("there is no row group {i}"));
            let mut single = ParquetMetaDataReader::new()
                .with_page_index_policy(PageIndexPolicy::Optional)
                .with_metadata_options(Some(options.clone()))
                .parse_and_finish(&Bytes::copy_from_slice(self.bytes(i).ok_or_else(missing)?))?
                .into_builder();
            let group = single.take_row_groups().pop().ok_or_else(missing)?;
            let known = single.take_column_index().and_then(|mut all| all.pop());
            // A row group without any is one of columns without any.
            let none = || vec![ColumnIndexMetaData::NONE; group.num_columns()];
            values.push(known.unwrap_or_else(none));
            places.extend(single.take_offset_index().and_then(|mut all| all.pop()));
            found.push(group);
        }
        let rows = found.iter().map(RowGroupMetaData::num_rows).sum();
        let file = &self.file;
        let file = FileMetaData::new(
            file.version(),
            rows,
            file.created_by().map(str::to_string),
            file.key_value_metadata().cloned(),
            file.schema_descr_ptr(),
            file.column_orders().cloned(),
        );
        let known = |values: &ColumnIndexMetaData| !matches!(values, ColumnIndexMetaData::NONE);
        let any_values = values.iter().flatten().any(known);
        let all_places = !found.is_empty() && places.len() == found.len();
        Ok(ParquetMetaDataBuilder::new(file)
            .set_row_groups(found)
            .set_column_index(any_values.then_some(values))
            .set_offset_index(all_places.then_some(places))
            .build())
    }
}

impl FileMetadata for PackedFooter {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn memory_size(&self) -> usize {
        let file = ParquetMetaDataBuilder::new(self.file.clone()).build().memory_size();
        file + self.bytes.capacity() + self.groups.capacity() * size_of::<Group>()
    }

    fn extra_info(&self) -> HashMap<String, String> {
        HashMap::new()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use datafusion::arrow::array::{
        Array, ArrayRef, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray,
        Float64Array, Int64Array, ListArray, StringArray, StringViewArray, StructArray,
        new_null_array,
    };
    use datafusion::arrow::datatypes::{DataType, Field, Int32Type};
    use datafusion::arrow::record_batch::RecordBatch;
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties};
    use std::sync::Arc;

    /// Columns of some types, nested ones and NULL among them.
    pub(in crate::sql) fn rows(count: i64) -> RecordBatch {
        let ids = 0..count;
        let halves = ids.clone().map(|i| (i % 7 > 0).then_some(i as f64 / 2.0));
        let names = ids.clone().map(|i| format!("name {}", i % 90));
        let lists = ids.clone().map(|i| (i % 5 > 0).then(|| (0..i as i32 % 4).map(Some)));
        let flags = ids.clone().map(|i| (i % 11 > 0).then_some(i % 2 > 0));
        let money = ids.clone().map(|i| (i % 6 > 0).then_some(i128::from(i) * 10_000_007));
        let money: Decimal128Array = money.collect();
        let codes = FixedSizeBinaryArray::try_from_iter(ids.clone().map(i64::to_be_bytes)).unwrap();
        let few: DictionaryArray<Int32Type> =
            ids.clone().map(|i| ["a", "b"][i as usize % 2]).collect();
        let views: StringViewArray =
            ids.clone().map(|i| Some(format!("a longer text {i}"))).collect();
        let inner: ArrayRef = Arc::new(Int64Array::from_iter_values(ids.clone()));
        let field = Field::new("x", inner.data_type().clone(), true);
        let pairs = StructArray::new(vec![field].into(), vec![inner], None);
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from_iter_values(ids))),
            ("flag", Arc::new(flags.collect::<BooleanArray>())),
            ("money", Arc::new(money.with_precision_and_scale(30, 2).unwrap())),
            ("code", Arc::new(codes)),
            ("few", Arc::new(few)),
            ("view", Arc::new(views)),
            ("pair", Arc::new(pairs)),
            ("nothing", new_null_array(&DataType::Float64, count as usize)),
            ("half", Arc::new(halves.collect::<Float64Array>())),
            ("name", Arc::new(StringArray::from_iter_values(names))),
            ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    /// The footer of a file with row groups of 300, 300 and 200 rows.
    fn footer(statistics: EnabledStatistics, places: bool) -> ParquetMetaData {
        let rows = rows(800);
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(300))
            .set_data_page_row_count_limit(50)
            .set_write_batch_size(50)
            .set_bloom_filter_enabled(true)
            .set_statistics_enabled(statistics)
            .set_offset_index_disabled(!places)
            .build();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, rows.schema(), Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        let options = ParquetMetaDataOptions::new().with_encoding_stats_as_mask(false);
        ParquetMetaDataReader::new()
            .with_page_index_policy(PageIndexPolicy::Optional)
            .with_metadata_options(Some(options))
            .parse_and_finish(&Bytes::from(file))
            .unwrap()
    }

    /// A row group but for where the index of its pages is, which differs.
    fn plain(group: &RowGroupMetaData) -> RowGroupMetaData {
        let mut group = group.clone().into_builder();
        let columns = group.take_columns().into_iter().map(|column| {
            let column = column.into_builder().set_column_index_offset(None);
            let column = column.set_column_index_length(None).set_offset_index_offset(None);
            column.set_offset_index_length(None).build().unwrap()
        });
        let columns = columns.collect();
        group.set_column_metadata(columns).build().unwrap()
    }

    /// All of `footer`, packed.
    fn pack(footer: &ParquetMetaData) -> PackedFooter {
        let mut packed = PackedFooter::new(footer.file_metadata().clone());
        for (i, group) in footer.row_groups().iter().enumerate() {
            let values = footer.column_index().map(|index| index[i].clone());
            let places = footer.offset_index().map(|index| index[i].clone());
            packed.push(group.clone(), values, places).unwrap();
        }
        packed
    }

    fn groups(footer: &ParquetMetaData) -> Vec<RowGroupMetaData> {
        footer.row_groups().iter().map(plain).collect()
    }

    #[test]
    fn row_groups_come_back_as_they_were() {
        for (statistics, places) in [
            (EnabledStatistics::Page, true),
            (EnabledStatistics::Chunk, true),
            (EnabledStatistics::None, false),
        ] {
            let whole = footer(statistics, places);
            assert_eq!(whole.offset_index().is_some(), places);
            let packed = pack(&whole);
            assert_eq!(packed.rows().collect::<Vec<_>>(), [300, 300, 200]);
            assert_eq!(packed.file(), whole.file_metadata());
            for range in [0..3, 0..1, 1..3, 2..3, 1..1] {
                let found = packed.unpack(range.clone()).unwrap();
                let rows = packed.rows().skip(range.start).take(range.len()).sum::<usize>();
                assert_eq!(found.file_metadata().num_rows(), rows as i64);
                assert_eq!(groups(&found), groups(&whole)[range.clone()]);
                if range.is_empty() {
                    continue;
                }
                // Without values of any page there is an index without them, or none.
                let values = whole.column_index().map(|all| all[range.clone()].to_vec());
                let values = values.filter(|_| statistics == EnabledStatistics::Page);
                assert_eq!(found.column_index(), values.as_ref());
                let places = whole.offset_index().map(|all| all[range.clone()].to_vec());
                assert_eq!(found.offset_index(), places.as_ref());
            }
            assert!(packed.unpack(2..4).is_err() && packed.unpack(7..8).is_err());
            // A footer that was unpacked says nothing of places in the bytes it comes from.
            assert!(pack(&packed.unpack(0..3).unwrap()).bytes == packed.bytes);
        }
    }

    #[test]
    fn row_groups_differ_in_what_is_known_of_pages() {
        let whole = footer(EnabledStatistics::Page, true);
        let (values, places) = (whole.column_index().unwrap(), whole.offset_index().unwrap());
        let mut packed = PackedFooter::new(whole.file_metadata().clone());
        let some_values = [vec![ColumnIndexMetaData::NONE; values[1].len()], values[1].clone()];
        let [a, b, c] = [0, 1, 2].map(|i| whole.row_group(i).clone());
        packed.push(a, None, Some(places[0].clone())).unwrap();
        packed.push(b, Some(values[1].clone()), Some(places[1].clone())).unwrap();
        packed.push(c, None, None).unwrap();
        let found = packed.unpack(0..2).unwrap();
        assert_eq!(found.column_index().unwrap()[..], some_values);
        assert_eq!(found.offset_index().unwrap()[..], places[..2]);
        // Places of pages are known for all row groups or none.
        let found = packed.unpack(0..3).unwrap();
        assert!(found.column_index().is_some() && found.offset_index().is_none());
        assert_eq!(groups(&found), groups(&whole));
    }

    #[test]
    fn places_are_what_reading_takes() {
        let whole = footer(EnabledStatistics::Page, true);
        let packed = PackedFooter::of_places(&whole).unwrap();
        assert!(packed.memory_size() < whole.memory_size());
        assert!(packed.bytes.len() < pack(&whole).bytes.len());
        let found = packed.unpack(0..3).unwrap();
        assert!(found.column_index().is_none());
        assert!(found.row_group(0).column(0).statistics().is_none());
        assert_eq!(found.offset_index(), whole.offset_index());
        let columns = |footer: &ParquetMetaData| -> Vec<_> {
            let columns = footer.row_groups().iter().flat_map(|g| g.columns());
            let place = |c: &ColumnChunkMetaData| {
                assert_eq!(c.compression_codec(), whole.row_group(0).column(0).compression_codec());
                (
                    c.byte_range(),
                    c.num_values(),
                    c.dictionary_page_offset(),
                    c.column_path().clone(),
                )
            };
            columns.map(place).collect()
        };
        assert_eq!(columns(&found), columns(&whole));
    }

    #[test]
    fn footers_that_contradict_themselves_are_refused() {
        let whole = footer(EnabledStatistics::Page, true);
        let mut group = whole.row_group(0).clone().into_builder();
        let longest = |c: ColumnChunkMetaData| {
            c.into_builder().set_total_compressed_size(i64::MAX).build().unwrap()
        };
        let columns = group.take_columns().into_iter().map(longest).collect();
        let group = group.set_column_metadata(columns).build().unwrap();
        let mut packed = PackedFooter::new(whole.file_metadata().clone());
        let error = packed.push(group, None, None).unwrap_err();
        assert!(error.to_string().contains("longer than any file"), "{error}");
        let less = whole.row_group(0).clone().into_builder().set_num_rows(-1).build().unwrap();
        assert!(packed.push(less, None, None).is_err());
    }
}
