//! The list of what is still to be put into the trees.
//!
//! Source: src/backend/access/gin/ginfast.c (REL_15_STABLE, REL_18_STABLE).

use pgheadroom_layout::gin::GIN_LIST_PAGE_SIZE;
use pgheadroom_layout::page::SIZE_OF_ITEM_ID;
use pgheadroom_layout::wal_record::{
    gin_delete_list_pages, gin_insert_list_page, gin_update_meta_page,
};

use crate::executor::SessionId;
use crate::gin::accumulate::Accumulator;
use crate::gin::key::Key;
use crate::gin::page::{Content, Page, PendingListPage};
use crate::gin::{GinIndex, META_BLOCK, Surroundings};
use crate::page::Tid;
use crate::wal::GinRecord;

/// Pages that one record deletes. Source: `GIN_NDELETE_AT_ONCE`, src/include/access/ginxlog.h.
const DELETED_AT_ONCE: usize = 16;
const KB: u64 = 1024;

/// A cleanup of the pending list that goes on: a part of it is in the trees, and in the list too.
#[derive(Debug)]
pub(super) struct Cleaning {
    memory: u64,
    fills_map: bool,
    /// The list's last page when it began: what comes behind it stays.
    finish: u32,
    is_finishing: bool,
    /// The part's last page, and how many entries of it have been read.
    last: u32,
    read: usize,
    /// Entries of the part.
    moved: u64,
    /// Whose statement it is part of.
    pub(super) session: SessionId,
    is_told: bool,
}

/// Sessions that add to the pending list side by side.
///
/// Who finds no room on the last page lets the metapage go, fills a page of its own and appends
/// that. Who comes meanwhile finds no room either: each has a page for one row, and only the last
/// one is filled.
///
/// Source: `separateList` in `ginHeapTupleFastInsert`.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Whose statement has begun the last page, until it ends.
    began_page: Option<SessionId>,
    /// How often one who came before that was due to find no room, in thousandths.
    due: u32,
}

impl Beside {
    /// Whether a session that comes now finds the list as it was before its last page; as often as
    /// `GinSettings::beside` says.
    fn misses(&mut self, session: SessionId, thousandths: u32) -> bool {
        if self.began_page.is_none_or(|one| one == session) {
            return false;
        }
        self.due += thousandths;
        let is_due = self.due >= 1000;
        self.due -= 1000 * u32::from(is_due);
        is_due
    }
}

impl GinIndex {
    /// The session's statement is over.
    pub fn end_statement(&mut self, session: SessionId) {
        if self.beside.began_page == Some(session) {
            self.beside.began_page = None;
        }
    }

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
        let server = self.options.server;
        let tail = self.meta.tail;
        let fits = needed <= GIN_LIST_PAGE_SIZE
            && needed <= self.meta.tail_free_size
            && !self
                .beside
                .misses(around.session, server.beside.unwrap_or(0));
        let changed = match tail {
            Some(tail) if fits => {
                let pending = self.pending_list_page_mut(tail);
                pending.rows += 1;
                for key in keys {
                    pending.add(key, tid);
                }
                self.meta.tail_free_size = self.pending_list_page(tail).exact_free_space();
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
                self.meta.tail_free_size = self.pending_list_page(new_tail).exact_free_space();
                self.meta.pending_pages += pages;
                self.beside.began_page = server.beside.map(|_| around.session);
                tail.map(|tail| (tail, 0))
            }
        };
        self.meta.pending_heap_tuples += 1;
        let wal = &mut *around.wal;
        let changed = changed.map(|(page, bytes)| (self.change(page, wal), bytes));
        let size = gin_update_meta_page(self.log.init(META_BLOCK, wal), changed);
        self.record(GinRecord::UpdateMetaPage, size, wal);
        let pages = u64::from(self.meta.pending_pages) * u64::from(GIN_LIST_PAGE_SIZE);
        let limit = self.options.pending_list_limit;
        if pages > u64::from(limit.unwrap_or(server.pending_list_limit)) * KB {
            if server.beside.is_some() {
                self.begin_cleaning(true, server.memory.work_mem, around);
            } else {
                self.clean_pending_list(true, server.memory.work_mem, around);
            }
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
        let mut pending = PendingListPage::default();
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
        pending: PendingListPage,
        next: Option<u32>,
        around: &mut Surroundings<'_>,
    ) {
        let keys = pending.tuples.iter();
        let bytes = keys.map(|(key, _)| key.tuple_bytes()).sum();
        *self.page_mut(block) = Page {
            content: Content::PendingList(pending),
            next,
        };
        let size = gin_insert_list_page(self.log.init(block, around.wal), bytes);
        self.record(GinRecord::InsertListpage, size, around.wal);
    }

    /// Moves what is in the pending list into the trees, as much at once as fits into so many kB;
    /// `fills_map` says whether its pages are free then, or VACUUM will say so.
    ///
    /// Source: `ginInsertCleanup`. Differs: who waits for another's cleanup (VACUUM) ends that.
    pub(super) fn clean_pending_list(
        &mut self,
        fills_map: bool,
        memory: u32,
        around: &mut Surroundings<'_>,
    ) {
        while self.move_on(around) {}
        self.begin_cleaning(fills_map, memory, around);
        while self.move_on(around) {}
    }

    /// The same of a session beside others, who add to the list meanwhile: its first part. Who
    /// comes to the limit while somebody cleans does not wait (`ConditionalLockPage`).
    fn begin_cleaning(&mut self, fills_map: bool, memory: u32, around: &mut Surroundings<'_>) {
        if let (None, Some(tail)) = (&self.cleaning, self.meta.tail) {
            let cleaning = Cleaning {
                memory: u64::from(memory) * KB,
                fills_map,
                finish: tail,
                is_finishing: false,
                last: tail,
                read: 0,
                moved: 0,
                session: around.session,
                is_told: false,
            };
            self.move_part(cleaning, around);
        }
    }

    /// Moves what is read until memory is full, or the list ends; its pages stay until `move_on`.
    fn move_part(&mut self, mut cleaning: Cleaning, around: &mut Surroundings<'_>) {
        let mut gathered = Accumulator::new(self.behaviour.memory_chunk_header_bytes, true);
        let mut next = self.meta.head;
        cleaning.moved = 0;
        while let Some(block) = next {
            let pending = self.pending_list_page(block);
            for (key, tid) in &pending.tuples {
                gathered.add(key.clone(), *tid);
            }
            cleaning.moved += pending.tuples.len() as u64;
            cleaning.is_finishing |= block == cleaning.finish;
            (cleaning.last, cleaning.read) = (block, pending.tuples.len());
            let is_full = pending.is_full_row && gathered.memory >= cleaning.memory;
            next = self.page(block).next;
            if next.is_none() || is_full {
                break;
            }
        }
        for (key, tids) in gathered.take() {
            self.insert_rows(&key, &tids, around);
        }
        self.cleaning = Some(cleaning);
    }

    /// A part has been moved: what has come to its last page meanwhile is too, and its pages are
    /// deleted. Whether another part has been moved, or the cleanup is over.
    fn move_on(&mut self, around: &mut Surroundings<'_>) -> bool {
        let Some(cleaning) = self.cleaning.take() else {
            return false;
        };
        let more = &self.pending_list_page(cleaning.last).tuples[cleaning.read..];
        if !more.is_empty() {
            let mut gathered = Accumulator::new(self.behaviour.memory_chunk_header_bytes, true);
            for (key, tid) in more {
                gathered.add(key.clone(), *tid);
            }
            for (key, tids) in gathered.take() {
                self.insert_rows(&key, &tids, around);
            }
        }
        let next = self.page(cleaning.last).next;
        self.shift_list(next, cleaning.fills_map, around);
        if next.is_none() || cleaning.is_finishing {
            if cleaning.fills_map {
                self.vacuum_fsm(around.wal);
            }
            return false;
        }
        self.move_part(cleaning, around);
        true
    }

    /// How many entries the session's cleanup moves first, once; 0 where it has begun none.
    pub fn begun_cleaning(&mut self, session: SessionId) -> u64 {
        match &mut self.cleaning {
            Some(begun) if begun.session == session && !begun.is_told => {
                begun.is_told = true;
                begun.moved
            }
            _ => 0,
        }
    }

    /// The session's cleanup has moved what it said: how many entries it moves next; 0 where it is
    /// over, or another's.
    pub fn go_on_cleaning(&mut self, around: &mut Surroundings<'_>) -> u64 {
        let is_own = |cleaning: &Cleaning| cleaning.session == around.session;
        if !self.cleaning.as_ref().is_some_and(is_own) {
            return 0;
        }
        self.move_on(around);
        self.cleaning.as_ref().map_or(0, |cleaning| cleaning.moved)
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
                self.meta.pending_heap_tuples -= u64::from(self.pending_list_page(block).rows);
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

    fn pending_list_page(&self, block: u32) -> &PendingListPage {
        match &self.page(block).content {
            Content::PendingList(pending) => pending,
            other => unreachable!("no page of the pending list: {other:?}"),
        }
    }

    fn pending_list_page_mut(&mut self, block: u32) -> &mut PendingListPage {
        match &mut self.page_mut(block).content {
            Content::PendingList(pending) => pending,
            other => unreachable!("no page of the pending list: {other:?}"),
        }
    }
}
