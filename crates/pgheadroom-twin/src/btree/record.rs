//! What an action writes to the WAL, described so that full-page images can be added later.
//!
//! The tree knows what it changes but not which pages owe an image: that depends on checkpoints.
//! So it hands each record to a [`Sink`] with its blocks, and the sink decides.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::wal_record::{Image, Page, RecordSize};

use crate::btree::page::BtreePage;

/// Bytes between the metapage's data and its special area.
///
/// Source: `BTMetaPageData` (48 bytes), src/include/access/nbtree.h (REL_18_STABLE).
pub(crate) const METAPAGE_HOLE: u32 = 8192 - 24 - 48 - 16;

/// Kind of a B-tree record. Source: src/include/access/nbtxlog.h (REL_18_STABLE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// An entry in a leaf.
    InsertLeaf,
    /// An entry that splits a posting list.
    InsertPost,
    /// A downlink.
    InsertUpper,
    /// A downlink next to which the fast root moves up.
    InsertMeta,
    /// A split that leaves the new entry on the left.
    SplitL,
    /// A split that leaves the new entry on the right.
    SplitR,
    /// A new root.
    NewRoot,
    /// Dead entries removed by an insertion.
    Delete,
    /// Dead entries removed by VACUUM.
    Vacuum,
    /// Duplicates merged into posting lists.
    Dedup,
    /// First step of a page's deletion.
    MarkPageHalfdead,
    /// Second step.
    UnlinkPage,
    /// Second step, when the fast root moves down.
    UnlinkPageMeta,
    /// VACUUM's note in the metapage.
    MetaCleanup,
    /// A deleted page is used again.
    ReusePage,
}

impl RecordKind {
    /// All kinds, in order.
    pub(crate) const ALL: [Self; 15] = [
        Self::InsertLeaf,
        Self::InsertPost,
        Self::InsertUpper,
        Self::InsertMeta,
        Self::SplitL,
        Self::SplitR,
        Self::NewRoot,
        Self::Delete,
        Self::Vacuum,
        Self::Dedup,
        Self::MarkPageHalfdead,
        Self::UnlinkPage,
        Self::UnlinkPageMeta,
        Self::MetaCleanup,
        Self::ReusePage,
    ];
}

impl RecordKind {
    /// Its name in pg_waldump.
    ///
    /// Source: `btree_identify`, src/backend/access/rmgrdesc/nbtdesc.c.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InsertLeaf => "INSERT_LEAF",
            Self::InsertPost => "INSERT_POST",
            Self::InsertUpper => "INSERT_UPPER",
            Self::InsertMeta => "INSERT_META",
            Self::SplitL => "SPLIT_L",
            Self::SplitR => "SPLIT_R",
            Self::NewRoot => "NEWROOT",
            Self::Delete => "DELETE",
            Self::Vacuum => "VACUUM",
            Self::Dedup => "DEDUP",
            Self::MarkPageHalfdead => "MARK_PAGE_HALFDEAD",
            Self::UnlinkPage => "UNLINK_PAGE",
            Self::UnlinkPageMeta => "UNLINK_PAGE_META",
            Self::MetaCleanup => "META_CLEANUP",
            Self::ReusePage => "REUSE_PAGE",
        }
    }
}

/// A block that a record registers; it is dirty from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisteredBlock {
    /// The block of the index.
    pub block: BlockNumber,
    /// Bytes of data about it, which an image replaces.
    pub data_bytes: u32,
    /// Whether replay makes the page anew: then it never owes an image (`REGBUF_WILL_INIT`).
    pub will_init: bool,
    /// Bytes of the page between line pointers and items, after the change.
    pub hole_bytes: u32,
}

const NO_REGISTERED_BLOCK: RegisteredBlock = RegisteredBlock {
    block: BlockNumber(0),
    data_bytes: 0,
    will_init: false,
    hole_bytes: 0,
};

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Its kind.
    pub kind: RecordKind,
    main_bytes: u32,
    blocks: [RegisteredBlock; 5],
    block_count: usize,
}

impl Record {
    pub(crate) const fn new(kind: RecordKind, main_bytes: u32) -> Self {
        Self {
            kind,
            main_bytes,
            blocks: [NO_REGISTERED_BLOCK; 5],
            block_count: 0,
        }
    }

    fn add(mut self, block: RegisteredBlock) -> Self {
        self.blocks[self.block_count] = block;
        self.block_count += 1;
        self
    }

    /// Adds a page whose change is logged.
    pub(crate) fn change(self, block: BlockNumber, page: &BtreePage, data_bytes: u32) -> Self {
        self.add(RegisteredBlock {
            block,
            data_bytes,
            will_init: false,
            hole_bytes: page.exact_free_space(),
        })
    }

    /// Adds a page that replay makes anew.
    pub(crate) fn init(self, block: BlockNumber, page: &BtreePage, data_bytes: u32) -> Self {
        self.add(RegisteredBlock {
            block,
            data_bytes,
            will_init: true,
            hole_bytes: page.exact_free_space(),
        })
    }

    /// Adds the metapage, which replay always makes anew.
    pub(crate) fn metapage(self, data_bytes: u32) -> Self {
        self.add(RegisteredBlock {
            block: BlockNumber(0),
            data_bytes,
            will_init: true,
            hole_bytes: METAPAGE_HOLE,
        })
    }

    /// The blocks that it registers.
    #[must_use]
    pub fn blocks(&self) -> &[RegisteredBlock] {
        &self.blocks[..self.block_count]
    }

    /// `xl_tot_len`, where `image` says what is logged of each block.
    #[must_use]
    pub fn bytes(&self, mut image: impl FnMut(&RegisteredBlock) -> Page) -> u32 {
        self.blocks()
            .iter()
            .fold(
                RecordSize::with_main_data(self.main_bytes),
                |size, block| size.block(image(block), block.data_bytes),
            )
            .bytes()
    }

    /// `xl_tot_len` when no page owes an image.
    #[must_use]
    pub fn bytes_without_images(&self) -> u32 {
        self.bytes(|_| Page::Change)
    }
}

impl RegisteredBlock {
    /// The page's uncompressed image after the change.
    #[must_use]
    pub const fn image(&self) -> Image {
        Image::plain(self.hole_bytes)
    }
}

/// Who keeps account of what a tree writes.
pub trait Sink {
    /// A record, written in this order; its blocks are dirty.
    fn record(&mut self, record: &Record);

    /// A page changed without a record: an entry was marked dead.
    fn hint(&mut self, block: BlockNumber, hole_bytes: u32) {
        let _ = (block, hole_bytes);
    }

    /// A page of the index's free space map changed, also without a record.
    fn fsm_hint(&mut self, fsm_block: BlockNumber) {
        let _ = fsm_block;
    }
}

/// Records and bytes of each kind, without images.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordCounts {
    kinds: std::collections::BTreeMap<RecordKind, (u64, u64)>,
}

impl RecordCounts {
    /// Records and bytes of one kind.
    #[must_use]
    pub fn of(&self, kind: RecordKind) -> (u64, u64) {
        self.kinds.get(&kind).copied().unwrap_or_default()
    }

    /// All kinds that occurred, in the order of [`RecordKind`].
    pub fn iter(&self) -> impl Iterator<Item = (RecordKind, u64, u64)> {
        self.kinds
            .iter()
            .map(|(&kind, &(records, bytes))| (kind, records, bytes))
    }
}

impl Sink for RecordCounts {
    fn record(&mut self, record: &Record) {
        let (records, bytes) = self.kinds.entry(record.kind).or_default();
        *records += 1;
        *bytes += u64::from(record.bytes_without_images());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgheadroom_layout::PgVersion;
    use pgheadroom_layout::wal_record::{
        Split, btree_first_root, btree_insert_leaf, btree_insert_post, btree_insert_upper,
        btree_new_root, btree_split,
    };

    const BLOCK: BlockNumber = BlockNumber(1);

    /// Descriptions add up to what the layout says of each record, with and without images.
    #[test]
    fn descriptions_agree_with_the_layout() {
        let page = BtreePage::new(0, 1);
        let behaviour = PgVersion::new(18, 4).unwrap().behaviour();
        let insertion = |kind, bytes| Record::new(kind, 2).change(BLOCK, &page, bytes);
        let leaf = insertion(RecordKind::InsertLeaf, 16);
        for logged in [Page::Change, Page::Image(Image::plain(8152))] {
            assert_eq!(leaf.bytes(|_| logged), btree_insert_leaf(16, logged));
            let upper = insertion(RecordKind::InsertUpper, 16).change(BLOCK, &page, 0);
            let expected = btree_insert_upper(16, logged, logged);
            assert_eq!(upper.bytes(|_| logged), expected);
        }
        assert_eq!(leaf.blocks()[0].image(), Image::plain(8152));
        let post = insertion(RecordKind::InsertPost, 18).bytes_without_images();
        assert_eq!(post, btree_insert_post(16, Page::Change));
        let root = Record::new(RecordKind::NewRoot, 8).init(BLOCK, &page, 0);
        let first = root.metapage(28).bytes_without_images();
        assert_eq!(first, btree_first_root(&behaviour));
        let root = Record::new(RecordKind::NewRoot, 8).init(BLOCK, &page, 8 + 16);
        let second = root.change(BLOCK, &page, 0).metapage(28);
        let expected = btree_new_root(&behaviour, 16, Page::Change);
        assert_eq!(second.bytes_without_images(), expected);
        let split = Record::new(RecordKind::SplitL, 10)
            .change(BLOCK, &page, 16 + 16)
            .init(BLOCK, &page, 3000)
            .change(BLOCK, &page, 0);
        let expected = btree_split(&Split {
            high_key_bytes: 16,
            left_item_bytes: Some(16),
            right_items_bytes: 3000,
            left: Page::Change,
            right_sibling: Some(Page::Change),
            child: None,
        });
        assert_eq!(split.bytes_without_images(), expected);
    }
}
