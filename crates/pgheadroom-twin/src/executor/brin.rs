//! A BRIN index: what each range of heap pages (128) holds, and the records of its changes.
//!
//! Loading summarises every range that the table has; a new row beyond them changes nothing. A row
//! that leaves its range's bounds replaces the summary. VACUUM summarises ranges that have become
//! full since. Left out: strings above 506 bytes, and the values that old versions of rows had
//! when VACUUM comes to them.
//!
//! Source: `brininsert` and `add_values_to_range`, src/backend/access/brin/brin.c;
//! `brin_form_tuple`, brin_tuple.c; `brin_minmax_add_value`, brin_minmax.c (REL_18_STABLE).

use pgheadroom_layout::Behaviour;
use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::index_tuple::TOAST_INDEX_TARGET;
use pgheadroom_layout::tuple::{VARATT_SHORT_MAX, VARHDRSZ, VARHDRSZ_SHORT};

use crate::executor::StatementError;
use crate::executor::index::{Found, Part, blocking_columns, parts_of};
use crate::executor::index_definition::{IndexDefinition, IndexKey};
use crate::expression::Expression;
use crate::page::Tid;
use crate::row::{Form, Row, RowType};
use crate::wal::Wal;

mod pages;

pub(super) use pages::MAX_ITEM_BYTES;
use pages::{Pages, SummaryItem};

/// Source: `SizeOfBrinTuple`, src/include/access/brin_tuple.h.
const SIZE_OF_BRIN_TUPLE: u32 = 5;

/// The smallest and the largest value of a column, as they compare, and their payloads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Bound {
    Plain(i64, u32),
    Text(Box<[u8]>, u32),
}

impl Bound {
    const fn payload_bytes(&self) -> u32 {
        match self {
            Self::Plain(_, bytes) | Self::Text(_, bytes) => *bytes,
        }
    }
}

/// What a range knows of a column.
#[derive(Debug, Clone, Default)]
struct Summary {
    has_nulls: bool,
    bounds: Option<[Bound; 2]>,
}

#[derive(Debug)]
struct Range {
    columns: Vec<Summary>,
    /// Of the load's ranges until they are written.
    item: Option<SummaryItem>,
}

impl Range {
    fn of(columns: usize) -> Self {
        Self {
            columns: vec![Summary::default(); columns],
            item: None,
        }
    }
}

/// A BRIN index.
#[derive(Debug)]
pub(super) struct Brin {
    name: String,
    keys: Vec<Part>,
    predicate: Option<Expression>,
    pages_per_range: u32,
    /// Columns that it depends on.
    pub columns: Vec<usize>,
    ranges: Vec<Range>,
    pages: Pages,
    /// What the catalogue has of it since the last VACUUM: pages, and ranges as rows. An ANALYZE
    /// writes the table's rows instead, also one that follows a VACUUM at once.
    noted: Option<(usize, usize)>,
}

impl Brin {
    /// An index filled with these rows of a table of so many pages.
    ///
    /// # Errors
    /// When an expression fails, or a string or a summary is too long.
    ///
    /// Source: `brinbuild` and `brinbuildCallback`, src/backend/access/brin/brin.c
    /// (REL_15_STABLE, REL_18_STABLE).
    pub fn build<'r>(
        definition: IndexDefinition,
        row_type: &RowType,
        rows: impl Iterator<Item = (Row<'r>, Tid)>,
        (heap_pages, behaviour): (u32, &Behaviour),
        wal: &mut Wal,
    ) -> Result<Self, StatementError> {
        let columns = blocking_columns(&definition);
        let name = definition.name.clone();
        let pages_per_range = definition.pages_per_range;
        let predicate = definition.predicate.clone();
        let keys = parts_of(definition.keys, row_type);
        let mut brin = Self {
            name,
            ranges: (0..heap_pages.div_ceil(pages_per_range).max(1))
                .map(|_| Range::of(keys.len()))
                .collect(),
            keys,
            predicate,
            pages_per_range,
            columns,
            pages: Pages::new(wal),
            noted: None,
        };
        let mut last = 0;
        for (row, tid) in rows {
            // The first row of a range changes what is known of it.
            if brin.add(row, tid, None)? {
                last = last.max(brin.range_of(tid));
            }
        }
        if !behaviour.brin_build_fills_empty_ranges {
            brin.ranges.truncate(last + 1);
        }
        for range in 0..brin.ranges.len() {
            let bytes = brin.tuple_bytes(&brin.ranges[range].columns)?;
            brin.ranges[range].item = Some(brin.pages.insert(bytes, wal));
        }
        brin.pages.vacuum(wal);
        brin.pages.begin_logging();
        Ok(brin)
    }

    /// What its summaries are made of.
    pub fn sources(&self) -> (Option<&Expression>, impl Iterator<Item = &Part>) {
        (self.predicate.as_ref(), self.keys.iter())
    }

    /// What is read of a row that comes to this place: where the range has no summary yet only what
    /// is evaluated before that is known.
    ///
    /// Source: `brininsert`, src/backend/access/brin/brin.c, behind `FormIndexDatum`,
    /// src/backend/catalog/index.c (REL_15_STABLE, REL_18_STABLE).
    pub fn sources_at(&self, tid: Tid) -> (Option<&Expression>, impl Iterator<Item = &Part>) {
        let has_summary = self.range_of(tid) < self.ranges.len();
        let is_read =
            move |part: &&Part| has_summary || matches!(part.source, IndexKey::Expression(_));
        (self.predicate.as_ref(), self.keys.iter().filter(is_read))
    }

    fn range_of(&self, tid: Tid) -> usize {
        (tid.block.0 / self.pages_per_range) as usize
    }

    /// Source: `brin_form_tuple`, src/backend/access/brin/brin_tuple.c; `brin_doinsert` and
    /// `brin_doupdate`, brin_pageops.c (REL_18_STABLE).
    fn tuple_bytes(&self, columns: &[Summary]) -> Result<u32, StatementError> {
        let is_null = |column: &Summary| column.has_nulls || column.bounds.is_none();
        let bitmap = if columns.iter().any(is_null) {
            u32::try_from((2 * columns.len()).div_ceil(8)).expect("at most 32 columns")
        } else {
            0
        };
        let mut end = maxalign(SIZE_OF_BRIN_TUPLE + bitmap);
        for (part, column) in self.keys.iter().zip(columns) {
            for bound in column.bounds.iter().flatten() {
                let payload = bound.payload_bytes();
                end = if let Some(width) = part.width {
                    end.next_multiple_of(part.align) + width
                } else if payload + VARHDRSZ_SHORT <= VARATT_SHORT_MAX {
                    end + VARHDRSZ_SHORT + payload
                } else {
                    end.next_multiple_of(part.align) + VARHDRSZ + payload
                };
            }
        }
        let bytes = maxalign(end);
        if bytes > MAX_ITEM_BYTES {
            return Err(StatementError::IndexRow {
                index: self.name.clone(),
                bytes,
            });
        }
        Ok(bytes)
    }

    /// Adds a row's values to its range, as the statement that makes it has them; whether that
    /// changed the summary. They are evaluated also where the range has none yet
    /// (`ExecInsertIndexTuples`), so that VACUUM meets none that cannot be but of a row whose
    /// insertion waits at another index.
    fn add(
        &mut self,
        row: Row<'_>,
        tid: Tid,
        statement: Option<u32>,
    ) -> Result<bool, StatementError> {
        if let Some(predicate) = &self.predicate
            && !predicate.is_true(row)?
        {
            return Ok(false);
        }
        let mut is_changed = false;
        let range = self.range_of(tid);
        let mut known = self.ranges.get_mut(range);
        for (number, part) in self.keys.iter().enumerate() {
            let found = part.found(row)?;
            let payload = match out_of_line_bytes(&found, row, statement) {
                Some(bytes) => bytes,
                None => part.payload_bytes(&found, row, statement)?,
            };
            if part.width.is_none()
                && found != Found::Null
                && payload + VARHDRSZ > TOAST_INDEX_TARGET
            {
                return Err(StatementError::Unsupported(
                    "a BRIN index over strings above 506 bytes: leave the index out".to_owned(),
                ));
            }
            let Some(range) = &mut known else {
                continue;
            };
            let column = &mut range.columns[number];
            let bound = match (&found, found.text(row)) {
                // Of a range of NULLs alone a summary that is read has forgotten that it has any
                // (`brin_deform_tuple`), so each further one changes it.
                (Found::Null, _) => {
                    is_changed |= !column.has_nulls || column.bounds.is_none();
                    column.has_nulls = true;
                    continue;
                }
                (Found::Plain(slot), _) => Bound::Plain(part.plain_code(*slot), payload),
                (_, Some(text)) => Bound::Text(part.ordered_by(text), payload),
                (_, None) => unreachable!("a string"),
            };
            match &mut column.bounds {
                None => column.bounds = Some([bound.clone(), bound]),
                Some([low, _]) if bound < *low => *low = bound,
                Some([_, high]) if bound > *high => *high = bound,
                Some(_) => continue,
            }
            is_changed = true;
        }
        Ok(is_changed)
    }

    /// A new row version, which this statement made.
    ///
    /// Source: `brininsert`, src/backend/access/brin/brin.c; `brin_doupdate`, brin_pageops.c
    /// (REL_18_STABLE).
    ///
    /// # Errors
    /// As [`Brin::build`].
    pub fn insert(
        &mut self,
        row: Row<'_>,
        tid: Tid,
        statement: u32,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        if !self.add(row, tid, Some(statement))? {
            return Ok(());
        }
        self.write(self.range_of(tid), wal)
    }

    /// Replaces the summary of a range by what is known of it now.
    fn write(&mut self, range: usize, wal: &mut Wal) -> Result<(), StatementError> {
        let bytes = self.tuple_bytes(&self.ranges[range].columns)?;
        let range = &mut self.ranges[range];
        let item = range.item.expect("it is summarised");
        range.item = Some(self.pages.update(item, bytes, wal));
        Ok(())
    }

    /// Where VACUUM begins to summarise: the heap's block behind the ranges that are, if one more
    /// is full.
    ///
    /// Source: `brinsummarize`, src/backend/access/brin/brin.c (REL_18_STABLE).
    pub fn next_full_range(&self, heap_pages: u32) -> Option<std::ops::Range<u32>> {
        let full = self.full_ranges(heap_pages);
        (!full.is_empty()).then(|| full.start..full.start + self.pages_per_range)
    }

    /// Blocks of all ranges that VACUUM will summarise.
    pub fn full_ranges(&self, heap_pages: u32) -> std::ops::Range<u32> {
        let ranges = u32::try_from(self.ranges.len()).unwrap_or(u32::MAX);
        let start = ranges.saturating_mul(self.pages_per_range).min(heap_pages);
        start..heap_pages - (heap_pages - start) % self.pages_per_range
    }

    /// Summarises the next range, of these rows, each with whether its version was replaced: of
    /// such a one that cannot be evaluated the newest values are to blame, which it does not have.
    ///
    /// Where it fails the placeholder stays, as a summary of nothing, which later rows change; no
    /// other VACUUM comes back to the range.
    ///
    /// Source: `summarize_range` and `brinsummarize`, src/backend/access/brin/brin.c;
    /// `brin_form_placeholder_tuple`, brin_tuple.c (REL_15_STABLE, REL_18_STABLE).
    ///
    /// # Errors
    /// [`StatementError::Vacuum`] of what [`Brin::build`] fails with.
    pub fn summarize<'r>(
        &mut self,
        rows: impl Iterator<Item = (Row<'r>, Tid, bool)>,
        wal: &mut Wal,
    ) -> Result<(), StatementError> {
        let bitmap = u32::try_from((2 * self.keys.len()).div_ceil(8)).expect("at most 32 columns");
        let placeholder = maxalign(SIZE_OF_BRIN_TUPLE + bitmap);
        let mut range = Range::of(self.keys.len());
        range.item = Some(self.pages.insert(placeholder, wal));
        self.ranges.push(range);
        let range = self.ranges.len() - 1;
        let added = self.add_all(rows);
        let done = added.and_then(|()| self.write(range, wal));
        done.map_err(|error| {
            self.ranges[range].columns.fill(Summary::default());
            StatementError::Vacuum {
                index: self.name.clone(),
                error: Box::new(error),
            }
        })
    }

    fn add_all<'r>(
        &mut self,
        rows: impl Iterator<Item = (Row<'r>, Tid, bool)>,
    ) -> Result<(), StatementError> {
        for (row, tid, was_replaced) in rows {
            match self.add(row, tid, None) {
                Err(StatementError::Value(_)) if was_replaced => {}
                added => drop(added?),
            }
        }
        Ok(())
    }

    /// Pages of its file.
    pub fn page_count(&self) -> u32 {
        self.pages.blocks()
    }

    /// What VACUUM does to the pages, before it summarises.
    pub fn vacuum(&mut self, wal: &mut Wal) {
        self.pages.vacuum(wal);
    }

    /// Where the catalogue's entry changes, sessions are told, and forget where they inserted last.
    ///
    /// Source: `update_relstats_all_indexes`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    pub fn end_vacuum(&mut self) {
        let now = Some((self.pages.count(), self.ranges.len()));
        if std::mem::replace(&mut self.noted, now) != now {
            self.forget_target();
        }
    }

    /// ANALYZE changes the entry, and the next VACUUM does again.
    pub const fn end_analyze(&mut self) {
        self.noted = None;
        self.forget_target();
    }

    /// The sessions forget where they inserted last.
    pub const fn forget_target(&mut self) {
        self.pages.forget_target();
    }

    /// Whether its columns keep an update from being HOT, as before 16.
    pub const fn blocks_hot(behaviour: &Behaviour) -> bool {
        behaviour.summarizing_indexes_block_hot
    }
}

/// Bytes of a value that lies out of line as it is: a summary has it in line.
///
/// Source: `brin_form_tuple`, src/backend/access/brin/brin_tuple.c (REL_18_STABLE).
fn out_of_line_bytes(found: &Found, row: Row<'_>, statement: Option<u32>) -> Option<u32> {
    let Found::Kept(slot) = found else {
        return None;
    };
    let bytes = row.texts.get(*slot).len();
    match row.texts.form_in_slot(*slot, statement)? {
        Form::External { stored_bytes, .. } if stored_bytes == bytes => Some(bytes),
        _ => None,
    }
}
