//! A heap page: line pointers, and of each tuple its header.
//!
//! Source: src/include/access/htup_details.h (REL_15_STABLE to REL_18_STABLE).

use crate::align::MAXIMUM_ALIGNOF;
use crate::decode::{DecodeError, ItemId, LpFlags, PageBytes, PageHeader, item_ids};
use crate::flags::{
    HEAP_HOT_UPDATED, HEAP_KEYS_UPDATED, HEAP_NATTS_MASK, HEAP_ONLY_TUPLE, HEAP_XMAX_COMMITTED,
    HEAP_XMAX_EXCL_LOCK, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMAX_KEYSHR_LOCK,
    HEAP_XMAX_LOCK_ONLY, HEAP_XMIN_COMMITTED, HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};
use crate::page::{MAX_HEAP_TUPLES_PER_PAGE, SIZE_OF_HEAP_TUPLE_HEADER};
use crate::{BlockNumber, OffsetNumber};

/// A heap page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapPage {
    /// Its header; `None` when the page was never initialised.
    pub header: Option<PageHeader>,
    /// Its line pointers; number 1 comes first.
    pub items: Vec<HeapItem>,
}

/// A line pointer of a heap page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapItem {
    /// Free for a new tuple.
    Unused,
    /// Points to a tuple.
    Normal(HeapTuple),
    /// Leads to a heap-only tuple of this page.
    Redirect(OffsetNumber),
    /// Without tuple, but index entries may point here.
    Dead,
}

/// A tuple's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapTuple {
    /// Its length, not rounded.
    pub lp_len: u16,
    /// Transaction that made it, as stored.
    pub xmin: u32,
    /// Transaction or multixact that replaced, removed or locked it, as stored.
    pub xmax: u32,
    /// Block of the next version.
    pub ctid_block: BlockNumber,
    /// Its line pointer there.
    pub ctid_offset: OffsetNumber,
    /// Flags and hint bits.
    pub infomask: u16,
    /// Number of attributes and further flags.
    pub infomask2: u16,
    /// Where its user data begin.
    pub hoff: u8,
}

impl HeapTuple {
    /// Attributes that are physically there (`HeapTupleHeaderGetNatts`).
    #[must_use]
    pub const fn natts(&self) -> u16 {
        self.infomask2 & HEAP_NATTS_MASK
    }

    /// Whether no index entry points here (`HeapTupleHeaderIsHeapOnly`).
    #[must_use]
    pub const fn is_heap_only(&self) -> bool {
        self.infomask2 & HEAP_ONLY_TUPLE != 0
    }

    /// The flag `HEAP_HOT_UPDATED` alone; PostgreSQL also asks that xmax is valid.
    #[must_use]
    pub const fn is_hot_updated(&self) -> bool {
        self.infomask2 & HEAP_HOT_UPDATED != 0
    }

    /// Whether the key columns changed or the row was deleted.
    #[must_use]
    pub const fn is_keys_updated(&self) -> bool {
        self.infomask2 & HEAP_KEYS_UPDATED != 0
    }

    /// Whether xmax only locked the row.
    ///
    /// Source: `HEAP_XMAX_IS_LOCKED_ONLY`, src/include/access/htup_details.h.
    #[must_use]
    pub const fn is_locked_only(&self) -> bool {
        const LOCK_MASK: u16 = HEAP_XMAX_KEYSHR_LOCK | HEAP_XMAX_EXCL_LOCK;
        self.infomask & HEAP_XMAX_LOCK_ONLY != 0
            || self.infomask & (HEAP_XMAX_IS_MULTI | LOCK_MASK) == HEAP_XMAX_EXCL_LOCK
    }

    /// Whether xmax is a multixact.
    #[must_use]
    pub const fn is_multi(&self) -> bool {
        self.infomask & HEAP_XMAX_IS_MULTI != 0
    }

    /// Whether the row is frozen: its inserter is known to everyone for ever.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.infomask & HEAP_XMIN_FROZEN == HEAP_XMIN_FROZEN
    }

    /// The hint that the inserter committed; also set on frozen rows.
    #[must_use]
    pub const fn is_xmin_committed(&self) -> bool {
        self.infomask & HEAP_XMIN_COMMITTED != 0
    }

    /// The hint that the inserter was rolled back; not set on frozen rows.
    #[must_use]
    pub const fn is_xmin_invalid(&self) -> bool {
        self.infomask & HEAP_XMIN_INVALID != 0 && !self.is_frozen()
    }

    /// The hint that xmax committed.
    #[must_use]
    pub const fn is_xmax_committed(&self) -> bool {
        self.infomask & HEAP_XMAX_COMMITTED != 0
    }

    /// That there is no xmax, or the hint that it was rolled back.
    #[must_use]
    pub const fn is_xmax_invalid(&self) -> bool {
        self.infomask & HEAP_XMAX_INVALID != 0
    }
}

impl HeapPage {
    /// Reads a page.
    ///
    /// # Errors
    /// [`DecodeError`] when the bytes are not a heap page.
    pub fn decode(blkno: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        let page = PageBytes::new(blkno, bytes)?;
        let Some(header) = PageHeader::read(&page)? else {
            return Ok(Self {
                header: None,
                items: Vec::new(),
            });
        };
        if usize::from(header.pd_special) != bytes.len() {
            let expected = "8192 (a heap page has no special area)";
            return Err(page.wrong(16, "pd_special", header.pd_special, expected));
        }
        let ids = item_ids(&page, &header)?;
        if ids.len() > MAX_HEAP_TUPLES_PER_PAGE as usize {
            let most = 24 + 4 * MAX_HEAP_TUPLES_PER_PAGE;
            return Err(page.wrong(12, "pd_lower", header.pd_lower, format!("at most {most}")));
        }
        let items = ids.iter().map(|id| item(&page, &header, id, ids.len()));
        Ok(Self {
            header: Some(header),
            items: items.collect::<Result<_, _>>()?,
        })
    }
}

fn item(
    page: &PageBytes<'_>,
    header: &PageHeader,
    id: &ItemId,
    count: usize,
) -> Result<HeapItem, DecodeError> {
    match id.flags {
        LpFlags::Unused => Ok(HeapItem::Unused),
        LpFlags::Dead => Ok(HeapItem::Dead),
        LpFlags::Redirect if (1..=count).contains(&usize::from(id.off)) => {
            Ok(HeapItem::Redirect(OffsetNumber(id.off)))
        }
        LpFlags::Redirect => {
            let expected = format!("a line pointer of the page, 1 to {count}");
            Err(page.wrong(id.at, "lp_off", id.off, expected))
        }
        LpFlags::Normal => tuple(page, header, id).map(HeapItem::Normal),
    }
}

/// Source: `HeapTupleHeaderData`, src/include/access/htup_details.h.
fn tuple(page: &PageBytes<'_>, header: &PageHeader, id: &ItemId) -> Result<HeapTuple, DecodeError> {
    #[allow(clippy::cast_possible_truncation)] // 23
    let (start, _) = id.storage(page, header, SIZE_OF_HEAP_TUPLE_HEADER as u16)?;
    let hoff = page.slice(start + 22, 1)[0];
    let is_aligned = u32::from(hoff) % MAXIMUM_ALIGNOF == 0;
    if !is_aligned || u32::from(hoff) < SIZE_OF_HEAP_TUPLE_HEADER || u16::from(hoff) > id.len {
        let expected = format!(
            "a multiple of {MAXIMUM_ALIGNOF} from 24 to lp_len, {}",
            id.len
        );
        return Err(page.wrong(start + 22, "t_hoff", hoff, expected));
    }
    let (block, offset) = page.tid(start + 12);
    Ok(HeapTuple {
        lp_len: id.len,
        xmin: page.u32(start),
        xmax: page.u32(start + 4),
        ctid_block: BlockNumber(block),
        ctid_offset: OffsetNumber(offset),
        infomask: page.u16(start + 20),
        infomask2: page.u16(start + 18),
        hoff,
    })
}
