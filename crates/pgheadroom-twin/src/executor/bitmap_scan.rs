//! Statements that find their rows by a bitmap of an index's entries, page by page.
//!
//! ```text
//! index:  leaf after leaf, to the end: TIDs of entries that are not marked; none is marked here
//! heap:   its pages in their order: prune, walk each chain -> then the rows, one by one
//! ```
//!
//! An entry that leads to nothing stays as it is, for a bitmap has no way back to its index: the
//! next one comes to it again. From 18 on a read stream has the page pinned that comes next, where
//! all are in shared buffers no more than that one.
//!
//! Source: `btgetbitmap`, src/backend/access/nbtree/nbtree.c; `BitmapHeapScanNextBlock`,
//! src/backend/access/heap/heapam_handler.c (REL_18_STABLE; `heapam_scan_bitmap_next_block` in
//! REL_15_STABLE); `read_stream_next_buffer`, src/backend/storage/aio/read_stream.c.

use std::cell::RefCell;

use crate::executor::fetch::{Fetched, HeapAccess};
use crate::executor::parked::{BitmapScan, Parked};
use crate::executor::table::Table;
use crate::executor::{Action, Database, StatementError, TableId};
use crate::page::Tid;

/// What a page takes of a bitmap: an entry of its hash table, and two pointers.
///
/// Source: `tbm_calculate_entries`, src/backend/nodes/tidbitmap.c (REL_18_STABLE), with
/// `PagetableEntry` of 48 bytes: five words of 64 bits for 291 line pointers, and 8 bytes.
const BYTES_PER_PAGE: usize = 48 + 2 * 8;
/// A bitmap may have so many pages, whatever memory it is given.
const PAGES_AT_LEAST: usize = 16;

impl Database {
    /// A statement that finds rows by a bitmap of an index's entries for the numbers of keys;
    /// number of rows.
    ///
    /// # Errors
    /// As [`Database::by_key`]; [`StatementError::Unsupported`] for a bitmap that does not fit into
    /// `work_mem`, which then knows of some pages only that something is there.
    pub fn by_bitmap(
        &mut self,
        table: TableId,
        index: usize,
        (low, high): (i64, i64),
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        let keys = self.tables[table.0].codes_between(index, (low, high))?;
        let statement = self.begin_statement_on(table);
        let of = &self.tables[table.0];
        let index = of.btree_position(index);
        let tids = of.bitmap(index, &keys);
        let pages = tids.chunk_by(is_same_page).count();
        let most = self.memory_settings.work_mem as usize * 1024 / BYTES_PER_PAGE;
        let most = most.max(PAGES_AT_LEAST);
        if pages > most {
            return Err(StatementError::Unsupported(format!(
                "a bitmap of {pages} pages does not fit into work_mem, which holds {most}"
            )));
        }
        self.advance_bitmap_scan(
            Box::new(BitmapScan {
                table,
                index,
                statement,
                found_rows: 0,
                tids,
                done: 0,
                visible: None,
                keys,
            }),
            action,
        )
    }

    /// Goes on with the scan, to its end or until it has to wait.
    pub(super) fn advance_bitmap_scan(
        &mut self,
        mut scan: Box<BitmapScan>,
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        let done = self.go_through_bitmap(&mut scan, action);
        self.park(done, || Parked::Bitmap(scan))
    }

    fn go_through_bitmap(
        &mut self,
        scan: &mut BitmapScan,
        action: &Action<'_>,
    ) -> Result<u64, StatementError> {
        let BitmapScan {
            index, statement, ..
        } = *scan;
        let is_read_only = matches!(action, Action::Read);
        let table = &mut self.tables[scan.table.0];
        let main = table.forks.main;
        loop {
            let (visible, first) = if let Some(stopped) = scan.visible.take() {
                stopped
            } else {
                let mut pages = scan.tids[scan.done..].chunk_by(is_same_page);
                let Some(chains) = pages.next() else {
                    break;
                };
                table.session.pin_ahead = None;
                let wal = RefCell::new(&mut self.wal);
                let mut heap = HeapAccess::new(table.heap_parts(), &self.procs, &wal, None);
                heap.prune_opt_for(chains[0].block, is_read_only);
                let fetched = chains.iter().map(|&tid| heap.fetch(tid, statement));
                let visible = fetched.filter_map(|fetched| match fetched {
                    Fetched::Found(tid) => Some(tid),
                    Fetched::Invisible | Fetched::AllDead => None,
                });
                let visible: Vec<Tid> = visible.collect();
                scan.done += chains.len();
                if self.behaviour.bitmap_scans_stream {
                    table.session.pin_ahead = scan.tids.get(scan.done).map(|tid| tid.block);
                }
                (visible, 0)
            };
            for position in first..visible.len() {
                let tid = visible[position];
                self.procs.note_slot(main, tid.block);
                let keys = &scan.keys;
                let still_wanted =
                    |of: &mut Table, row| of.has_key(index, row, (&keys[0], &keys[1]));
                let (procs, wal) = (&mut self.procs, &mut self.wal);
                match table.take(tid, action, still_wanted, (procs, wal, statement)) {
                    Ok(taken) => scan.found_rows += u64::from(taken.is_some()),
                    Err(error) => {
                        if matches!(error, StatementError::Waits(_)) {
                            scan.visible = Some((visible, position));
                        }
                        return Err(error);
                    }
                }
            }
        }
        if let Some(last) = scan.tids.last()
            && !self.behaviour.bitmap_scans_stream
        {
            self.procs.note_end_of_bitmap(main, last.block);
        }
        self.end_statement(scan.table)?;
        Ok(scan.found_rows)
    }
}

/// Whether two versions lie on one page.
fn is_same_page(one: &Tid, other: &Tid) -> bool {
    let (here, there) = (one.block, other.block); // fields of a packed tuple
    here == there
}

impl Table {
    /// What an index, by its position among the B-trees, has for keys from `low` to `high`, by
    /// place. No place stands there twice: an index has one entry for a version.
    fn bitmap(&self, index: usize, [low, high]: &[Vec<i64>; 2]) -> Vec<Tid> {
        let tree = &self.indexes.btrees[index].tree;
        let mut tids: Vec<Tid> = Vec::new();
        let mut next = tree.scan_start(low);
        while let Some(leaf) = next {
            let scanned = tree.scan_page(leaf, low, high);
            tids.extend(scanned.entries.iter().map(|&(_, tid)| tid));
            next = scanned.next;
        }
        tids.sort_unstable();
        tids
    }
}
