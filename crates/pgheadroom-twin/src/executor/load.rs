//! Loading: INSERTs of one row each into a table that has nothing but its heap.
//!
//! ```text
//! row   by the long way: finds its page, which is the target from then on
//! rows  while they fit the target page: as many line pointers, as many records
//! row   that does not fit: by the long way, and so on
//! ```
//!
//! What comes of it is what [`Database::insert`] makes of the same rows one by one, to the unit;
//! what it leaves out is to ask for every row what is known of the page and of the rows
//! (`tests/load.rs`).

use std::ops::RangeInclusive;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::toast::TOAST_TUPLE_THRESHOLD;
use pgheadroom_layout::wal_record::{Page, heap_insert};

use crate::executor::table::Table;
use crate::executor::{Database, StatementError, TableId};
use crate::page::Tid;
use crate::procarray::ProcArray;
use crate::row::cells::NewCells;
use crate::row::{LoadRule, RowMaker};
use crate::transaction::Xid;
use crate::value::ValueError;
use crate::wal::{RecordType, Wal};

/// Rows of a table that are loaded one after the other.
#[derive(Debug)]
pub struct Loading {
    pub(super) table: TableId,
    maker: RowMaker,
    /// Length of each row, where all have one.
    one_length: Option<u32>,
    /// Line pointers of the page that was filled last, and how many its first updates add: the next
    /// one will have about as many.
    page_items: usize,
}

/// Rows that were put on a page together.
struct Filled {
    rows: u32,
    tuple_bytes: u32,
    /// Whether another one would not fit.
    is_full: bool,
}

impl Database {
    /// So many rows are to be loaded that these rules make, one for each column.
    ///
    /// # Panics
    /// When there is another number of columns.
    #[must_use]
    pub fn begin_load(&mut self, table: TableId, rules: &[LoadRule], rows: i64) -> Loading {
        let values = &mut self.tables[table.0].values;
        let rows = usize::try_from(rows).unwrap_or(0);
        values.rows.expect(rows);
        Loading {
            table,
            maker: RowMaker::new(rules, &self.tables[table.0].values.row_type),
            one_length: None,
            page_items: 0,
        }
    }

    /// INSERTs of the rows of these numbers, each a statement of the running transaction.
    ///
    /// # Errors
    /// [`StatementError`]; the transaction has to be rolled back.
    pub fn load_rows(
        &mut self,
        loading: &mut Loading,
        mut numbers: RangeInclusive<i64>,
    ) -> Result<(), StatementError> {
        let Self {
            tables,
            procs,
            wal,
            statement,
            ..
        } = self;
        let table = &mut tables[loading.table.0];
        if numbers.is_empty() {
            return Ok(());
        }
        let mut next = table.next_row(loading, &mut numbers, statement)?;
        while let Some(row) = next {
            procs.begin_statement();
            table.insert(row, procs, wal, *statement)?;
            next = if table.is_heap_alone() {
                table.fill_target(loading, &mut numbers, statement, (procs, wal))?
            } else {
                table.next_row(loading, &mut numbers, statement)?
            };
        }
        procs.begin_statement(); // as that of the last row
        Ok(())
    }
}

impl Table {
    /// Adds the next row to the table's rows, in a statement of its own; it has no version yet.
    #[inline]
    fn next_row(
        &mut self,
        loading: &mut Loading,
        numbers: &mut RangeInclusive<i64>,
        statement: &mut u32,
    ) -> Result<Option<u32>, ValueError> {
        let Some(number) = numbers.next() else {
            return Ok(None);
        };
        self.make_row(loading, number, statement).map(Some)
    }

    /// The same of the row of this number.
    #[inline]
    pub(super) fn make_row(
        &mut self,
        loading: &mut Loading,
        number: i64,
        statement: &mut u32,
    ) -> Result<u32, ValueError> {
        *statement += 1;
        let rows = &mut self.values.rows;
        let row = rows.begin();
        let made = loading.maker.make(
            number,
            &self.values.row_type,
            &mut self.values.texts,
            |column, slot| rows.set(row, column, slot),
        );
        if let Err(error) = made {
            self.values.rows.truncate(row);
            return Err(error);
        }
        Ok(row)
    }

    /// Whether an INSERT does nothing but put a version on a page.
    fn is_heap_alone(&self) -> bool {
        let has_indexes = !self.indexes.definitions.is_empty();
        let is_noted = self.concurrent_changes.is_some() || self.heap.is_any_watched();
        let is_checked = self.foreign_keys.is_any();
        !has_indexes && !is_noted && !is_checked && self.model.is_none() && !self.class.skips_fsm
    }

    /// Puts further rows on the page of the last one, as long as they fit; the first that does not.
    fn fill_target(
        &mut self,
        loading: &mut Loading,
        numbers: &mut RangeInclusive<i64>,
        statement: &mut u32,
        (procs, wal): (&mut ProcArray, &mut Wal),
    ) -> Result<Option<u32>, StatementError> {
        let block = self.session.target.0.expect("the page of the last row");
        let xid = procs.assign();
        let page = &self.heap.pages()[block.0 as usize];
        if !page.takes_new_rows() || !wal.is_logged(self.forks.main, block) {
            return Ok(self.next_row(loading, numbers, statement)?);
        }
        self.heap.page_mut(block).expect_items(loading.page_items);
        let (mut placed, mut bytes) = (0_u32, 0);
        let mut left_over = None;
        if let Some(done) = self.fill_alike(loading, block, numbers, statement, xid)? {
            placed = done.rows;
            bytes =
                u64::from(done.rows) * u64::from(heap_insert(done.tuple_bytes, Page::Change, None));
            if done.is_full {
                left_over = self.next_row(loading, numbers, statement)?;
            }
        }
        while left_over.is_none()
            && let Some(row) = self.next_row(loading, numbers, statement)?
        {
            let tuple_bytes = self.length_to_load(row, loading);
            let lp_len = u16::try_from(tuple_bytes).unwrap_or(u16::MAX);
            if tuple_bytes > TOAST_TUPLE_THRESHOLD || !self.heap.takes_row(block, lp_len)? {
                left_over = Some(row);
                break;
            }
            let page = self.heap.page_mut(block);
            let offset = page.add_new(row, lp_len, xid);
            self.values.rows.set_tid(row, Tid { block, offset });
            placed += 1;
            bytes += u64::from(heap_insert(tuple_bytes, Page::Change, None));
        }
        loading.page_items = self.heap.pages()[block.0 as usize].items_expected();
        wal.record_all(self.forks.main, RecordType::HeapInsert, placed, bytes);
        self.counters.n_tup_ins += u64::from(placed);
        self.session.trans.inserted += placed;
        Ok(left_over)
    }

    /// Puts as many rows on a page as fit, where they are alike but for numbers; `None` where they
    /// are not.
    fn fill_alike(
        &mut self,
        loading: &Loading,
        block: BlockNumber,
        numbers: &mut RangeInclusive<i64>,
        statement: &mut u32,
        xid: Xid,
    ) -> Result<Option<Filled>, StatementError> {
        let Some(tuple_bytes) = loading
            .one_length
            .filter(|&bytes| bytes <= TOAST_TUPLE_THRESHOLD)
        else {
            return Ok(None);
        };
        let lp_len = u16::try_from(tuple_bytes).expect("below the threshold");
        let fitting = self.heap.takes_rows(block, lp_len)?;
        let (first, last) = (*numbers.start(), *numbers.end());
        let rows = if numbers.is_empty() {
            0
        } else {
            u32::try_from(last - first).map_or(fitting, |more| fitting.min(more + 1))
        };
        let these = first..=first + i64::from(rows) - 1;
        let Some(ranges) = loading.maker.ranges(&these, &self.values.row_type) else {
            return Ok(None);
        };
        let first_row = self.values.count();
        let fill = |cells: NewCells<'_>| loading.maker.fill(cells, &these);
        let page = self.heap.page_mut(block);
        let offset = page.add_alike(first_row, rows as usize, lp_len, xid);
        let places = (rows as usize, Tid { block, offset });
        self.values.rows.add_alike(places, &ranges, fill);
        *statement += rows;
        if rows > 0 {
            *numbers = first + i64::from(rows)..=last;
        }
        Ok(Some(Filled {
            rows,
            tuple_bytes,
            is_full: rows == fitting,
        }))
    }

    #[inline]
    fn length_to_load(&self, row: u32, loading: &mut Loading) -> u32 {
        if let Some(known) = loading.one_length {
            return known;
        }
        let measured = self
            .values
            .row_type
            .measure(&self.values.slots(row), &self.values.texts);
        if loading.maker.makes_one_length(&self.values.row_type) {
            loading.one_length = Some(measured.tuple_bytes);
        }
        measured.tuple_bytes
    }
}
