//! What lies on a GIN index's pages.

use pgheadroom_layout::align::MAXIMUM_ALIGNOF;
use pgheadroom_layout::gin::{
    GIN_DATA_PAGE_MAX_DATA_SIZE, GIN_LIST_PAGE_SIZE, GIN_MAX_ITEM_SIZE, SIZE_OF_GIN_META_PAGE,
    SIZE_OF_POSTING_ITEM, code, packed,
};
use pgheadroom_layout::page::SIZE_OF_ITEM_ID;
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::gin::key::Key;
use crate::page::Tid;
use crate::transaction::Xid;

/// Less than any row's, and the right bound of a last page.
pub(super) const NO_BOUND: Tid = Tid {
    block: BlockNumber(0),
    offset: OffsetNumber(0),
};

/// A page.
#[derive(Debug)]
pub(super) struct Page {
    pub content: Content,
    /// The page to the right.
    pub next: Option<u32>,
}

#[derive(Debug)]
pub(super) enum Content {
    Meta,
    Leaf(Entries<Leaf>),
    Inner(Entries<Downlink>),
    DataLeaf {
        lists: Vec<List>,
        bound: Tid,
    },
    /// Children, and the right bound of each.
    DataInner {
        items: Vec<(u32, Tid)>,
        bound: Tid,
    },
    PendingList(PendingListPage),
    /// Free as soon as nobody knows of it who may be on the way there.
    Deleted {
        xid: Option<Xid>,
    },
}

/// Items with line pointers.
#[derive(Debug)]
pub(super) struct Entries<T> {
    pub items: Vec<T>,
    /// Bytes of them and their line pointers.
    used: u32,
}

/// An entry of a leaf.
#[derive(Debug)]
pub(super) struct Leaf {
    pub key: Key,
    pub rows: Rows,
    bytes: u32,
}

#[derive(Debug)]
pub(super) enum Rows {
    List(Vec<Tid>),
    /// A posting tree's root.
    Tree(u32),
}

/// An entry of an inner page: the last key of its child.
#[derive(Debug)]
pub(super) struct Downlink {
    pub key: Key,
    pub child: u32,
}

/// A packed list of a posting tree's leaf.
#[derive(Debug)]
pub(super) struct List {
    pub tids: Vec<Tid>,
    pub bytes: u32,
}

/// A page of the pending list.
#[derive(Debug, Default)]
pub(super) struct PendingListPage {
    pub tuples: Vec<(Key, Tid)>,
    used: u32,
    /// Rows that end here.
    pub rows: u16,
    /// Whether the last row ends here.
    pub is_full_row: bool,
}

/// An item's bytes, aligned.
pub(super) trait Item {
    fn bytes(&self) -> u32;
}

impl Item for Leaf {
    fn bytes(&self) -> u32 {
        self.bytes
    }
}

impl Item for Downlink {
    fn bytes(&self) -> u32 {
        self.key.tuple_bytes()
    }
}

impl Leaf {
    /// With its rows in a list; `None` when that would be too long.
    ///
    /// Source: `addItemPointersToLeafTuple`, src/backend/access/gin/gininsert.c (REL_18_STABLE).
    pub fn with_list(key: &Key, tids: &[Tid]) -> Option<Self> {
        let (_, list) = packed(codes(tids), GIN_MAX_ITEM_SIZE);
        let bytes = (key.head_bytes() + list).next_multiple_of(MAXIMUM_ALIGNOF);
        (bytes <= GIN_MAX_ITEM_SIZE).then(|| Self {
            key: key.clone(),
            rows: Rows::List(tids.to_vec()),
            bytes,
        })
    }

    pub fn with_tree(key: &Key, root: u32) -> Self {
        Self {
            key: key.clone(),
            rows: Rows::Tree(root),
            bytes: key.tuple_bytes(),
        }
    }
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            used: 0,
        }
    }
}

impl<T: Item> Entries<T> {
    pub fn of(items: Vec<T>) -> Self {
        let used = items.iter().map(with_pointer).sum();
        Self { items, used }
    }

    /// Whether an item of so many bytes fits in, in the place of this one.
    ///
    /// Source: `entryIsEnoughSpace`, src/backend/access/gin/ginentrypage.c (REL_18_STABLE).
    pub fn has_room(&self, bytes: u32, replaced: Option<usize>) -> bool {
        let free = GIN_LIST_PAGE_SIZE - self.used;
        // `PageGetFreeSpace` leaves room for a line pointer already.
        let free = free.saturating_sub(SIZE_OF_ITEM_ID);
        let released = replaced.map_or(0, |at| with_pointer(&self.items[at]));
        free + released >= bytes + SIZE_OF_ITEM_ID
    }

    pub fn insert(&mut self, at: usize, item: T) {
        self.used += with_pointer(&item);
        self.items.insert(at, item);
    }

    pub fn replace(&mut self, at: usize, item: T) {
        self.used -= with_pointer(&self.items[at]);
        self.used += with_pointer(&item);
        self.items[at] = item;
    }

    /// Two pages of about as many bytes.
    ///
    /// Source: `entrySplitPage`, src/backend/access/gin/ginentrypage.c (REL_18_STABLE).
    pub fn halves(items: Vec<T>) -> (Self, Self) {
        let total: u32 = items.iter().map(with_pointer).sum();
        let mut left_bytes = 0;
        let mut left = Vec::new();
        let mut right = Vec::new();
        for item in items {
            if left_bytes > total / 2 {
                right.push(item);
            } else {
                left_bytes += with_pointer(&item);
                left.push(item);
            }
        }
        (Self::of(left), Self::of(right))
    }
}

fn with_pointer(item: &impl Item) -> u32 {
    item.bytes() + SIZE_OF_ITEM_ID
}

/// Numbers of TIDs whose differences a list stores.
pub(super) fn codes(tids: &[Tid]) -> impl Iterator<Item = u64> + '_ {
    tids.iter().map(|tid| code(tid.block, tid.offset))
}

impl PendingListPage {
    pub fn add(&mut self, key: Key, tid: Tid) {
        self.used += key.tuple_bytes() + SIZE_OF_ITEM_ID;
        self.tuples.push((key, tid));
    }

    /// Source: `PageGetExactFreeSpace`, src/backend/storage/page/bufpage.c.
    pub const fn exact_free_space(&self) -> u32 {
        GIN_LIST_PAGE_SIZE - self.used
    }
}

impl Page {
    pub const fn alone(content: Content) -> Self {
        Self {
            content,
            next: None,
        }
    }

    /// Bytes between `pd_lower` and `pd_upper`.
    pub fn hole_bytes(&self) -> u32 {
        match &self.content {
            Content::Meta => GIN_LIST_PAGE_SIZE - SIZE_OF_GIN_META_PAGE,
            Content::Leaf(entries) => GIN_LIST_PAGE_SIZE - entries.used,
            Content::Inner(entries) => GIN_LIST_PAGE_SIZE - entries.used,
            Content::DataLeaf { lists, .. } => {
                GIN_DATA_PAGE_MAX_DATA_SIZE - lists.iter().map(|list| list.bytes).sum::<u32>()
            }
            Content::DataInner { items, .. } => {
                let items = u32::try_from(items.len()).expect("items of a page");
                GIN_DATA_PAGE_MAX_DATA_SIZE - items * SIZE_OF_POSTING_ITEM
            }
            Content::PendingList(pending) => pending.exact_free_space(),
            Content::Deleted { .. } => 0,
        }
    }

    /// Source: `GinPageIsRecyclable`, src/backend/access/gin/ginvacuum.c (REL_18_STABLE).
    pub fn is_recyclable(&self, is_removable: &dyn Fn(Xid) -> bool) -> bool {
        match self.content {
            Content::Deleted { xid } => xid.is_none_or(is_removable),
            _ => false,
        }
    }
}
