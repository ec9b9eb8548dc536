//! Overflow pages: they are added behind a bucket's last page, and freed when entries fit before.

use pgheadroom_layout::wal_record::{
    Squeezed, hash_add_ovfl_page, hash_move_page_contents, hash_squeeze_page,
};

use crate::hash_index::HashIndex;
use crate::hash_index::meta::MAP_HOLE_BYTES;
use crate::hash_index::page::{BucketPage, EMPTY_HOLE_BYTES};
use crate::wal::{HashRecord, Wal};

impl HashIndex {
    /// A page behind a bucket's last one; its block.
    ///
    /// Source: `_hash_addovflpage`, src/backend/access/hash/hashovfl.c (REL_18_STABLE).
    pub(super) fn add_overflow(&mut self, tail: u32, wal: &mut Wal) -> u32 {
        let page = self.meta.take_overflow();
        self.extend_to(page.block);
        *self.page_mut(page.block) = BucketPage {
            bucket: self.page(tail).bucket,
            previous: Some(tail),
            ..BucketPage::default()
        };
        self.page_mut(tail).next = Some(page.block);
        let new = self.log.init(page.block, wal);
        let last = self.change(tail, wal);
        let map = page.map;
        let map = map.map(|map| self.log.change(map, MAP_HOLE_BYTES, wal));
        let new_map = page.new_map.map(|map| self.log.init(map, wal));
        let meta = self.change_meta(wal);
        let size = hash_add_ovfl_page(new, last, map, new_map, meta);
        self.record(HashRecord::AddOvflPage, size, wal);
        page.block
    }

    /// Moves entries of a bucket's last pages to its first ones, and frees what becomes empty.
    ///
    /// Source: `_hash_squeezebucket`, src/backend/access/hash/hashovfl.c (REL_18_STABLE).
    pub(super) fn squeeze(&mut self, bucket: u32, wal: &mut Wal) {
        let mut write = bucket;
        let mut read = bucket;
        while let Some(next) = self.page(read).next {
            read = next;
        }
        while read != write {
            let mut fitting = 0;
            while fitting < self.page(read).entries.len() {
                if self.page(write).has_room(fitting + 1) {
                    fitting += 1;
                    continue;
                }
                let next = self.page(write).next.expect("the page that is read");
                if fitting > 0 {
                    self.move_entries((bucket, read, write), fitting, wal);
                    fitting = 0;
                }
                write = next;
                if write == read {
                    return;
                }
            }
            let previous = self.page(read).previous.expect("a page before it");
            self.free_overflow((bucket, read, write), wal);
            if previous == write {
                return;
            }
            read = previous;
        }
    }

    /// So many of a page's first entries go to another one.
    fn move_entries(
        &mut self,
        (bucket, read, write): (u32, u32, u32),
        entries: usize,
        wal: &mut Wal,
    ) {
        let moved: Vec<_> = self.page_mut(read).entries.drain(..entries).collect();
        for (code, tid) in moved {
            self.page_mut(write).add(code, tid);
        }
        let first = self.named_beside(bucket, write, wal);
        let (to, from) = (self.change(write, wal), self.change(read, wal));
        let entries = u32::try_from(entries).expect("entries of a page");
        let size = hash_move_page_contents(first, to, from, entries);
        self.record(HashRecord::MovePageContents, size, wal);
    }

    /// All of a page's entries go to another one, and the page is free.
    ///
    /// Source: `_hash_freeovflpage`, src/backend/access/hash/hashovfl.c (REL_18_STABLE). Differs:
    /// from 17 on a bucket's first page that is named and does not change goes on to owe its image.
    fn free_overflow(&mut self, (bucket, read, write): (u32, u32, u32), wal: &mut Wal) {
        let freed = std::mem::take(self.page_mut(read));
        let entries = u32::try_from(freed.entries.len()).expect("entries of a page");
        for (code, tid) in freed.entries {
            self.page_mut(write).add(code, tid);
        }
        let previous = freed.previous.expect("a page before it");
        self.page_mut(previous).next = freed.next;
        if let Some(next) = freed.next {
            self.page_mut(next).previous = Some(previous);
        }
        let (map, is_first) = self.meta.free_overflow(read);
        let names_write = entries > 0
            || write == bucket
            || write == previous
            || self.behaviour.hash_squeeze_names_write_page;
        let pages = Squeezed {
            bucket: self.named_beside(bucket, write, wal),
            write: names_write.then(|| self.change(write, wal)),
            ..Squeezed::default()
        };
        let empty = self.log.change_reset(read, EMPTY_HOLE_BYTES, wal);
        let pages = Squeezed {
            previous: (previous != write).then(|| self.change(previous, wal)),
            next: freed.next.map(|next| self.change(next, wal)),
            ..pages
        };
        let map = self.log.change(map, MAP_HOLE_BYTES, wal);
        let meta = is_first.then(|| self.change_meta(wal));
        let pages = Squeezed { meta, ..pages };
        let size = hash_squeeze_page(&pages, empty, map, entries);
        self.record(HashRecord::SqueezePage, size, wal);
    }
}
