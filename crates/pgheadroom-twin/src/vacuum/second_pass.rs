//! The second pass: dead line pointers become unused, and empty pages at the end are cut off.

use pgheadroom_layout::wal_record::PageCleaning;
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::heap::Heap;
use crate::page::{HeapPage, LinePointer};
use crate::transaction::Transactions;
use crate::vacuum::{Change, Truncation, VacuumLog, VacuumScan, Vacuumed, page};
use crate::watch::EventKind;

/// So many empty pages at the end are always worth the lock.
///
/// Source: `REL_TRUNCATE_MINIMUM`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
const TRUNCATE_MIN_PAGES: u32 = 1000;
/// Or this part of the table. Source: `REL_TRUNCATE_FRACTION`, vacuumlazy.c.
const TRUNCATE_FRACTION: u32 = 16;

impl VacuumScan {
    /// Whether so much of the end is empty that the lock to cut it off is asked for.
    ///
    /// Source: `should_attempt_truncation`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    pub(crate) const fn should_attempt_truncation(&self) -> bool {
        let freeable = self.rel_pages - self.nonempty_pages;
        let is_worth_while =
            freeable >= TRUNCATE_MIN_PAGES || freeable >= self.rel_pages / TRUNCATE_FRACTION;
        let may_truncate = self.options.truncate && !self.options.failsafe;
        may_truncate && freeable > 0 && is_worth_while
    }
}

impl Heap {
    /// The second pass, after the indexes have lost their entries, and the end.
    pub fn vacuum_reclaim(
        &mut self,
        mut scan: VacuumScan,
        transactions: &impl Transactions,
        log: &mut impl VacuumLog,
    ) -> Vacuumed {
        while self.vacuum_reclaim_next(&mut scan, transactions, log) {}
        self.vacuum_rest_of_fsm(&scan, log);
        self.vacuum_end(scan, log)
    }

    /// The next page of the second pass; false when there was none.
    ///
    /// Source: `lazy_vacuum_heap_rel`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    pub fn vacuum_reclaim_next(
        &mut self,
        scan: &mut VacuumScan,
        transactions: &impl Transactions,
        log: &mut impl VacuumLog,
    ) -> bool {
        let pages = scan.dead_items.pages();
        let are_left = scan.done.bypassed_indexes || scan.options.failsafe;
        if are_left || scan.reclaimed == pages.len() {
            return false;
        }
        let (block, dead) = &pages[scan.reclaimed];
        self.reclaim_page(*block, dead, &mut scan.done, transactions, log);
        self.record_free(*block, log);
        scan.reclaimed += 1;
        true
    }

    /// The free space map's upper levels learn of what they do not know yet.
    ///
    /// Source: `lazy_scan_heap`, src/backend/access/heap/vacuumlazy.c (REL_18_STABLE).
    pub fn vacuum_rest_of_fsm(&mut self, scan: &VacuumScan, log: &mut impl VacuumLog) {
        let (start, end) = (scan.fsm_vacuumed_to, scan.rel_pages);
        if end > start {
            let end = Some(BlockNumber(end));
            self.fsm_mut().vacuum(BlockNumber(start), end, log);
        }
    }

    /// The end is cut off, unless the table has grown meanwhile.
    ///
    /// Source: `heap_vacuum_rel` and `lazy_truncate_heap`, src/backend/access/heap/vacuumlazy.c
    /// (REL_18_STABLE).
    pub fn vacuum_end(&mut self, scan: VacuumScan, log: &mut impl VacuumLog) -> Vacuumed {
        let takes_lock = scan.should_attempt_truncation();
        let mut done = scan.done;
        done.took_lock = takes_lock;
        if done.took_lock && self.page_count() == scan.rel_pages {
            done.truncated = self.truncate_empty(scan.nonempty_pages, log);
        }
        done
    }

    /// Source: `lazy_vacuum_heap_page`, src/backend/access/heap/vacuumlazy.c (REL_15_STABLE,
    /// REL_18_STABLE).
    pub(super) fn reclaim_page(
        &mut self,
        block: BlockNumber,
        dead: &[OffsetNumber],
        done: &mut Vacuumed,
        transactions: &impl Transactions,
        log: &mut impl VacuumLog,
    ) {
        let behaviour = *self.behaviour();
        let page = self.page_mut(block);
        page.reclaim_dead(&behaviour, dead);
        let count = u32::try_from(dead.len()).unwrap_or(u32::MAX);
        let visible = page::all_visible(page, transactions);
        let change = match visible {
            Some(found) if behaviour.visibility_in_cleaning_records => {
                Change::CleanedVisible(PageCleaning {
                    unused: count,
                    has_conflict_horizon: found.has_visible_xid,
                    ..PageCleaning::default()
                })
            }
            _ => Change::Cleaned(count),
        };
        log.changed(block, change, page.exact_free_space());
        done.cleaned.push((block, count));
        self.note(block, || EventKind::Reclaimed {
            items: dead.iter().map(|offset| offset.0).collect(),
        });
        if let Some(found) = visible {
            self.set_visible_logged(block, found.all_frozen, done, log);
        }
    }

    /// Cuts off empty pages at the end; pages before and after.
    ///
    /// Source: `lazy_truncate_heap` and `count_nondeletable_pages`,
    /// src/backend/access/heap/vacuumlazy.c (REL_18_STABLE); `RelationTruncate`,
    /// src/backend/catalog/storage.c. The lock for it has been taken (`Database::vacuum_step`).
    fn truncate_empty(
        &mut self,
        nonempty_pages: u32,
        log: &mut impl VacuumLog,
    ) -> Option<(u32, u32)> {
        let before = self.page_count();
        let is_used = |(_, item)| item != LinePointer::Unused;
        let in_use = |page: &HeapPage| page.each_item().any(is_used);
        let after = (nonempty_pages..before)
            .rev()
            .find(|&block| in_use(self.page_mut(BlockNumber(block))))
            .map_or(nonempty_pages, |block| block + 1);
        if after == before {
            return None;
        }
        self.truncate_pages(after);
        self.note_cut(before, after);
        let truncation = Truncation {
            heap_pages: after,
            fsm: self.fsm_mut().truncate(after),
            vm: self.vm_mut().truncate(after),
        };
        log.truncated(&truncation);
        if truncation.fsm.is_some() {
            self.fsm_mut().vacuum(BlockNumber(after), None, log);
        }
        Some((before, after))
    }
}
