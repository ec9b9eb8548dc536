//! The list of what is still to be put into the trees.
//!
//! Source: src/backend/access/gin/ginfast.c (REL_15_STABLE, REL_18_STABLE).

use pgheadroom_layout::gin::GIN_LIST_PAGE_SIZE;
use pgheadroom_layout::page::SIZE_OF_ITEM_ID;
use pgheadroom_layout::wal_record::{
    gin_delete_list_pages, gin_insert_list_page, gin_update_meta_page,
};

use crate::gin::accumulate::Accumulator;
use crate::gin::key::Key;
use crate::gin::page::{Content, Page, Pending};
use crate::gin::{GinIndex, META_BLOCK, Surroundings};
use crate::page::Tid;
use crate::wal::GinRecord;

/// Pages that one record deletes. Source: `GIN_NDELETE_AT_ONCE`, src/include/access/ginxlog.h.
const DELETED_AT_ONCE: usize = 16;
const KB: u64 = 1024;

impl GinIndex {
    /// A row version's keys, column by column and in order.
    ///
    /// Source: `gininsert`, src/backend/access/gin/gininsert.c (REL_18_STABLE).
    pub fn insert(&mut self, keys: Vec<Key>, tid: Tid, around: &mut Surroundings<'_>) {
        if self.options.fast_update {
            return self.insert_into_list(keys, tid, around);
        }
        for key in keys {
            self.insert_rows(&key, &[tid], around);
        }
    }

    /// Source: `ginHeapTupleFastInsert`.
    fn insert_into_list(&mut self, keys: Vec<Key>, tid: Tid, around: &mut Surroundings<'_>) {
        if keys.is_empty() {
            return;
        }
        let bytes: u32 = keys.iter().map(Key::tuple_bytes).sum();
        let pointers = u32::try_from(keys.len()).expect("keys of a value") * SIZE_OF_ITEM_ID;
        let needed = bytes + pointers;
        let tail = self.meta.tail;
        let fits = needed <= GIN_LIST_PAGE_SIZE && needed <= self.meta.tail_free_size;
        let changed = match tail {
            Some(tail) if fits => {
                let pending = self.pending_mut(tail);
                pending.rows += 1;
                for key in keys {
                    pending.add(key, tid);
                }
                self.meta.tail_free_size = self.pending(tail).exact_free_space();
                Some((tail, bytes))
            }
            _ => {
                let (head, new_tail, pages) = self.make_sublist(keys, tid, around);
                if let Some(tail) = tail {
                    self.page_mut(tail).next = Some(head);
                } else {
                    self.meta.head = Some(head);
                }
                self.meta.tail = Some(new_tail);
                self.meta.tail_free_size = self.pending(new_tail).exact_free_space();
                self.meta.pending_pages += pages;
                tail.map(|tail| (tail, 0))
            }
        };
        self.meta.pending_heap_tuples += 1;
        let wal = &mut *around.wal;
        let changed = changed.map(|(page, bytes)| (self.change(page, wal), bytes));
        let size = gin_update_meta_page(self.log.init(META_BLOCK, wal), changed);
        self.record(GinRecord::UpdateMetaPage, size, wal);
        let pages = u64::from(self.meta.pending_pages) * u64::from(GIN_LIST_PAGE_SIZE);
        let server = self.options.server;
        let limit = self.options.pending_list_limit;
        if pages > u64::from(limit.unwrap_or(server.pending_list_limit)) * KB {
            self.clean_pending_list(true, server.memory.work_mem, around);
        }
    }

    /// Pages of their own for a row's keys: the first, the last, and how many.
    ///
    /// Source: `makeSublist`.
    fn make_sublist(
        &mut self,
        keys: Vec<Key>,
        tid: Tid,
        around: &mut Surroundings<'_>,
    ) -> (u32, u32, u32) {
        let head = self.new_page(around);
        let (mut tail, mut pages) = (head, 1);
        let mut pending = Pending::default();
        for key in keys {
            if key.tuple_bytes() + SIZE_OF_ITEM_ID > pending.exact_free_space() {
                let next = self.new_page(around);
                self.write_list_page(tail, std::mem::take(&mut pending), Some(next), around);
                tail = next;
                pages += 1;
            }
            pending.add(key, tid);
        }
        pending.rows = 1;
        pending.is_full_row = true;
        self.write_list_page(tail, pending, None, around);
        (head, tail, pages)
    }

    /// Source: `writeListPage`.
    fn write_list_page(
        &mut self,
        block: u32,
        pending: Pending,
        next: Option<u32>,
        around: &mut Surroundings<'_>,
    ) {
        let keys = pending.tuples.iter();
        let bytes = keys.map(|(key, _)| key.tuple_bytes()).sum();
        *self.page_mut(block) = Page {
            content: Content::Pending(pending),
            next,
        };
        let size = gin_insert_list_page(self.log.init(block, around.wal), bytes);
        self.record(GinRecord::InsertListpage, size, around.wal);
    }

    /// Moves what is in the pending list into the trees, as much at once as fits into so many kB;
    /// `fills_map` says whether its pages are free then, or VACUUM will say so.
    ///
    /// Source: `ginInsertCleanup`.
    pub(super) fn clean_pending_list(
        &mut self,
        fills_map: bool,
        memory: u32,
        around: &mut Surroundings<'_>,
    ) {
        let memory = u64::from(memory) * KB;
        let mut gathered = Accumulator::new(self.behaviour.memory_chunk_header_bytes, true);
        let is_empty = self.meta.head.is_none();
        let mut next = self.meta.head;
        while let Some(block) = next {
            let pending = self.pending(block);
            for (key, tid) in &pending.tuples {
                gathered.add(key.clone(), *tid);
            }
            let is_full = pending.is_full_row && gathered.memory >= memory;
            next = self.page(block).next;
            if next.is_none() || is_full {
                for (key, tids) in gathered.take() {
                    self.insert_rows(&key, &tids, around);
                }
                self.shift_list(next, fills_map, around);
            }
        }
        if fills_map && !is_empty {
            self.vacuum_fsm(around.wal);
        }
    }

    /// Deletes the pages of the pending list up to this one.
    ///
    /// Source: `shiftList`.
    fn shift_list(&mut self, until: Option<u32>, fills_map: bool, around: &mut Surroundings<'_>) {
        let mut next = self.meta.head;
        while next != until {
            let mut deleted = Vec::with_capacity(DELETED_AT_ONCE);
            while let Some(block) =
                next.filter(|_| next != until && deleted.len() < DELETED_AT_ONCE)
            {
                self.meta.pending_heap_tuples -= u64::from(self.pending(block).rows);
                next = self.page(block).next;
                *self.page_mut(block) = Page::alone(Content::Deleted { xid: None });
                deleted.push(block);
            }
            self.meta.head = next;
            let pages = u32::try_from(deleted.len()).expect("at most 16");
            self.meta.pending_pages -= pages;
            if next.is_none() {
                self.meta.tail = None;
                self.meta.tail_free_size = 0;
            }
            let meta = self.log.init(META_BLOCK, around.wal);
            for block in &deleted {
                self.log.init(*block, around.wal);
            }
            let size = gin_delete_list_pages(meta, pages);
            self.record(GinRecord::DeleteListpage, size, around.wal);
            for block in deleted {
                if fills_map {
                    self.record_free_page(block, around.wal);
                }
            }
        }
    }

    fn pending(&self, block: u32) -> &Pending {
        match &self.page(block).content {
            Content::Pending(pending) => pending,
            other => unreachable!("no page of the pending list: {other:?}"),
        }
    }

    fn pending_mut(&mut self, block: u32) -> &mut Pending {
        match &mut self.page_mut(block).content {
            Content::Pending(pending) => pending,
            other => unreachable!("no page of the pending list: {other:?}"),
        }
    }
}
