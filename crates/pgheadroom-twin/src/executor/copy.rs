//! COPY FROM: rows are collected into batches, each batch goes to the heap page by page.

use std::cell::RefCell;

use pgheadroom_layout::wal_record::heap_multi_insert;

use crate::btree::UniqueCheck;
use crate::executor::session_table::Entries;
use crate::executor::toast::Writer;
use crate::executor::{Database, StatementError, TableId};
use crate::heap::BulkInsert;
use crate::value::Value;
use crate::wal::RecordType;

/// Rows of a batch. Source: `MAX_BUFFERED_TUPLES`, src/backend/commands/copyfrom.c
/// (REL_15_STABLE, REL_18_STABLE).
const MAX_BUFFERED_TUPLES: usize = 1000;
/// Input bytes of a batch. Source: `MAX_BUFFERED_BYTES`, copyfrom.c.
const MAX_BUFFERED_BYTES: u64 = 65_535;

/// A row of COPY's input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CopyRow<'a> {
    /// Values of all columns.
    pub values: &'a [Value],
    /// Bytes of its line, without the newline; they decide where a batch ends.
    pub line_bytes: u32,
}

impl Database {
    /// COPY FROM of these rows into a table.
    ///
    /// # Errors
    /// [`StatementError`]; the transaction has to be rolled back.
    ///
    /// Source: `CopyFrom` and `CopyMultiInsertInfoIsFull`, src/backend/commands/copyfrom.c;
    /// `heap_multi_insert`, src/backend/access/heap/heapam.c (REL_15_STABLE, REL_18_STABLE).
    pub fn copy<'a>(
        &mut self,
        table: TableId,
        rows: impl IntoIterator<Item = CopyRow<'a>>,
    ) -> Result<u64, StatementError> {
        self.begin_statement_on(table);
        let mut bulk = BulkInsert::default();
        let (mut batch, mut batch_bytes, mut count) = (Vec::new(), 0_u64, 0);
        for row in rows {
            batch.push(self.tables[table.0].values.add(row.values)?);
            batch_bytes += u64::from(row.line_bytes);
            count += 1;
            let is_full = batch.len() >= MAX_BUFFERED_TUPLES || batch_bytes >= MAX_BUFFERED_BYTES;
            if is_full {
                self.flush(table, &mut bulk, &batch)?;
                batch.clear();
                batch_bytes = 0;
            }
        }
        if !batch.is_empty() {
            self.flush(table, &mut bulk, &batch)?;
        }
        Ok(count)
    }

    /// Source: `CopyMultiInsertBufferFlush`, src/backend/commands/copyfrom.c (REL_18_STABLE).
    fn flush(
        &mut self,
        table: TableId,
        bulk: &mut BulkInsert,
        batch: &[u32],
    ) -> Result<(), StatementError> {
        let table = &mut self.tables[table.0];
        let xid = self.procs.assign();
        let mut tuples = Vec::with_capacity(batch.len());
        for &row in batch {
            let mut to = Writer {
                procs: &mut self.procs,
                wal: &mut self.wal,
                statement: self.statement,
            };
            tuples.push((row, table.prepare_row(row, &mut to)?));
        }
        let (wal, fsm) = (RefCell::new(&mut self.wal), table.forks.fsm);
        let mut hint = |block| wal.borrow_mut().hint(fsm, block, 0);
        let pages =
            table
                .heap
                .insert_batch(&mut table.session.target, bulk, &tuples, xid, &mut hint)?;
        let wal = &mut self.wal;
        for placed in &pages {
            let (block, init) = (placed[0].tid.block, placed[0].initialises_page);
            let cleared = placed.iter().any(|one| one.cleared_visibility);
            let vm = table.log_visibility(cleared, block, wal);
            let (record, page) = if init {
                (
                    RecordType::HeapMultiInsertInit,
                    wal.init(table.forks.main, block),
                )
            } else {
                let page =
                    wal.change_with_tuples(table.forks.main, block, table.hole(placed[0].tid));
                (RecordType::HeapMultiInsert, page)
            };
            let lengths = placed.iter().map(|one| {
                let page = &table.heap.pages()[block.0 as usize];
                u32::from(page.tuple(one.tid.offset).expect("a new tuple").lp_len)
            });
            wal.record(record, heap_multi_insert(lengths, init, page, vm));
        }
        table.session.changed.begin(self.statement);
        let inserted = u32::try_from(batch.len()).expect("a small batch");
        table.counters.n_tup_ins += u64::from(inserted);
        table.session.trans.inserted += inserted;
        for placed in pages.iter().flatten() {
            let row = table.row_at(placed.tid);
            let entries = Entries {
                tid: placed.tid,
                row,
                pinned: None,
                next: 0,
                has_values: false,
                check: UniqueCheck::Yes,
            };
            table.insert_entries(entries, None, &mut self.procs, wal)?;
            table.queue_checks(row);
        }
        Ok(())
    }
}
