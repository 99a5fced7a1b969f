//! Scans of Parquet files whose partitions have equally many rows.
//!
//! DataFusion cuts files by bytes, and a row group goes whole to one partition. So of a file with a
//! few row groups one partition has more than another, and its thread works on when the rest are
//! done; a file of one row group has one partition that does all. Here row groups are cut too, and
//! each partition has the rows between those of its neighbours, whatever the threads do.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::metadata::CachedParquetMetaData;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Cuts are at multiples of this many rows of a row group: batches stay full.
const BATCH: usize = 8192;
/// Larger row groups stay whole: without an index of its pages, every partition that has a part of
/// one reads all of its bytes.
const LARGEST: i64 = 128 << 20;

/// The rule that cuts scans evenly.
pub(super) struct EvenRows(pub(super) Arc<RuntimeEnv>);

impl fmt::Debug for EvenRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EvenRows")
    }
}

impl PhysicalOptimizerRule for EvenRows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let even = plan.transform_up(|node| {
            let scan = node.downcast_ref::<DataSourceExec>();
            Ok(match scan.and_then(|scan| Some((scan, self.cut(scan)?))) {
                Some((scan, source)) => {
                    let scan = scan.clone().with_data_source(Arc::new(source));
                    Transformed::yes(Arc::new(scan) as _)
                }
                None => Transformed::no(node),
            })
        })?;
        Ok(even.data)
    }

    fn name(&self) -> &str {
        "even_rows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl EvenRows {
    /// `scan` cut by rows, where DataFusion has cut it by bytes.
    fn cut(&self, scan: &DataSourceExec) -> Option<FileScanConfig> {
        let (config, _) = scan.downcast_to_file_source::<ParquetSource>()?;
        let ordered = config.preserve_order || config.output_partitioning.is_some();
        if ordered || config.limit.is_some() || config.file_groups.len() < 2 {
            return None;
        }
        let files = whole_files(&config.file_groups)?;
        let shapes: Vec<Vec<Shape>> =
            files.iter().map(|file| self.row_groups(file)).collect::<Option<_>>()?;
        let mut config = config.clone();
        config.file_groups = even_parts(&shapes, config.file_groups.len())
            .into_iter()
            .map(|mut pieces| {
                // Of a part of a row group single pages are read: it takes the buffers of whole ones.
                pieces.sort_by_key(|piece| piece.rows.is_some());
                let piece = |piece: &Piece| piece.of(&files[piece.file]);
                FileGroup::new(pieces.iter().map(piece).collect())
            })
            .collect();
        // No partition takes the pieces of another: what is summed up does not depend on threads.
        config.preserve_order = true;
        Some(config)
    }

    /// The row groups of `file`, if its footer was read already.
    fn row_groups(&self, file: &PartitionedFile) -> Option<Vec<Shape>> {
        let cache = self.0.cache_manager.get_file_metadata_cache();
        let entry = cache.get(&file.object_meta.location)?;
        if !entry.is_valid_for(&file.object_meta) {
            return None;
        }
        let footer = entry.file_metadata.as_any().downcast_ref::<CachedParquetMetaData>()?;
        let groups = footer.parquet_metadata().row_groups().iter();
        let shape = groups.map(|g| {
            Some(Shape {
                rows: usize::try_from(g.num_rows()).ok()?,
                may_be_cut: g.compressed_size() <= LARGEST,
            })
        });
        shape.collect()
    }
}

/// The files of `groups`, whose parts are put together again; `None` unless some are in parts.
fn whole_files(groups: &[FileGroup]) -> Option<Vec<PartitionedFile>> {
    let mut files: Vec<PartitionedFile> = Vec::new();
    let mut end = 0;
    let mut cut = false;
    for part in groups.iter().flat_map(FileGroup::iter) {
        let range = part.range.clone()?;
        let again = files.last().is_some_and(|f| {
            f.object_meta.location == part.object_meta.location && range.start == end
        });
        if !again {
            if range.start != 0 || files.last().is_some_and(|f| f.object_meta.size != end as u64) {
                return None;
            }
            files.push(PartitionedFile { range: None, ..part.clone() });
        }
        if !part.extensions.is_empty() {
            return None;
        }
        cut |= again;
        end = range.end;
    }
    let whole = files.last().is_some_and(|f| f.object_meta.size == end as u64);
    (cut && whole).then_some(files)
}

/// A row group, as far as cutting goes.
#[derive(Clone, Copy)]
struct Shape {
    rows: usize,
    may_be_cut: bool,
}

impl Shape {
    /// The place nearest to `row` where the group may be cut.
    fn nearest_cut(self, row: usize) -> usize {
        let step = if self.may_be_cut { BATCH.min(self.rows) } else { self.rows }.max(1);
        ((row + step / 2) / step * step).min(self.rows)
    }
}

/// Row groups of a file, or a part of one.
#[derive(Debug, Clone, PartialEq)]
struct Piece {
    file: usize,
    /// How many row groups the file has.
    of_groups: usize,
    groups: Range<usize>,
    /// The rows of the only row group; `None` is all of all.
    rows: Option<(Range<usize>, usize)>,
}

impl Piece {
    /// `file` with no other rows.
    fn of(&self, file: &PartitionedFile) -> PartitionedFile {
        let mut plan = ParquetAccessPlan::new_none(self.of_groups);
        for group in self.groups.clone() {
            plan.set(group, RowGroupAccess::Scan);
            if let Some((rows, all)) = &self.rows {
                let selectors = vec![
                    RowSelector::skip(rows.start),
                    RowSelector::select(rows.len()),
                    RowSelector::skip(all - rows.end),
                ];
                plan.set(group, RowGroupAccess::Selection(RowSelection::from(selectors)));
            }
        }
        file.clone().with_extension(plan)
    }
}

/// Cuts the row groups of all files, in their order, into `parts` of about equally many rows.
fn even_parts(files: &[Vec<Shape>], parts: usize) -> Vec<Vec<Piece>> {
    let total: usize = files.iter().flatten().map(|g| g.rows).sum();
    let mut pieces = vec![Vec::new(); parts];
    let (mut part, mut before) = (0, 0);
    for (file, groups) in files.iter().enumerate() {
        for (group, shape) in groups.iter().enumerate() {
            let mut start = 0;
            while part + 1 < parts {
                let last = (total * (part + 1) / parts).saturating_sub(before);
                let end = shape.nearest_cut(last);
                if end >= shape.rows {
                    break;
                }
                push(&mut pieces[part], file, groups, group, start..end);
                start = end.max(start);
                part += 1;
            }
            push(&mut pieces[part], file, groups, group, start..shape.rows);
            before += shape.rows;
        }
    }
    pieces
}

/// Adds rows of a row group to a part, if there are any.
fn push(part: &mut Vec<Piece>, file: usize, groups: &[Shape], group: usize, rows: Range<usize>) {
    if rows.is_empty() {
        return;
    }
    let all = groups[group].rows;
    let whole = rows == (0..all);
    if let Some(last) = part.last_mut()
        && whole
        && last.rows.is_none()
        && (last.file, last.groups.end) == (file, group)
    {
        last.groups.end += 1;
        return;
    }
    let rows = (!whole).then_some((rows, all));
    part.push(Piece { file, of_groups: groups.len(), groups: group..group + 1, rows });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(rows: usize, may_be_cut: bool) -> Shape {
        Shape { rows, may_be_cut }
    }

    /// The rows of each part, as (file, group, row) of its first row and how many there are.
    fn rows(files: &[Vec<Shape>], part: &[Piece]) -> Vec<(usize, usize, Range<usize>)> {
        let group = |p: &Piece, g: usize| {
            let all = 0..files[p.file][g].rows;
            (p.file, g, p.rows.as_ref().map_or(all, |(rows, _)| rows.clone()))
        };
        part.iter().flat_map(|p| p.groups.clone().map(|g| group(p, g))).collect()
    }

    #[test]
    fn the_last_short_row_group_is_shared() {
        let mut groups = vec![shape(65_536, true); 16];
        groups[15].rows = 16_960;
        let parts = even_parts(&[groups.clone()], 2);
        let piece = |groups, rows: Option<Range<usize>>| Piece {
            file: 0,
            of_groups: 16,
            groups,
            rows: rows.map(|rows| (rows, 65_536)),
        };
        // Half of a million is row 41,248 of the eighth row group: five batches are 40,960.
        assert_eq!(parts[0], [piece(0..7, None), piece(7..8, Some(0..40_960))]);
        assert_eq!(parts[1], [piece(7..8, Some(40_960..65_536)), piece(8..16, None)]);
        // Large row groups stay whole.
        groups.iter_mut().for_each(|g| g.may_be_cut = false);
        let parts = even_parts(&[groups], 2);
        assert_eq!(parts, [[piece(0..8, None)], [piece(8..16, None)]]);
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_part_and_parts_are_even(
            files in prop::collection::vec(
                prop::collection::vec((0usize..200_000, any::<bool>()), 0..6),
                1..4,
            ),
            parts in 1usize..9,
        ) {
            let files: Vec<Vec<Shape>> = files
                .iter()
                .map(|groups| groups.iter().map(|&(rows, cut)| shape(rows, cut)).collect())
                .collect();
            let cut = even_parts(&files, parts);
            prop_assert_eq!(cut.len(), parts);
            // In order, without gaps.
            let mut place = Vec::new();
            for (file, groups) in files.iter().enumerate() {
                place.extend((0..groups.len()).map(|group| (file, group)));
            }
            let mut found = vec![0; place.len()];
            let mut last = 0;
            for part in &cut {
                for (file, group, rows) in rows(&files, part) {
                    let at = place.iter().position(|&p| p == (file, group)).unwrap();
                    prop_assert!(at >= last);
                    last = at;
                    prop_assert_eq!(found[at], rows.start);
                    found[at] = rows.end;
                }
            }
            for (&(file, group), &rows) in place.iter().zip(&found) {
                prop_assert_eq!(rows, files[file][group].rows);
            }
            // A cut is half a step from where it should be at the most.
            let step = files.iter().flatten().map(|g| if g.may_be_cut { BATCH } else { g.rows });
            let step = step.max().unwrap_or(0).max(BATCH);
            let total: usize = found.iter().sum();
            for part in &cut {
                let size: usize = rows(&files, part).iter().map(|r| r.2.len()).sum();
                prop_assert!(size.abs_diff(total / parts) <= step + 1, "{} of {}", size, total);
            }
        }
    }
}
