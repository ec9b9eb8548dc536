//! A B-tree page: its place in the tree, and its items without their keys.
//!
//! Source: src/include/access/nbtree.h, itup.h (REL_15_STABLE to REL_18_STABLE).

use crate::btree::SIZE_OF_BT_PAGE_OPAQUE;
use crate::decode::{DecodeError, ItemId, LpFlags, PageBytes, PageHeader, item_ids};
use crate::flags::{BT_IS_POSTING, BT_PIVOT_HEAP_TID_ATTR, BTP_LEAF, BTP_ROOT, INDEX_ALT_TID_MASK};
use crate::page::BLCKSZ;
use crate::{BlockNumber, OffsetNumber};

const BTP_DELETED: u16 = 4;
const BTP_META: u16 = 8;
const BTP_HALF_DEAD: u16 = 16;
const BTP_HAS_GARBAGE: u16 = 64;
const BTP_INCOMPLETE_SPLIT: u16 = 128;
const BTP_HAS_FULLXID: u16 = 256;
const BTREE_MAGIC: u32 = 0x0005_3162;
const INDEX_SIZE_MASK: u16 = 0x1FFF;
const BT_OFFSET_MASK: u16 = 0x0FFF;
const SIZE_OF_INDEX_TUPLE: u16 = 8;
const SIZE_OF_TID: u16 = 6;
/// Where the special area begins.
#[allow(clippy::cast_possible_truncation)] // 8176
const SPECIAL: u16 = (BLCKSZ - SIZE_OF_BT_PAGE_OPAQUE) as u16;

/// A heap TID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeapTid {
    /// The heap page.
    pub block: BlockNumber,
    /// The line pointer there.
    pub offset: OffsetNumber,
}

/// A page of a B-tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BtreePage {
    /// A page of zeros.
    New,
    /// Block 0.
    Meta(Metapage),
    /// Any other.
    Tree(TreePage),
}

/// The metapage.
///
/// Source: `BTMetaPageData`, src/include/access/nbtree.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metapage {
    /// Version of the format.
    pub version: u32,
    /// The root; 0 without one.
    pub root: u32,
    /// Its level.
    pub level: u32,
    /// Where searches begin.
    pub fast_root: u32,
    /// Its level.
    pub fast_level: u32,
    /// Deleted pages that the last VACUUM could not free (14 and later).
    pub last_cleanup_num_delpages: u32,
    /// Whether equal values are also equal in their bytes.
    pub all_equal_image: bool,
}

/// A leaf or inner page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreePage {
    /// Its header.
    pub header: PageHeader,
    /// Left sibling; 0 is none.
    pub prev: u32,
    /// Right sibling; 0 is none.
    pub next: u32,
    /// Level above the leaves.
    pub level: u32,
    /// `btpo_flags`.
    pub flags: u16,
    /// Its items; none are read of a deleted page.
    pub items: Vec<BtreeItem>,
    /// Transaction from which on a deleted page may be used again.
    pub safe_xid: Option<u64>,
}

impl TreePage {
    /// Whether this is a leaf.
    #[must_use]
    pub const fn is_leaf(&self) -> bool {
        self.flags & BTP_LEAF != 0
    }

    /// Whether this is the root.
    #[must_use]
    pub const fn is_root(&self) -> bool {
        self.flags & BTP_ROOT != 0
    }

    /// Whether it is no longer linked.
    #[must_use]
    pub const fn is_deleted(&self) -> bool {
        self.flags & BTP_DELETED != 0
    }

    /// Whether it has no downlink any more.
    #[must_use]
    pub const fn is_half_dead(&self) -> bool {
        self.flags & BTP_HALF_DEAD != 0
    }

    /// The hint that some items are dead.
    #[must_use]
    pub const fn has_garbage(&self) -> bool {
        self.flags & BTP_HAS_GARBAGE != 0
    }

    /// Whether the right sibling has no downlink yet.
    #[must_use]
    pub const fn has_incomplete_split(&self) -> bool {
        self.flags & BTP_INCOMPLETE_SPLIT != 0
    }
}

/// One item of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BtreeItem {
    /// Its length; index tuples are aligned.
    pub lp_len: u16,
    /// Whether a scan marked it dead.
    pub is_dead: bool,
    /// What it is.
    pub kind: ItemKind,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ItemKind {
    /// The upper bound of a page that is not the rightmost of its level.
    HighKey(Pivot),
    /// A downlink of an inner page.
    Downlink(Pivot),
    /// A leaf tuple with one TID.
    Plain(HeapTid),
    /// A leaf tuple with several.
    Posting(Vec<HeapTid>),
}

/// A pivot tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pivot {
    /// The page below; means nothing in the high key of a leaf.
    pub child: BlockNumber,
    /// Key columns that it kept; all of a tuple that was never truncated are not counted there.
    pub natts: Option<u16>,
    /// The TID that it kept.
    pub tid: Option<HeapTid>,
}

impl BtreePage {
    /// Reads a page.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes are not a B-tree page.
    pub fn decode(blkno: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        let page = PageBytes::new(blkno, bytes)?;
        let Some(header) = PageHeader::read(&page)? else {
            return Ok(Self::New);
        };
        if header.pd_special != SPECIAL {
            let expected = format!("{SPECIAL} (16 bytes of a B-tree page)");
            return Err(page.wrong(16, "pd_special", header.pd_special, expected));
        }
        let special = usize::from(SPECIAL);
        let flags = page.u16(special + 12);
        if flags & BTP_META != 0 {
            return metapage(&page).map(Self::Meta);
        }
        let mut tree = TreePage {
            header,
            prev: page.u32(special),
            next: page.u32(special + 4),
            level: page.u32(special + 8),
            flags,
            items: Vec::new(),
            safe_xid: None,
        };
        if tree.is_deleted() {
            tree.safe_xid = (flags & BTP_HAS_FULLXID != 0).then(|| page.u64(24));
            return Ok(Self::Tree(tree));
        }
        if tree.is_leaf() != (tree.level == 0) {
            let expected = if tree.is_leaf() {
                "0 of a leaf"
            } else {
                "above 0 of an inner page"
            };
            return Err(page.wrong(special + 8, "btpo_level", tree.level, expected));
        }
        for (position, id) in item_ids(&page, &header)?.iter().enumerate() {
            let is_high_key = position == 0 && tree.next != 0;
            let item = item(&page, &tree, id, is_high_key)?;
            tree.items.push(item);
        }
        Ok(Self::Tree(tree))
    }
}

fn metapage(page: &PageBytes<'_>) -> Result<Metapage, DecodeError> {
    let magic = page.u32(24);
    if magic != BTREE_MAGIC {
        return Err(page.wrong(24, "btm_magic", magic, format!("{BTREE_MAGIC}")));
    }
    Ok(Metapage {
        version: page.u32(28),
        root: page.u32(32),
        level: page.u32(36),
        fast_root: page.u32(40),
        fast_level: page.u32(44),
        last_cleanup_num_delpages: page.u32(48),
        all_equal_image: page.slice(64, 1)[0] != 0,
    })
}

fn item(
    page: &PageBytes<'_>,
    tree: &TreePage,
    id: &ItemId,
    is_high_key: bool,
) -> Result<BtreeItem, DecodeError> {
    let is_dead = match id.flags {
        LpFlags::Normal => false,
        LpFlags::Dead => true,
        LpFlags::Unused | LpFlags::Redirect => {
            let found = u64::from(id.flags == LpFlags::Redirect) * 2;
            let expected = "1 or 3 (normal or dead) in a B-tree";
            return Err(page.wrong(id.at, "lp_flags", found, expected));
        }
    };
    let (start, _) = id.storage(page, &tree.header, SIZE_OF_INDEX_TUPLE)?;
    let info = page.u16(start + 6);
    if info & INDEX_SIZE_MASK != id.len {
        let expected = format!("lp_len, {}", id.len);
        return Err(page.wrong(
            start + 6,
            "size in t_info",
            info & INDEX_SIZE_MASK,
            expected,
        ));
    }
    let (block, offset) = page.tid(start);
    let is_alternative = info & INDEX_ALT_TID_MASK != 0;
    let kind = if is_high_key || !tree.is_leaf() {
        let pivot = pivot(page, id, start, is_alternative)?;
        if is_high_key {
            ItemKind::HighKey(pivot)
        } else {
            ItemKind::Downlink(pivot)
        }
    } else if is_alternative {
        if offset & BT_IS_POSTING == 0 {
            let expected = "a posting list: no other alternative TID is on a leaf";
            return Err(page.wrong(start + 4, "t_tid offset", offset, expected));
        }
        posting(page, id, start, block, offset & BT_OFFSET_MASK)?
    } else {
        ItemKind::Plain(heap_tid(page, start))
    };
    Ok(BtreeItem {
        lp_len: id.len,
        is_dead,
        kind,
    })
}

/// Source: `BTreeTupleGetNAtts` and `BTreeTupleGetHeapTID`, src/include/access/nbtree.h.
fn pivot(
    page: &PageBytes<'_>,
    id: &ItemId,
    start: usize,
    is_alternative: bool,
) -> Result<Pivot, DecodeError> {
    let (block, offset) = page.tid(start);
    let has_tid = is_alternative && offset & BT_PIVOT_HEAP_TID_ATTR != 0;
    if has_tid && id.len < SIZE_OF_INDEX_TUPLE + SIZE_OF_TID {
        let expected = format!("{} with a heap TID", SIZE_OF_INDEX_TUPLE + SIZE_OF_TID);
        return Err(page.wrong(id.at, "lp_len", id.len, expected));
    }
    let tid_at = start + usize::from(id.len) - usize::from(SIZE_OF_TID);
    Ok(Pivot {
        child: BlockNumber(block),
        natts: is_alternative.then_some(offset & BT_OFFSET_MASK),
        tid: has_tid.then(|| heap_tid(page, tid_at)),
    })
}

/// Source: `BTreeTupleGetPosting` and `BTreeTupleGetPostingOffset`, nbtree.h.
fn posting(
    page: &PageBytes<'_>,
    id: &ItemId,
    start: usize,
    list_offset: u32,
    count: u16,
) -> Result<ItemKind, DecodeError> {
    let end = u64::from(list_offset) + u64::from(count) * u64::from(SIZE_OF_TID);
    if list_offset < u32::from(SIZE_OF_INDEX_TUPLE) || end > u64::from(id.len) {
        let expected = format!("room for {count} TIDs within {} bytes", id.len);
        return Err(page.wrong(start, "posting list offset", list_offset, expected));
    }
    let first = start + list_offset as usize;
    let places = (0..usize::from(count)).map(|n| first + n * usize::from(SIZE_OF_TID));
    Ok(ItemKind::Posting(
        places.map(|at| heap_tid(page, at)).collect(),
    ))
}

fn heap_tid(page: &PageBytes<'_>, at: usize) -> HeapTid {
    let (block, offset) = page.tid(at);
    HeapTid {
        block: BlockNumber(block),
        offset: OffsetNumber(offset),
    }
}
