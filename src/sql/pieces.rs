//! Parquet files in pieces that the partitions of a scan share.
//!
//! DataFusion cuts files by bytes into one part for each partition, and a row group goes whole to
//! one of them. So of a file with a few row groups one partition has more than another, and its
//! thread works on when the rest are done; so it does when its core is slower for a while. Here a
//! file is cut into more pieces than there are partitions, whole row groups first and parts of the
//! last ones, and whichever partition is free takes the next.

use super::BATCH;
use super::scans::{self, Footer};
use datafusion::common::config::ConfigOptions;
use datafusion::datasource::listing::{FileRange, PartitionedFile};
use datafusion::datasource::physical_plan::parquet::ParquetRowSelection;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use datafusion::parquet::file::metadata::ParquetMetaData;
use datafusion::parquet::file::page_index::offset_index::PageLocation;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Rows of a piece at least: every column of a piece has its cost.
const LEAST: usize = 2 * BATCH;
/// Bytes of a row group that every partition may read for its part, where no index tells its pages;
/// row groups with an index are read in pieces of about half of that.
const LARGEST: u64 = 128 << 20;
/// Rows that all threads together read ahead, about, where pieces have an order: they wait in memory.
const AHEAD: usize = 16 * BATCH;

/// The rule that lets partitions share the pieces of files.
pub(super) struct SharedPieces(pub(super) Arc<RuntimeEnv>);

impl fmt::Debug for SharedPieces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedPieces")
    }
}

impl PhysicalOptimizerRule for SharedPieces {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        scans::replace(plan, |scan| self.cut(scan))
    }

    fn name(&self) -> &str {
        "shared_pieces"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl SharedPieces {
    /// `scan` cut into pieces, where DataFusion has cut it by bytes.
    fn cut(&self, scan: &DataSourceExec) -> Option<FileScanConfig> {
        let (config, _) = scan.downcast_to_file_source::<ParquetSource>()?;
        let ordered = config.preserve_order || config.output_partitioning.is_some();
        let parts = config.file_groups.len();
        if ordered || config.limit.is_some() || parts < 2 {
            return None;
        }
        let files = whole_files(&config.file_groups)?;
        if files.len() == config.file_groups.iter().map(FileGroup::len).sum::<usize>() {
            return None;
        }
        let shapes = shapes(&self.0, &files)?;
        let pieces = pieces(&shapes, parts, usize::MAX);
        let mut config = config.clone();
        // The queue that partitions share has the pieces of the first, then those of the second.
        config.file_groups = (0..parts)
            .map(|part| {
                let own = pieces.len() * part / parts..pieces.len() * (part + 1) / parts;
                let piece = |piece: &Piece| piece.of(&files[piece.file], &shapes[piece.file]);
                FileGroup::new(pieces[own].iter().map(piece).collect())
            })
            .collect();
        Some(config)
    }
}

/// Rows of a piece at most, about, where pieces have an order and so many threads work on them: with
/// many threads pieces are short, so that not much more has to wait.
pub(super) fn ahead(threads: usize) -> usize {
    (AHEAD / threads.max(1)).clamp(LEAST, AHEAD / 2)
}

/// `scan`, whose rows are one partition and have an order, with a partition for each piece of its
/// files, in that order, and how many rows each has; `None` where it cannot be cut for so many
/// threads.
pub(super) fn in_order(
    scan: &DataSourceExec,
    runtime: &RuntimeEnv,
    threads: usize,
) -> Option<(FileScanConfig, Vec<usize>)> {
    let (config, _) = scan.downcast_to_file_source::<ParquetSource>()?;
    let declared = config.output_partitioning.is_some();
    if declared || config.limit.is_some() || config.file_groups.len() != 1 {
        return None;
    }
    let files = whole_files(&config.file_groups)?;
    let shapes = shapes(runtime, &files)?;
    let pieces = pieces(&shapes, threads, ahead(threads));
    // Large ones, which have no index to cut them by, would be much to keep for later.
    let small = |piece: &Piece| {
        let groups = &shapes[piece.file][piece.groups.clone()];
        let rows: usize = groups.iter().map(|g| g.rows).sum();
        let bytes = groups.iter().fold(0, |sum: u64, g| sum.saturating_add(g.bytes));
        let share = piece.rows.len() as f64 / rows.max(1) as f64;
        piece.rows.len() <= AHEAD && bytes as f64 * share <= 2.0 * LARGEST as f64
    };
    if pieces.len() < 2 || !pieces.iter().all(small) {
        return None;
    }
    let mut config = config.clone();
    let piece = |p: &Piece| FileGroup::new(vec![p.of(&files[p.file], &shapes[p.file])]);
    config.file_groups = pieces.iter().map(piece).collect();
    // No partition takes pieces of another.
    config.preserve_order = true;
    Some((config, pieces.iter().map(|piece| piece.rows.len()).collect()))
}

/// The row groups of each file, if all footers were read already.
fn shapes(runtime: &RuntimeEnv, files: &[PartitionedFile]) -> Option<Vec<Vec<Shape>>> {
    let kept = runtime.cache_manager.get_file_metadata_cache();
    let row_groups =
        |file: &PartitionedFile| Footer::of(&kept, &file.object_meta)?.groups(Shape::of);
    files.iter().map(row_groups).collect()
}

/// The files of `groups`, whose parts are put together again; `None` unless all parts are there.
fn whole_files(groups: &[FileGroup]) -> Option<Vec<PartitionedFile>> {
    let mut files: Vec<PartitionedFile> = Vec::new();
    let mut end = 0;
    for part in groups.iter().flat_map(FileGroup::iter) {
        let size = i64::try_from(part.object_meta.size).ok()?;
        let range = part.range.clone().unwrap_or(FileRange { start: 0, end: size });
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
        end = range.end;
    }
    let whole = files.last().is_some_and(|f| f.object_meta.size == end as u64);
    whole.then_some(files)
}

/// A row group, as far as cutting goes.
#[derive(Debug, Clone)]
struct Shape {
    rows: usize,
    bytes: u64,
    /// The rows that pages begin with, in ascending order; none where no index tells them.
    pages: Vec<usize>,
}

impl Shape {
    /// The shape of a row group; `None` where its footer makes no sense.
    fn of(footer: &ParquetMetaData, group: usize) -> Option<Self> {
        let meta = footer.row_group(group);
        // A damaged footer may say anything: sums and products of such numbers do not overflow.
        let rows = u32::try_from(meta.num_rows()).ok()? as usize;
        let mut bytes = 0u64;
        for column in meta.columns() {
            bytes = bytes.checked_add(u64::try_from(column.compressed_size()).ok()?)?;
        }
        // Where pages of columns differ, those of a cut in the middle are read twice: few bytes
        // where the largest column is not cut.
        let columns = meta.columns().iter().enumerate();
        let largest = columns.max_by_key(|(_, c)| c.compressed_size()).map(|(i, _)| i);
        let index = footer.offset_index().zip(largest);
        let index = index.and_then(|(index, column)| index.get(group)?.get(column));
        let pages = index.map_or(&[][..], |column| column.page_locations());
        let first_row = |page: &PageLocation| usize::try_from(page.first_row_index).ok();
        let pages: Vec<usize> = pages.iter().map(first_row).collect::<Option<_>>()?;
        // The index of a damaged file may say anything.
        let ascend = pages.is_sorted_by(|a, b| a < b) && pages.last().is_none_or(|&p| p < rows);
        Some(Shape { rows, bytes, pages: if ascend { pages } else { Vec::new() } })
    }

    /// Whether the pages are known, and are more than the pieces there have to be: those of `most`
    /// rows, or one for each partition.
    fn has_pages(&self, parts: usize, most: usize) -> bool {
        let pieces = match self.rows.div_ceil(most) {
            0 | 1 => parts,
            pieces => pieces,
        };
        self.pages.len() > pieces
    }

    /// Where each piece begins, and where the last ends: so many pieces for so many partitions, or
    /// more where they would have more rows than `most`.
    fn cuts(&self, count: usize, parts: usize, most: usize) -> Vec<usize> {
        let by_pages = self.has_pages(parts, most);
        let wanted = match by_pages {
            true => {
                let by_bytes = self.bytes.div_ceil(LARGEST / 2) as usize;
                count.max(by_bytes).max(self.rows.div_ceil(most))
            }
            false if self.bytes <= LARGEST => parts,
            false => 1,
        };
        let count = wanted.min(self.rows / LEAST).max(1);
        let mut cuts = vec![0];
        cuts.extend((1..count).map(|i| self.cut_near(self.rows * i / count, by_pages)));
        cuts.push(self.rows);
        cuts.dedup();
        cuts
    }

    /// The row nearest to `row` where a cut costs least: where a page begins, or a batch.
    fn cut_near(&self, row: usize, by_pages: bool) -> usize {
        if !by_pages {
            return (row + BATCH / 2) / BATCH * BATCH;
        }
        let after = self.pages.partition_point(|&page| page < row);
        let near = &self.pages[after.saturating_sub(1)..(after + 1).min(self.pages.len())];
        near.iter().copied().min_by_key(|page| page.abs_diff(row)).unwrap_or(0)
    }

    /// About the halves of some rows, if they are many and a page begins between them.
    fn halves(&self, rows: &Range<usize>) -> Option<[Range<usize>; 2]> {
        let middle = self.cut_near(usize::midpoint(rows.start, rows.end), true);
        let cut = rows.len() >= LEAST && rows.start < middle && middle < rows.end;
        cut.then_some([rows.start..middle, middle..rows.end])
    }
}

/// Row groups of a file, or a part of one.
#[derive(Debug, Clone, PartialEq)]
struct Piece {
    file: usize,
    groups: Range<usize>,
    /// The rows, counted from the beginning of the file.
    rows: Range<usize>,
}

impl Piece {
    /// `file`, which has these row groups, with no other rows.
    fn of(&self, file: &PartitionedFile, groups: &[Shape]) -> PartitionedFile {
        // Not a list of row groups: every piece would have one of all in the file.
        let all: usize = groups.iter().map(|g| g.rows).sum();
        let selection = RowSelection::from(vec![
            RowSelector::skip(self.rows.start),
            RowSelector::select(self.rows.len()),
            RowSelector::skip(all - self.rows.end),
        ]);
        file.clone().with_extension(ParquetRowSelection::new(selection))
    }
}

/// Cuts the row groups of all files, in their order, into pieces for so many partitions.
///
/// Row groups are whole as long as there are as many rows for every other partition, and many of
/// them are one piece at first: there are not many more pieces in a large file than in a small one.
/// Row groups that are too large to be read at a time, or have more rows than `most`, are cut
/// wherever they are.
fn pieces(files: &[Vec<Shape>], parts: usize, most: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest: usize = files.iter().flatten().map(|g| g.rows).sum();
    for (file, groups) in files.iter().enumerate() {
        let (mut next, mut at) = (0, 0);
        while let Some(shape) = groups.get(next) {
            let (first, run) = (next, most.min(rest / (4 * parts)));
            let small = |g: &Shape| g.bytes <= LARGEST && g.rows <= most;
            let whole = |g: &Shape| small(g) || !g.has_pages(parts, most);
            rest -= shape.rows;
            next += 1;
            let is_last = rest < (parts - 1) * shape.rows;
            if is_last || !whole(shape) {
                let count = if is_last { 8 * parts } else { 1 };
                let cuts = shape.cuts(count, parts, most);
                pieces.extend(cuts.windows(2).map(|cut| {
                    let rows = at + cut[0]..at + cut[1];
                    Piece { file, groups: first..next, rows }
                }));
                at += shape.rows;
                continue;
            }
            let mut rows = shape.rows;
            while let Some(shape) = groups.get(next).filter(|g| whole(g) && rows + g.rows <= run) {
                rows += shape.rows;
                rest -= shape.rows;
                next += 1;
            }
            let rows = at..at + rows;
            at = rows.end;
            pieces.push(Piece { file, groups: first..next, rows });
        }
    }
    // Partitions that work on the last pieces end at different times: by less where those are short.
    let last = pieces.split_off(pieces.len().saturating_sub(parts - 1));
    for piece in last {
        let (before, from) = files[piece.file].split_at(piece.groups.start);
        let begin: usize = before.iter().map(|g| g.rows).sum();
        let halves = match piece.groups.len() {
            1 => from[0].halves(&(piece.rows.start - begin..piece.rows.end - begin)),
            _ => None,
        };
        match halves {
            Some(halves) => pieces.extend(halves.map(|rows| {
                let rows = begin + rows.start..begin + rows.end;
                Piece { rows, ..piece.clone() }
            })),
            None => pieces.push(piece),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A row group whose pages have so many rows each; 0 is no index.
    fn shape(rows: usize, bytes: u64, page: usize) -> Shape {
        let pages = if page == 0 { Vec::new() } else { (0..rows).step_by(page).collect() };
        Shape { rows, bytes, pages }
    }

    fn lengths_of_at_most(most: usize, files: &[Vec<Shape>], parts: usize) -> Vec<usize> {
        pieces(files, parts, most).iter().map(|piece| piece.rows.len()).collect()
    }

    fn lengths(files: &[Vec<Shape>], parts: usize) -> Vec<usize> {
        lengths_of_at_most(usize::MAX, files, parts)
    }

    #[test]
    fn the_last_row_groups_are_cut() {
        const ROWS: usize = 65_536;
        let generated = |groups: usize| {
            let mut groups = vec![shape(ROWS, 60 << 20, 8192); groups];
            groups.push(shape(16_960, 15 << 20, 8192));
            vec![groups]
        };
        // The last but one are short, the last shorter.
        let quarters = [LEAST, LEAST, LEAST, LEAST, 8192, 8768];
        assert_eq!(lengths(&generated(15), 2), [&[ROWS; 14][..], &quarters].concat());
        // A larger file has longer pieces first, and few more of them.
        let large = lengths(&generated(15_000), 2);
        assert_eq!(large[0], 1875 * ROWS);
        assert!(large.len() < 100, "{}", large.len());
        assert_eq!(large[large.len() - 7..], [&[ROWS], &quarters[..]].concat());
        // Without an index every piece of a row group reads all of it: not more than partitions.
        let one = |bytes, page| vec![vec![shape(ROWS, bytes, page)]];
        assert_eq!(lengths(&one(60 << 20, 0), 2), [ROWS / 2; 2]);
        assert_eq!(lengths(&one(1 << 30, 0), 2), [ROWS]);
        // Nor where there are few pages, but for the cut before the last of them.
        assert_eq!(lengths(&one(60 << 20, 60_000), 2), [ROWS / 2, 60_000 - ROWS / 2, 5536]);
        // Cuts are where pages begin.
        assert_eq!(lengths(&one(60 << 20, 20_000), 2), [20_000, 20_000, 20_000, 5_536]);
        // Large row groups are read in parts, even where there are many of them.
        let large = vec![vec![shape(1 << 20, 1 << 30, 8192); 100]];
        assert_eq!(lengths(&large, 2)[..1599], [ROWS; 1599]);
        assert_eq!(lengths(&large, 2)[1599..], [ROWS / 2; 2]);
    }

    #[test]
    fn pieces_that_wait_for_others_are_short() {
        let by =
            |threads, groups: Vec<Shape>| lengths_of_at_most(ahead(threads), &[groups], threads);
        // Large row groups in parts, small ones together.
        assert_eq!(by(2, vec![shape(1 << 20, 60 << 20, 8192); 3])[..47], [65_536; 47]);
        let small = by(2, vec![shape(1000, 1 << 20, 1000); 1000]);
        assert_eq!(small[0], 65_000);
        assert!(small.iter().all(|&rows| rows <= 65_536), "{small:?}");
        assert_eq!(by(2, vec![shape(131_072, 60 << 20, 8192); 9])[..16], [65_536; 16]);
        // Those without an index cannot be cut.
        assert_eq!(by(2, vec![shape(1 << 20, 60 << 20, 0); 9])[0], 1 << 20);
        // More threads have shorter pieces, and need not have as many pages each.
        assert_eq!(by(4, vec![shape(1 << 20, 60 << 20, 8192); 9])[..256], [32_768; 256]);
        let pages = by(100, vec![shape(1 << 20, 60 << 20, 16_000); 200]);
        assert!(pages.iter().all(|&rows| rows <= 32_000), "{pages:?}");
    }

    proptest! {
        #[test]
        fn every_row_is_in_one_piece(
            files in prop::collection::vec(
                prop::collection::vec((0usize..200_000, 0u64..1 << 30, 0usize..30_000), 0..6),
                1..4,
            ),
            parts in 2usize..9,
            most in prop::sample::select(vec![LEAST, AHEAD, usize::MAX]),
        ) {
            let files: Vec<Vec<Shape>> = files
                .iter()
                .map(|groups| groups.iter().map(|&(rows, bytes, page)| shape(rows, bytes, page)).collect())
                .collect();
            // In order, without gaps; the rows are those of the row groups.
            let mut found = vec![0; files.len()];
            let mut last = 0;
            for piece in pieces(&files, parts, most) {
                prop_assert!(piece.file >= last);
                last = piece.file;
                prop_assert_eq!(found[last], piece.rows.start);
                found[last] = piece.rows.end;
                let (before, from) = files[last].split_at(piece.groups.start);
                let rows = |groups: &[Shape]| groups.iter().map(|g| g.rows).sum::<usize>();
                let of_groups = rows(before)..rows(before) + rows(&from[..piece.groups.len()]);
                prop_assert!(of_groups.start <= piece.rows.start);
                prop_assert!(piece.rows.end <= of_groups.end);
                prop_assert!(piece.rows == of_groups || piece.groups.len() == 1);
            }
            let all = |file: &Vec<Shape>| file.iter().map(|g| g.rows).sum::<usize>();
            prop_assert_eq!(found, files.iter().map(all).collect::<Vec<_>>());
        }
    }
}
