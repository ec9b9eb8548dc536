//! A GIN index's page: the metapage, entries, a posting tree's, or one of the pending list.
//!
//! Keys are bytes here: of which type they are the index's operator class knows.
//!
//! Source: src/include/access/ginblock.h, itup.h (REL_15_STABLE to REL_18_STABLE).

use crate::decode::btree::HeapTid;
use crate::decode::{DecodeError, LpFlags, PageBytes, PageHeader, item_ids};
use crate::gin::{
    GIN_COMPRESSED, GIN_DATA, GIN_DELETED, GIN_LEAF, GIN_LIST, GIN_META, GIN_TREE_POSTING,
    SIZE_OF_GIN_META_PAGE, SIZE_OF_GIN_PAGE_OPAQUE, SIZE_OF_POSTING_ITEM, SIZE_OF_RIGHT_BOUND,
    unpacked,
};
use crate::page::{BLCKSZ, SIZE_OF_PAGE_HEADER};
use crate::{BlockNumber, OffsetNumber};

const INVALID_BLOCK: u32 = u32::MAX;
/// Where the special area begins.
const SPECIAL: usize = (BLCKSZ - SIZE_OF_GIN_PAGE_OPAQUE) as usize;
/// Where a page's contents begin, aligned.
const CONTENTS: usize = SIZE_OF_PAGE_HEADER as usize;
/// Where a posting tree page's data begins.
const DATA: usize = CONTENTS + SIZE_OF_RIGHT_BOUND as usize;
/// Marks the offset of a packed list. Source: `GIN_ITUP_COMPRESSED`.
const ITUP_COMPRESSED: u32 = 1 << 31;
/// Bytes of an index tuple's header.
const HEADER_BYTES: u16 = 8;

/// A page of a GIN index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GinPage {
    /// None yet.
    New,
    /// Free, or to become so.
    Deleted,
    /// Block 0.
    Meta(Metapage),
    /// A leaf of the entry tree.
    EntryLeaf(Linked<LeafEntry>),
    /// An inner page of the entry tree: bytes of each entry, and its child.
    EntryInner(Linked<(u16, u32)>),
    /// A leaf of a posting tree: its lists.
    DataLeaf(Linked<PostingList>, HeapTid),
    /// An inner page of a posting tree: children, and the right bound of each.
    DataInner(Linked<(u32, HeapTid)>, HeapTid),
    /// A page of the pending list: bytes of each tuple, and its row; rows that end on it.
    List(Linked<(u16, HeapTid)>, u16),
}

/// What a page has, and the page to the right of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linked<T> {
    /// The page to the right; `None` for the last.
    pub next: Option<u32>,
    /// Its items.
    pub items: Vec<T>,
}

/// A list of a posting tree's leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostingList {
    /// Bytes that it takes.
    pub bytes: usize,
    /// Its rows.
    pub tids: Vec<HeapTid>,
}

/// An entry of a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafEntry {
    /// Its length.
    pub bytes: u16,
    /// Where its rows are.
    pub posting: Posting,
}

/// The rows that have a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Posting {
    /// In the entry itself.
    List(Vec<HeapTid>),
    /// In the posting tree with this root.
    Tree(u32),
}

/// The metapage.
///
/// Source: `GinMetaPageData`, src/include/access/ginblock.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metapage {
    /// First page of the pending list.
    pub head: Option<u32>,
    /// Its last page.
    pub tail: Option<u32>,
    /// Free bytes on that.
    pub tail_free_size: u32,
    /// Its pages.
    pub pending_pages: u32,
    /// Its rows.
    pub pending_heap_tuples: u64,
    /// Pages when VACUUM or the build counted them, and those of entries and of posting trees.
    pub pages: [u32; 3],
    /// Entries then.
    pub entries: u64,
}

impl GinPage {
    /// Reads a page.
    ///
    /// # Errors
    /// [`DecodeError`] for bytes that are none of a GIN index of 9.4 or later.
    pub fn decode(blkno: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        let page = PageBytes::new(blkno, bytes)?;
        let Some(header) = PageHeader::read(&page)? else {
            return Ok(Self::New);
        };
        if usize::from(header.pd_special) != SPECIAL {
            let expected = format!("{SPECIAL}, as of GIN indexes");
            return Err(page.wrong(16, "pd_special", header.pd_special, expected));
        }
        let flags = page.u16(SPECIAL + 6);
        if flags & GIN_DELETED != 0 {
            return Ok(Self::Deleted);
        }
        if flags & GIN_META != 0 {
            return Metapage::read(&page, &header).map(Self::Meta);
        }
        if flags & GIN_LIST != 0 {
            let rows = page.u16(SPECIAL + 4);
            return Ok(Self::List(linked(&page, pending(&page, &header)?), rows));
        }
        if flags & GIN_DATA == 0 {
            return entries(&page, &header, flags & GIN_LEAF != 0);
        }
        if header.pd_lower < DATA_START {
            let expected = format!("at least {DATA_START}");
            return Err(page.wrong(12, "pd_lower", header.pd_lower, expected));
        }
        let bound = tid_at(&page, CONTENTS);
        if flags & GIN_LEAF == 0 {
            let items = posting_items(&page, &header)?;
            return Ok(Self::DataInner(linked(&page, items), bound));
        }
        if flags & GIN_COMPRESSED == 0 {
            let expected = "a packed leaf (128), as all from 9.4 on";
            return Err(page.wrong(SPECIAL + 6, "flags", flags, expected));
        }
        Ok(Self::DataLeaf(linked(&page, lists(&page, &header)?), bound))
    }
}

#[allow(clippy::cast_possible_truncation)] // 32
const DATA_START: u16 = DATA as u16;

fn block_at(page: &PageBytes<'_>, at: usize) -> Option<u32> {
    Some(page.u32(at)).filter(|block| *block != INVALID_BLOCK)
}

fn tid_at(page: &PageBytes<'_>, at: usize) -> HeapTid {
    let (block, offset) = page.tid(at);
    HeapTid {
        block: BlockNumber(block),
        offset: OffsetNumber(offset),
    }
}

fn linked<T>(page: &PageBytes<'_>, items: Vec<T>) -> Linked<T> {
    Linked {
        next: block_at(page, SPECIAL),
        items,
    }
}

impl Metapage {
    fn read(page: &PageBytes<'_>, header: &PageHeader) -> Result<Self, DecodeError> {
        let end = SIZE_OF_PAGE_HEADER + SIZE_OF_GIN_META_PAGE;
        if u32::from(header.pd_lower) < end {
            return Err(page.wrong(12, "pd_lower", header.pd_lower, format!("at least {end}")));
        }
        let at = |bytes: usize| page.u32(CONTENTS + bytes);
        Ok(Self {
            head: block_at(page, CONTENTS),
            tail: block_at(page, CONTENTS + 4),
            tail_free_size: at(8),
            pending_pages: at(12),
            pending_heap_tuples: page.u64(CONTENTS + 16),
            pages: [at(24), at(28), at(32)],
            entries: page.u64(CONTENTS + 40),
        })
    }
}

/// The line pointers' items: where each begins and ends.
fn items(page: &PageBytes<'_>, header: &PageHeader) -> Result<Vec<(usize, usize)>, DecodeError> {
    let mut found = Vec::new();
    for item in item_ids(page, header)? {
        if item.flags == LpFlags::Unused {
            return Err(page.wrong(item.at, "lp_flags", 0_u32, "an entry's"));
        }
        found.push(item.storage(page, header, HEADER_BYTES)?);
    }
    Ok(found)
}

#[allow(clippy::cast_possible_truncation)] // within a page
const fn length(start: usize, end: usize) -> u16 {
    (end - start) as u16
}

fn pending(page: &PageBytes<'_>, header: &PageHeader) -> Result<Vec<(u16, HeapTid)>, DecodeError> {
    let found = items(page, header)?.into_iter();
    Ok(found
        .map(|(start, end)| (length(start, end), tid_at(page, start)))
        .collect())
}

fn entries(
    page: &PageBytes<'_>,
    header: &PageHeader,
    is_leaf: bool,
) -> Result<GinPage, DecodeError> {
    let found = items(page, header)?;
    if !is_leaf {
        let children = found.into_iter();
        let children = children.map(|(start, end)| (length(start, end), page.block_id(start)));
        return Ok(GinPage::EntryInner(linked(page, children.collect())));
    }
    let mut leaf = Vec::with_capacity(found.len());
    for (start, end) in found {
        let (first, count) = (page.block_id(start), page.u16(start + 4));
        let posting = if count == GIN_TREE_POSTING {
            Posting::Tree(first)
        } else {
            Posting::List(list_of(page, (start, end), first, count)?)
        };
        leaf.push(LeafEntry {
            bytes: length(start, end),
            posting,
        });
    }
    Ok(GinPage::EntryLeaf(linked(page, leaf)))
}

/// The list behind an entry's key.
fn list_of(
    page: &PageBytes<'_>,
    (start, end): (usize, usize),
    first: u32,
    count: u16,
) -> Result<Vec<HeapTid>, DecodeError> {
    if first & ITUP_COMPRESSED == 0 {
        return Err(page.wrong(start, "t_tid", first, "the mark of a packed list"));
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    let offset = (first & !ITUP_COMPRESSED) as usize;
    let wrong = || {
        let expected = format!("the offset of a list of {count} within {}", end - start);
        page.wrong(start, "t_tid", offset as u64, expected)
    };
    if offset > end - start {
        return Err(wrong());
    }
    let bytes = page.slice(start + offset, end - start - offset);
    let (tids, _) = unpacked(bytes).ok_or_else(wrong)?;
    if tids.len() != usize::from(count) {
        return Err(wrong());
    }
    Ok(tids.into_iter().map(heap_tid).collect())
}

const fn heap_tid((block, offset): (BlockNumber, OffsetNumber)) -> HeapTid {
    HeapTid { block, offset }
}

fn posting_items(
    page: &PageBytes<'_>,
    header: &PageHeader,
) -> Result<Vec<(u32, HeapTid)>, DecodeError> {
    let count = usize::from(page.u16(SPECIAL + 4));
    let size = SIZE_OF_POSTING_ITEM as usize;
    if DATA + count * size > usize::from(header.pd_upper) {
        let most = (usize::from(header.pd_upper) - DATA) / size;
        return Err(page.wrong(
            SPECIAL + 4,
            "maxoff",
            count as u64,
            format!("at most {most}"),
        ));
    }
    let places = (0..count).map(|number| DATA + number * size);
    Ok(places
        .map(|at| (page.block_id(at), tid_at(page, at + 4)))
        .collect())
}

fn lists(page: &PageBytes<'_>, header: &PageHeader) -> Result<Vec<PostingList>, DecodeError> {
    let end = usize::from(header.pd_lower);
    let mut at = DATA;
    let mut found = Vec::new();
    while at < end {
        let Some((tids, bytes)) = unpacked(page.slice(at, end - at)) else {
            let expected = format!("a list that ends before {end}");
            return Err(page.wrong(at, "nbytes", page.u16((at + 6).min(SPECIAL)), expected));
        };
        at += bytes;
        let tids = tids.into_iter().map(heap_tid).collect();
        found.push(PostingList { bytes, tids });
    }
    Ok(found)
}
