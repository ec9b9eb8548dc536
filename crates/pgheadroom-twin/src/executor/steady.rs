//! The short way of the commonest statement: a transaction of one UPDATE that finds its row by
//! key and changes it in place.
//!
//! ```text
//! key -> row -> place of its newest version -> prune its page, if due -> HOT update -> COMMIT
//! ```
//!
//! What it does is what `Database::by_index` and `Database::commit` do, record by record; what it
//! does not is to ask again what is known. It takes only what it can prove to be simple before it
//! changes anything, and leaves the rest to them:
//!
//! - The place was noted by an index scan that found this row alone under its key, and no entry of
//!   that key or row was added since ([`Places`]): the scan would find the same.
//! - The version there is the row's newest, committed, and nobody has locked it.
//! - The columns assigned have a fixed width and place and are in no index.
//! - Everything that is unsettled on the page is one HOT update (`page::pending`).
//!
//! `tests/steady_path.rs` plays random workloads with and without it.

use std::cell::RefCell;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::wal_record::{
    Page, PageCleaning, SharedBytes, heap_prune, heap_update_same_page,
};

use crate::checkpoint::ForkId;
use crate::counters::Pending;
use crate::engine::Store;
use crate::executor::fetch::HeapAccess;
use crate::executor::rows::Rows;
use crate::executor::table::Table;
use crate::executor::{Assignment, Database, TableId};
use crate::horizon::Horizon;
use crate::memory::{Pieces, prefetch};
use crate::page::{Settled, Tid};
use crate::row::{Differing, NULL_SLOT};
use crate::rules;
use crate::wal::{RecordType, Wal};

/// Where the newest versions of rows were seen last, by a unique index over one integer column
/// whose keys ascend with the rows' numbers. A place is known only while the index has one entry
/// at most for the row's key.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// The index's position, its fork, and the key of row 0.
    index: Option<(usize, ForkId, i64)>,
}

impl Places {
    /// This index has these keys; it is the one to note places by, if there is none yet.
    pub fn offer(&mut self, index: usize, fork: ForkId, first_key: i64) {
        self.index.get_or_insert((index, fork, first_key));
    }

    /// The row that a key of this index belongs to, if it belongs to any.
    #[inline]
    fn row_of(&self, index: usize, key: i64) -> Option<u32> {
        let (position, _, first) = self.index?;
        if position != index {
            return None;
        }
        let row = key.checked_sub(first)?;
        u32::try_from(row).ok()
    }

    /// A scan of this index for one key found this row alone, in one entry, and its newest version
    /// is here.
    pub fn note(&self, rows: &mut Rows, (index, key): (usize, i64), row: u32, tid: Tid) {
        if self.row_of(index, key) == Some(row) {
            rows.set_place(row, tid);
        }
    }

    /// Other indexes take the place of the old ones.
    pub fn start_over(&mut self) {
        self.index = None;
    }

    /// An entry with this key is added to the index with this fork, for this row.
    pub fn forget(&self, rows: &mut Rows, (fork, key): (ForkId, i64), row: u32) {
        rows.forget_place(row);
        if let Some((index, known, _)) = self.index {
            if let Some(row) = self.row_of(index, key).filter(|_| known == fork) {
                rows.forget_place(row);
            }
        }
    }
}

impl Database {
    /// Does a transaction of one UPDATE by key and commits it, if it is simple; false when it is
    /// not, and nothing was done then that the long way would not do first.
    ///
    /// Source: as [`Database::by_index`] and [`Database::commit`].
    pub(crate) fn update_alone(
        &mut self,
        table: TableId,
        index: usize,
        key: i64,
        sets: &[Assignment<'_>],
    ) -> bool {
        if !rules::all_hold() || !self.takes_short_way || self.horizon.is_shared() {
            return false;
        }
        let table = &mut self.tables[table.0];
        let index = table.btree_position(index);
        if !table.update_simply(index, key, sets, &mut self.horizon, &mut self.wal) {
            return false;
        }
        self.statement += 1;
        self.short_ways += 1;
        self.horizon.commit();
        self.wal.record_commit();
        let done = Pending {
            updated: 1,
            ..Pending::default()
        };
        table.counters.end_transaction(done, true);
        true
    }

    /// Whether updates may take the short way, which changes no result; they do.
    pub fn take_short_way(&mut self, takes: bool) {
        self.takes_short_way = takes;
    }

    /// How many transactions took it.
    #[must_use]
    pub const fn short_ways(&self) -> u64 {
        self.short_ways
    }
}

/// Bytes that a transaction pays for being moved into huge pages.
const BYTES_PER_TRANSACTION: usize = 64;
/// Most columns of a SET clause that takes the short way.
const MOST_SETS: usize = 4;

/// What an update makes of a row.
#[derive(Debug)]
struct Changed {
    /// New slots, in the order of the SET clause.
    new: [i64; MOST_SETS],
    hoff: u32,
    differing: Differing,
}

/// What a transaction that will come needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookAhead {
    /// Its row's place and values.
    Row,
    /// The header of its page.
    Page,
    /// The items that pruning the page and updating the row will touch.
    Items,
}

impl Database {
    /// Puts the tables' memory into huge pages, if so many transactions are worth that.
    ///
    /// Measured: moving a KB takes 4 us, and an update in a large table then takes 60 ns less.
    pub(crate) fn gather_memory(&self, transactions: u64) {
        let mut pieces = Pieces::default();
        for table in &self.tables {
            table.rows.pieces(&mut pieces);
            pieces.add(table.heap.pages());
            for page in table.heap.pages() {
                page.pieces(&mut pieces);
            }
        }
        if transactions >= (pieces.bytes() / BYTES_PER_TRANSACTION) as u64 {
            pieces.gather();
        }
    }

    /// Asks for the memory of a statement that will come; changes nothing.
    #[inline]
    pub(crate) fn look_ahead(&self, table: TableId, index: usize, key: i64, what: LookAhead) {
        let table = &self.tables[table.0];
        let index = table.btree_position(index);
        if what == LookAhead::Row {
            if let Some(row) = table.places.row_of(index, key) {
                table.rows.look_ahead(row);
            }
        } else if let Some((_, tid)) = table.place_of(index, key) {
            if let Some(page) = table.heap.pages().get(tid.block.0 as usize) {
                match what {
                    LookAhead::Items => page.look_at_items(tid.offset),
                    _ => prefetch(page),
                }
            }
        }
    }
}

impl Table {
    /// The row with this key and its place, if it is known.
    #[inline]
    fn place_of(&self, index: usize, key: i64) -> Option<(u32, Tid)> {
        let row = self.places.row_of(index, key)?;
        Some((row, self.rows.place(row)?))
    }

    /// The statement without its COMMIT.
    #[inline(always)]
    fn update_simply(
        &mut self,
        index: usize,
        key: i64,
        sets: &[Assignment<'_>],
        horizon: &mut Horizon,
        wal: &mut Wal,
    ) -> bool {
        let Some((row, tid)) = self.place_of(index, key) else {
            return false;
        };
        let stays = |one: &Assignment<'_>| self.stays_in_place[one.column];
        let is_simple = matches!(self.store, Store::Heap)
            && sets.len() <= MOST_SETS
            && sets.iter().all(stays)
            && !self.texts.has_forms()
            && self.heap.watched().is_none();
        if !is_simple {
            return false;
        }
        if self.heap.live_row(tid, horizon) != Some(row) {
            return false;
        }
        let settled = self.prune_before_update(tid.block, horizon, wal);
        let Some(changed) = self.change_in_place(row, sets) else {
            self.heap.page_mut(tid.block).leave_freed(settled);
            return false;
        };
        let xid = horizon.next_xid();
        let Some(done) = self.heap.update_in_place(tid, xid, settled) else {
            self.heap.page_mut(tid.block).leave_freed(settled);
            return false;
        };
        horizon.assign();
        self.log_in_place(tid.block, done.lp_len, &changed, wal);
        let new = Tid {
            block: tid.block,
            offset: done.new,
        };
        self.rows.set_place(row, new);
        let slots = self.rows.slots_mut(row);
        for (set, new) in sets.iter().zip(changed.new) {
            slots[set.column] = new;
        }
        self.counters.n_tup_upd += 1;
        self.counters.n_tup_hot_upd += 1;
        true
    }

    /// As `HeapAccess::visit`, shorter for a page that is simple.
    #[inline(always)]
    fn prune_before_update(
        &mut self,
        block: BlockNumber,
        horizon: &Horizon,
        wal: &mut Wal,
    ) -> Settled {
        if !self.heap.is_worth_pruning(block, horizon) {
            return Settled::NOTHING;
        }
        let hole = self.heap.pages()[block.0 as usize].exact_free_space();
        let Some(settled) = self.heap.prune_pending(block) else {
            let wal = RefCell::new(wal);
            HeapAccess::new(self.heap_parts(), horizon, &wal, None).visit(block);
            return Settled::NOTHING;
        };
        let hole_after = self.heap.pages()[block.0 as usize].exact_free_space();
        wal.hint(self.main, block, hole);
        let cleaning = PageCleaning {
            redirected: 1,
            unused: u32::from(settled.frees_item),
            has_conflict_horizon: true,
            ..PageCleaning::default()
        };
        let page = wal.change(self.main, block, hole_after);
        let bytes = heap_prune(self.heap.behaviour(), cleaning, page);
        wal.record(RecordType::HeapPrune, bytes);
        self.counters.pruned(1);
        settled
    }

    /// The row's new values; `None` when there is an error to tell, or NULLs shift what changes.
    #[inline(always)]
    fn change_in_place(&mut self, row: u32, sets: &[Assignment<'_>]) -> Option<Changed> {
        let slots = self.rows.slots(row);
        let hoff = self.row_type.hoff(slots);
        let mut changed = Changed {
            new: [0; MOST_SETS],
            hoff,
            differing: Differing::NOTHING,
        };
        for (set, new) in sets.iter().zip(&mut changed.new) {
            let (column, old) = (set.column, slots[set.column]);
            *new = self
                .row_type
                .changed_slot(column, old, &set.change, &mut self.texts)?;
            if *new != old {
                if slots[..column].contains(&NULL_SLOT) {
                    return None;
                }
                let layout = &self.row_type.columns[column];
                changed.differing.add(layout, old, *new);
            }
        }
        Some(changed)
    }

    /// Logs the update.
    #[inline(always)]
    fn log_in_place(&self, block: BlockNumber, lp_len: u16, changed: &Changed, wal: &mut Wal) {
        let hoff = changed.hoff;
        let tuple_bytes = u32::from(lp_len);
        let hole = self.heap.pages()[block.0 as usize].exact_free_space();
        let page = wal.change_with_tuples(self.main, block, hole);
        let shared = if page == Page::Change && !wal.is_logical() {
            changed.differing.shared(tuple_bytes - hoff)
        } else {
            SharedBytes::default()
        };
        let bytes = heap_update_same_page(tuple_bytes, hoff, shared, page, None);
        wal.record(RecordType::HeapHotUpdate, bytes);
    }

    /// Which columns an update may change without another way than in place.
    pub(super) fn learn_columns(&mut self) {
        let columns = self.row_type.columns.iter().enumerate();
        let stays = columns.map(|(column, layout)| {
            let is_indexed = self.blocks_hot[column] || self.is_summarized[column];
            layout.width.is_some() && layout.offset.is_some() && !is_indexed
        });
        self.stays_in_place = stays.collect();
    }
}
