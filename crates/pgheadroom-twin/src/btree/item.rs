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

impl PostingList {
    /// The TIDs.
    #[inline]
    pub fn tids(&self) -> &[Tid] {
        &self.tids
    }

    /// Puts a TID into the middle and takes out the last one, so that the list stays as long as it
    /// was.
    ///
    /// Source: `_bt_swap_posting`, src/backend/access/nbtree/nbtdedup.c (REL_18_STABLE).
    pub fn swap(&mut self, position: usize, tid: Tid) -> Tid {
        let tids = &mut self.tids;
        assert!(position > 0 && position < tids.len(), "inside the list");
        let last = tids.pop().expect("two TIDs at least");
        tids.insert(position, tid);
        last
    }
}

/// What nearly all leaf tuples of a page have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    /// Which sizes the tuple has.
    pub shape: ShapeId,
    /// Aligned size on the page, without its line pointer.
    pub bytes: u16,
    /// Key columns that a pivot tuple kept; all those of a leaf tuple.
    pub kept_columns: u8,
}

/// An entry without its key and its posting list.
///
/// | entry | block, offset | child | posting |
/// | --- | --- | --- | --- |
/// | leaf tuple | its TID | 0 | none |
/// | posting list | its first TID | 0 | all its TIDs |
/// | pivot tuple | the TID that truncation kept, else offset 0 | the page below | none |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub block: u32,
    pub offset: u16,
    pub is_dead: bool,
    pub form: Form,
    pub child: u32,
}

/// An entry as its page has it, to be read. How a page keeps it is `page`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    pub(super) head: Head,
    pub(super) posting: Option<&'a PostingList>,
}

/// An entry on its way to a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnedItem {
    pub(super) head: Head,
    pub(super) posting: Option<Box<PostingList>>,
}

impl OwnedItem {
    /// A leaf tuple of `bytes` bytes.
    pub fn leaf(tid: Tid, shape: ShapeId, bytes: u16, columns: u8) -> Self {
        let form = Form {
            shape,
            bytes,
            kept_columns: columns,
        };
        Self {
            head: Head {
                block: tid.block.0,
                offset: tid.offset.0,
                is_dead: false,
                form,
                child: 0,
            },
            posting: None,
        }
    }

    /// A pivot tuple.
    pub fn pivot(
        child: BlockNumber,
        tid: Option<Tid>,
        shape: ShapeId,
        bytes: u16,
        kept_columns: u8,
    ) -> Self {
        let (block, offset) = tid.map_or((0, 0), |tid| (tid.block.0, tid.offset.0));
        let form = Form {
            shape,
            bytes,
            kept_columns,
        };
        Self {
            head: Head {
                block,
                offset,
                is_dead: false,
                form,
                child: child.0,
            },
            posting: None,
        }
    }

    /// A tuple like `base` that holds these TIDs: a posting list, or a plain one if it is one TID.
    ///
    /// Source: `_bt_form_posting`, src/backend/access/nbtree/nbtdedup.c (REL_18_STABLE).
    pub fn with_tids(base: Item<'_>, tids: Vec<Tid>) -> Self {
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

    /// The same, to be read.
    pub fn as_ref(&self) -> Item<'_> {
        Item {
            head: self.head,
            posting: self.posting.as_deref(),
        }
    }

    /// Aligned size on the page, without its line pointer.
    pub fn bytes(&self) -> u32 {
        u32::from(self.head.form.bytes)
    }

    pub fn set_child(&mut self, child: BlockNumber) {
        self.head.child = child.0;
    }

    pub fn mark_dead(&mut self) {
        self.head.is_dead = true;
    }
}

impl<'a> Item<'a> {
    /// A copy, to be put on another page.
    pub(crate) fn to_owned(self) -> OwnedItem {
        OwnedItem {
            head: self.head,
            posting: self.posting.cloned().map(Box::new),
        }
    }

    /// The TID; of a posting list the first one.
    ///
    /// Source: `BTreeTupleGetHeapTID`, src/include/access/nbtree.h.
    #[must_use]
    #[inline]
    pub fn tid(self) -> Option<Tid> {
        (self.head.offset != 0).then_some(Tid {
            block: BlockNumber(self.head.block),
            offset: OffsetNumber(self.head.offset),
        })
    }

    /// The TID of a leaf tuple, which always has one.
    #[inline]
    pub(crate) fn first_tid(self) -> Tid {
        self.tid().expect("a leaf tuple has a TID")
    }

    /// The last TID. Source: `BTreeTupleGetMaxHeapTID`, src/include/access/nbtree.h.
    #[must_use]
    pub fn last_tid(self) -> Option<Tid> {
        match self.posting {
            Some(posting) => posting.tids.last().copied(),
            None => self.tid(),
        }
    }

    /// TIDs of a leaf tuple, in order.
    #[must_use]
    pub fn tids(self) -> Vec<Tid> {
        match self.posting {
            Some(posting) => posting.tids.clone(),
            None => self.tid().into_iter().collect(),
        }
    }

    /// The same, one after the other.
    pub fn each_tid(self) -> impl Iterator<Item = Tid> + 'a {
        let listed = self.posting().unwrap_or_default();
        let alone = self.tid().filter(|_| !self.is_posting());
        alone.into_iter().chain(listed.iter().copied())
    }

    /// The TIDs of a posting list.
    #[inline]
    pub(crate) fn posting(self) -> Option<&'a [Tid]> {
        self.posting.map(|posting| posting.tids.as_slice())
    }

    /// The TID of this number, from 0.
    pub(crate) fn tid_at(self, number: usize) -> Tid {
        match self.posting() {
            Some(tids) => tids[number],
            None => self.first_tid(),
        }
    }

    /// Number of TIDs.
    #[inline]
    pub(crate) fn tid_count(self) -> usize {
        self.posting().map_or(1, <[Tid]>::len)
    }

    /// Whether this is a posting list.
    #[must_use]
    #[inline]
    pub const fn is_posting(self) -> bool {
        self.posting.is_some()
    }

    /// Aligned size on the page, without its line pointer.
    #[must_use]
    #[inline]
    pub fn bytes(self) -> u32 {
        u32::from(self.head.form.bytes)
    }

    /// Size of a leaf tuple without its posting list.
    ///
    /// Source: `BTreeTupleGetPostingOffset`, nbtree.h.
    #[inline]
    pub(crate) fn base_bytes(self) -> u16 {
        self.posting
            .map_or(self.head.form.bytes, |posting| posting.base_bytes)
    }

    /// Which sizes the tuple has.
    #[inline]
    pub(crate) const fn shape(self) -> ShapeId {
        self.head.form.shape
    }

    /// Key columns that a pivot tuple kept; all those of a leaf tuple.
    #[must_use]
    pub const fn kept_columns(self) -> u8 {
        self.head.form.kept_columns
    }

    /// The page below.
    #[must_use]
    #[inline]
    pub const fn child(self) -> BlockNumber {
        BlockNumber(self.head.child)
    }

    /// Whether a scan found every row version of this entry dead to all.
    #[must_use]
    #[inline]
    pub const fn is_dead(self) -> bool {
        self.head.is_dead
    }
}

/// Size of a posting list: the key and so many TIDs, aligned.
pub(crate) fn posting_bytes(base_bytes: u16, tids: usize) -> u16 {
    let tids = u32::try_from(tids).expect("TIDs of one page");
    let bytes = maxalign(u32::from(base_bytes) + tids * SIZE_OF_TID);
    u16::try_from(bytes).expect("a posting list is smaller than a page")
}
