//! CREATE INDEX and REINDEX: all levels are filled from left to right, the leaves by entries in
//! order, each page above by the pages below.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::btree::BTREE_NONLEAF_FILLFACTOR;
use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_ITEM_ID};
use pgheadroom_layout::version::Behaviour;
use pgheadroom_layout::wal_record::{Image, index_build};

use crate::btree::dedup::{DedupState, is_duplicate};
use crate::btree::item::{Form, OwnedItem};
use crate::btree::page::BtreePage;
use crate::btree::record::METAPAGE_HOLE;
use crate::btree::split::Pivot;
use crate::btree::{Btree, BuildEntry, Entry, Item};
use crate::page::Tid;

/// Longest posting list of a build: a tenth of a page, aligned, with its line pointer.
///
/// Source: `maxpostingsize` in `_bt_load`, nbtsort.c (REL_18_STABLE).
const MAX_POSTING_BYTES: u32 = BLCKSZ * 10 / 100 / 8 * 8 - SIZE_OF_ITEM_ID;
const _: () = assert!(MAX_POSTING_BYTES == 812);
/// Room for a heap TID that a leaf's high key may need.
const TID_ROOM: u32 = 8;

/// What a build wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The image of every page in the order of writing, metapage last.
    pub images: Vec<Image>,
}

impl Built {
    /// Number and bytes of the records (XLOG FPI).
    #[must_use]
    pub fn wal(&self, behaviour: &Behaviour) -> (usize, u64) {
        index_build(behaviour, &self.images)
    }
}

/// The rightmost page of a level while it is filled.
///
/// Source: `BTPageState`, src/backend/access/nbtree/nbtsort.c.
struct Level {
    block: BlockNumber,
    page: BtreePage,
    /// Bytes of the last item's posting list.
    last_posting_bytes: u32,
    /// Free bytes below which the page is full enough.
    full_below: u32,
    /// Will be the downlink to this page.
    low_key: Option<Pivot>,
}

struct Build<'a> {
    tree: &'a mut Btree,
    levels: Vec<Level>,
    images: Vec<Image>,
}

impl Btree {
    /// Fills an empty tree with these entries, in any order.
    ///
    /// # Panics
    /// When the tree is not empty.
    ///
    /// Source: `_bt_load`, src/backend/access/nbtree/nbtsort.c (REL_18_STABLE). Differs: no entries
    /// of recently dead rows, which a real build sorts apart for a unique index.
    pub fn build<'a>(&mut self, entries: impl IntoIterator<Item = Entry<'a>>) -> Built {
        let is_unique = self.definition.is_unique;
        self.build_checking(entries, is_unique)
    }

    /// The same where uniqueness need not be checked, since it was before: after a rewrite. Equal
    /// keys of a unique index are then merged as those of any other.
    ///
    /// Source: `skip_constraint_checks` in `reindex_index`, src/backend/catalog/index.c, which
    /// `finish_heap_swap` asks for (REL_15_STABLE, REL_18_STABLE).
    pub(crate) fn build_checking<'a>(
        &mut self,
        entries: impl IntoIterator<Item = Entry<'a>>,
        checks_uniqueness: bool,
    ) -> Built {
        let mut entries: Vec<Entry<'a>> = entries.into_iter().collect();
        entries.sort_unstable_by(|one, other| (one.key, one.tid).cmp(&(other.key, other.tid)));
        self.build_sorted(entries.into_iter(), checks_uniqueness)
    }

    /// The same of entries that come in their order.
    pub(crate) fn build_sorted(
        &mut self,
        entries: impl Iterator<Item = impl BuildEntry>,
        checks_uniqueness: bool,
    ) -> Built {
        assert!(self.pages.is_empty(), "a build fills an empty tree");
        let deduplicates = self.definition.all_equal_image
            && !checks_uniqueness
            && self.definition.deduplicate_items;
        let mut build = Build {
            tree: self,
            levels: Vec::new(),
            images: Vec::new(),
        };
        if deduplicates {
            build.load_merged(entries);
        } else {
            for entry in entries {
                let entry = entry.entry();
                if !build.push_leaf(&entry) {
                    let item = build.leaf_item(&entry);
                    build.add(0, item, entry.key, 0);
                }
            }
        }
        build.finish()
    }
}

impl Build<'_> {
    fn leaf_item(&self, entry: &Entry<'_>) -> OwnedItem {
        let definition = &self.tree.definition;
        let columns = definition.key_columns;
        assert_eq!(entry.key.len(), usize::from(columns), "columns of the key");
        let bytes = self.tree.shapes.get(entry.shape).leaf_bytes();
        OwnedItem::leaf(entry.tid, entry.shape, bytes, columns)
    }

    /// Adds an entry to the leaf that is being filled, if that has entries already and takes it:
    /// what [`Build::add`] does then, shorter.
    #[inline]
    fn push_leaf(&mut self, entry: &Entry<'_>) -> bool {
        let columns = self.tree.definition.key_columns;
        let bytes = self.tree.shapes.get(entry.shape).leaf_bytes();
        let Some(state) = self.levels.first_mut() else {
            return false;
        };
        let free = state.page.free_space().saturating_sub(SIZE_OF_ITEM_ID);
        let takes = free >= u32::from(bytes) + TID_ROOM
            && free >= state.full_below
            && state.last_posting_bytes == 0;
        let form = Form {
            shape: entry.shape,
            bytes,
            kept_columns: columns,
        };
        takes && state.page.push_usual(entry.tid, form, entry.key)
    }

    fn load_merged<E: BuildEntry>(&mut self, entries: impl Iterator<Item = E>) {
        let mut pending = DedupState::new(MAX_POSTING_BYTES);
        let mut tids: Vec<Tid> = Vec::new();
        let mut base: Option<(OwnedItem, E)> = None;
        for next in entries {
            let entry = next.entry();
            let item = self.leaf_item(&entry);
            if let Some((first, kept)) = base.take() {
                let key = kept.entry().key;
                if is_duplicate(key, entry.key) && pending.add(item.as_ref()) {
                    tids.push(entry.tid);
                    base = Some((first, kept));
                    continue;
                }
                self.add_merged(first.as_ref(), key, &tids);
            }
            pending.start(item.as_ref());
            tids.clear();
            tids.push(entry.tid);
            base = Some((item, next));
        }
        if let Some((first, kept)) = base {
            self.add_merged(first.as_ref(), kept.entry().key, &tids);
        }
    }

    /// Source: `_bt_sort_dedup_finish_pending`, nbtsort.c (REL_18_STABLE).
    fn add_merged(&mut self, base: Item<'_>, key: &[i64], tids: &[Tid]) {
        let item = OwnedItem::with_tids(base, tids.to_vec());
        let posting_bytes = item.bytes() - u32::from(base.base_bytes());
        self.add(0, item, key, posting_bytes);
    }

    fn new_level(&mut self, level: usize) -> Level {
        let full_percent = if level == 0 {
            self.tree.definition.fillfactor.percent()
        } else {
            BTREE_NONLEAF_FILLFACTOR
        };
        Level {
            block: self.new_block(),
            page: self.new_page(level),
            last_posting_bytes: 0,
            full_below: BLCKSZ * (100 - full_percent) / 100,
            low_key: None,
        }
    }

    fn new_page(&self, level: usize) -> BtreePage {
        let level = u32::try_from(level).expect("few levels");
        BtreePage::new(level, usize::from(self.tree.definition.key_columns))
    }

    fn new_block(&mut self) -> BlockNumber {
        let placeholder = self.new_page(0);
        self.tree.pages.push(placeholder);
        BlockNumber(self.tree.page_count() - 1)
    }

    fn write(&mut self, block: BlockNumber, page: BtreePage) {
        self.images.push(Image::plain(page.exact_free_space()));
        *self.tree.page_mut(block) = page;
    }

    /// Adds an item to a level, beginning a new page when the last one is full enough.
    ///
    /// Source: `_bt_buildadd`, src/backend/access/nbtree/nbtsort.c (REL_18_STABLE).
    fn add(&mut self, level: usize, item: OwnedItem, key: &[i64], posting_bytes: u32) {
        if level == self.levels.len() {
            let new = self.new_level(level);
            self.levels.push(new);
        }
        let is_leaf = level == 0;
        let state = &mut self.levels[level];
        // A line pointer for the high key is reserved from the start.
        let free = state.page.free_space().saturating_sub(SIZE_OF_ITEM_ID);
        let last_posting_bytes = std::mem::replace(&mut state.last_posting_bytes, posting_bytes);
        let no_room = free < item.bytes() + if is_leaf { TID_ROOM } else { 0 };
        let full_enough = free + last_posting_bytes < state.full_below && state.page.len() >= 2;
        if no_room || full_enough {
            self.next_page(level);
        }
        let state = &mut self.levels[level];
        if !state.page.is_empty() {
            state.page.push(item, key);
            return;
        }
        let keyless = self
            .tree
            .keyless_pivot(item.as_ref().child(), item.as_ref());
        if is_leaf {
            state.low_key = Some(keyless);
            state.page.push(item, key);
        } else {
            state.page.push(keyless.item.clone(), &keyless.key);
            state.low_key = Some(keyless);
        }
    }

    /// Finishes the last page of a level. Its last item moves to the next page and stays behind,
    /// truncated, as the high key.
    fn next_page(&mut self, level: usize) {
        let new_block = self.new_block();
        let mut new = self.new_page(level);
        let state = &mut self.levels[level];
        // The next page will have about as many items; this one gets a high key.
        new.expect_items(state.page.len() + 1);
        let last = state.page.len() - 1;
        let key = state.page.key(last).to_vec();
        let item = state.page.remove(last);
        let high_key = if level == 0 {
            let left = (state.page.item(last - 1), state.page.key(last - 1));
            let high_key = self.tree.truncate(left, (item.as_ref(), &key));
            new.push(item, &key);
            high_key
        } else {
            let keyless = self
                .tree
                .keyless_pivot(item.as_ref().child(), item.as_ref());
            new.push(keyless.item, &keyless.key);
            Pivot { item, key }
        };
        new.prev = state.block;
        let mut old = std::mem::replace(&mut state.page, new);
        let old_block = std::mem::replace(&mut state.block, new_block);
        let next_low_key = Pivot {
            item: high_key.item.clone(),
            key: high_key.key.clone(),
        };
        let low_key = state.low_key.replace(next_low_key);
        old.next = new_block;
        old.insert(0, high_key.item, &high_key.key);
        self.add_downlink(level + 1, low_key, old_block);
        self.write(old_block, old);
    }

    fn add_downlink(&mut self, level: usize, low_key: Option<Pivot>, child: BlockNumber) {
        let mut pivot = low_key.expect("a page with items has a low key");
        pivot.item.set_child(child);
        self.add(level, pivot.item, &pivot.key, 0);
    }

    /// Source: `_bt_uppershutdown`, src/backend/access/nbtree/nbtsort.c (REL_18_STABLE).
    fn finish(mut self) -> Built {
        let mut level = 0;
        while level < self.levels.len() {
            let is_top = level + 1 == self.levels.len();
            let state = &mut self.levels[level];
            let block = state.block;
            if is_top {
                state.page.is_root = true;
            } else {
                let low_key = state.low_key.take();
                self.add_downlink(level + 1, low_key, block);
            }
            let empty = self.new_page(level);
            let page = std::mem::replace(&mut self.levels[level].page, empty);
            if is_top {
                let meta = &mut self.tree.meta;
                (meta.root, meta.level) = (Some(block), page.level);
                (meta.fast_root, meta.fast_level) = (Some(block), page.level);
            }
            self.write(block, page);
            level += 1;
        }
        self.images.push(Image::plain(METAPAGE_HOLE));
        Built {
            images: self.images,
        }
    }
}
