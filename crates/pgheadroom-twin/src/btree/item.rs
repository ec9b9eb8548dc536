//! One entry of a B-tree page: a leaf tuple, a posting list, or a pivot.

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use crate::btree::key::ShapeId;
use crate::page::Tid;

/// Bytes of a heap TID. Source: `ItemPointerData`, src/include/storage/itemptr.h.
pub(crate) const SIZE_OF_TID: u32 = 6;

/// TIDs of one posting list, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PostingList {
    tids: Vec<Tid>,
    /// Size of the tuple without the list.
    base_bytes: u16,
}

/// An entry without its key, which the page keeps. 24 bytes, so that a page's entries take about
/// what they take on disk.
///
/// | entry | block, offset | child | posting |
/// | --- | --- | --- | --- |
/// | leaf tuple | its TID | 0 | none |
/// | posting list | its first TID | 0 | all its TIDs |
/// | pivot tuple | the TID that truncation kept, else offset 0 | the page below | none |
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    block: u32,
    offset: u16,
    bytes: u16,
    /// The lower two bytes of the shape, and the third.
    shape_low: u16,
    shape_high: u8,
    /// Columns kept, and [`DEAD`].
    kept_columns: u8,
    child: u32,
    posting: Option<Box<PostingList>>,
}

/// Beside the number of columns, of which an index has at most 32.
const DEAD: u8 = 0x80;

const _: () = assert!(size_of::<Item>() == 24);

impl Item {
    /// A leaf tuple of `bytes` bytes.
    pub(crate) fn leaf(tid: Tid, shape: ShapeId, bytes: u16, columns: u8) -> Self {
        Self {
            block: tid.block.0,
            offset: tid.offset.0,
            bytes,
            shape_low: low(shape),
            shape_high: high(shape),
            kept_columns: columns,
            child: 0,
            posting: None,
        }
    }

    /// A pivot tuple.
    pub(crate) fn pivot(
        child: BlockNumber,
        tid: Option<Tid>,
        shape: ShapeId,
        bytes: u16,
        kept_columns: u8,
    ) -> Self {
        let (block, offset) = tid.map_or((0, 0), |tid| (tid.block.0, tid.offset.0));
        Self {
            block,
            offset,
            bytes,
            shape_low: low(shape),
            shape_high: high(shape),
            kept_columns,
            child: child.0,
            posting: None,
        }
    }

    /// A tuple like `base` that holds these TIDs: a posting list, or a plain one if it is one TID.
    ///
    /// Source: `_bt_form_posting`, src/backend/access/nbtree/nbtdedup.c (REL_18_STABLE).
    pub(crate) fn with_tids(base: &Self, tids: Vec<Tid>) -> Self {
        let base_bytes = base.base_bytes();
        let bytes = if tids.len() > 1 {
            posting_bytes(base_bytes, tids.len())
        } else {
            base_bytes
        };
        let mut item = Self::leaf(tids[0], base.shape(), bytes, base.kept_columns());
        if tids.len() > 1 {
            item.posting = Some(Box::new(PostingList { tids, base_bytes }));
        }
        item
    }

    /// The TID; of a posting list the first one.
    ///
    /// Source: `BTreeTupleGetHeapTID`, src/include/access/nbtree.h.
    #[must_use]
    pub fn tid(&self) -> Option<Tid> {
        (self.offset != 0).then_some(Tid {
            block: BlockNumber(self.block),
            offset: OffsetNumber(self.offset),
        })
    }

    /// The TID of a leaf tuple, which always has one.
    pub(crate) fn first_tid(&self) -> Tid {
        self.tid().expect("a leaf tuple has a TID")
    }

    /// The last TID. Source: `BTreeTupleGetMaxHeapTID`, src/include/access/nbtree.h.
    #[must_use]
    pub fn last_tid(&self) -> Option<Tid> {
        match &self.posting {
            Some(posting) => posting.tids.last().copied(),
            None => self.tid(),
        }
    }

    /// TIDs of a leaf tuple, in order.
    #[must_use]
    pub fn tids(&self) -> Vec<Tid> {
        match &self.posting {
            Some(posting) => posting.tids.clone(),
            None => self.tid().into_iter().collect(),
        }
    }

    /// The same, one after the other.
    pub fn each_tid(&self) -> impl Iterator<Item = Tid> + '_ {
        let listed = self.posting().unwrap_or_default();
        let alone = self.tid().filter(|_| !self.is_posting());
        alone.into_iter().chain(listed.iter().copied())
    }

    /// The TIDs of a posting list.
    pub(crate) fn posting(&self) -> Option<&[Tid]> {
        self.posting.as_ref().map(|posting| posting.tids.as_slice())
    }

    /// The TID of this number, from 0.
    pub(crate) fn tid_at(&self, number: usize) -> Tid {
        match self.posting() {
            Some(tids) => tids[number],
            None => self.first_tid(),
        }
    }

    /// Number of TIDs.
    pub(crate) fn tid_count(&self) -> usize {
        self.posting().map_or(1, <[Tid]>::len)
    }

    /// Whether this is a posting list.
    #[must_use]
    pub const fn is_posting(&self) -> bool {
        self.posting.is_some()
    }

    /// Puts a TID into the middle of a posting list and takes out the last one, so that the list
    /// stays as long as it was.
    ///
    /// Source: `_bt_swap_posting`, src/backend/access/nbtree/nbtdedup.c (REL_18_STABLE).
    pub(crate) fn swap_into_posting(&mut self, position: usize, tid: Tid) -> Tid {
        let posting = self.posting.as_mut().expect("a posting list");
        let tids = &mut posting.tids;
        assert!(position > 0 && position < tids.len(), "inside the list");
        let last = tids.pop().expect("two TIDs at least");
        tids.insert(position, tid);
        last
    }

    /// Aligned size on the page, without its line pointer.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        u32::from(self.bytes)
    }

    /// Size of a leaf tuple without its posting list.
    ///
    /// Source: `BTreeTupleGetPostingOffset`, nbtree.h.
    pub(crate) fn base_bytes(&self) -> u16 {
        self.posting
            .as_ref()
            .map_or(self.bytes, |posting| posting.base_bytes)
    }

    /// Which sizes the tuple has.
    #[inline]
    pub(crate) const fn shape(&self) -> ShapeId {
        ShapeId(self.shape_low as u32 | (self.shape_high as u32) << 16)
    }

    /// Key columns that a pivot tuple kept; all those of a leaf tuple.
    #[must_use]
    pub const fn kept_columns(&self) -> u8 {
        self.kept_columns & !DEAD
    }

    /// The page below.
    #[must_use]
    pub const fn child(&self) -> BlockNumber {
        BlockNumber(self.child)
    }

    pub(crate) fn set_child(&mut self, child: BlockNumber) {
        self.child = child.0;
    }

    /// Whether a scan found every row version of this entry dead to all.
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        self.kept_columns & DEAD != 0
    }

    pub(crate) fn mark_dead(&mut self) {
        self.kept_columns |= DEAD;
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // the lower two bytes
const fn low(shape: ShapeId) -> u16 {
    shape.0 as u16
}

/// The third byte; there is no fourth (`SHAPES_MAX`).
#[inline]
#[allow(clippy::cast_possible_truncation)] // below 2^24
const fn high(shape: ShapeId) -> u8 {
    (shape.0 >> 16) as u8
}

/// Size of a posting list: the key and so many TIDs, aligned.
pub(crate) fn posting_bytes(base_bytes: u16, tids: usize) -> u16 {
    let tids = u32::try_from(tids).expect("TIDs of one page");
    let bytes = maxalign(u32::from(base_bytes) + tids * SIZE_OF_TID);
    u16::try_from(bytes).expect("a posting list is smaller than a page")
}
