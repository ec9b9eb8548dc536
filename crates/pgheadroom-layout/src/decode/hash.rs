//! A hash index's page: the metapage, a bitmap, or a bucket's page with its entries.
//!
//! Source: src/include/access/hash.h, itup.h (REL_15_STABLE to REL_18_STABLE).

use crate::decode::btree::HeapTid;
use crate::decode::{DecodeError, LpFlags, PageBytes, PageHeader, item_ids};
use crate::hash_index::{
    BITMAP_BYTES, HASH_ENTRY_BYTES, HASHO_PAGE_ID, LH_BITMAP_PAGE, LH_BUCKET_PAGE, LH_META_PAGE,
    LH_OVERFLOW_PAGE, SIZE_OF_HASH_PAGE_OPAQUE,
};
use crate::page::{BLCKSZ, SIZE_OF_PAGE_HEADER};
use crate::{BlockNumber, OffsetNumber};

const PAGE_TYPE: u16 = LH_OVERFLOW_PAGE | LH_BUCKET_PAGE | LH_BITMAP_PAGE | LH_META_PAGE;
const INVALID_BLOCK: u32 = u32::MAX;
/// Where the special area begins.
const SPECIAL: usize = (BLCKSZ - SIZE_OF_HASH_PAGE_OPAQUE) as usize;
/// Where a page's contents begin, aligned.
const CONTENTS: usize = SIZE_OF_PAGE_HEADER as usize;
#[allow(clippy::cast_possible_truncation)] // 16
const ENTRY_BYTES: u16 = HASH_ENTRY_BYTES as u16;

/// A page of a hash index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HashPage {
    /// None yet, or free.
    Unused,
    /// Block 0.
    Meta(Metapage),
    /// Which overflow pages are free: numbers of the bits that are not set.
    Bitmap(Vec<u32>),
    /// A page of a bucket.
    Bucket(BucketPage),
}

/// The metapage.
///
/// Source: `HashMetaPageData`, src/include/access/hash.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metapage {
    /// Entries in the index, a whole number.
    pub ntuples: u64,
    /// Entries a bucket at which a further one is made.
    pub ffactor: u16,
    /// The last bucket.
    pub maxbucket: u32,
    /// `hashm_highmask`.
    pub highmask: u32,
    /// `hashm_lowmask`.
    pub lowmask: u32,
    /// The split point of the last bucket.
    pub ovflpoint: u32,
    /// The first overflow page that may be free.
    pub firstfree: u32,
}

/// A page of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketPage {
    /// The bucket.
    pub bucket: u32,
    /// The page before it; a bucket's first has none.
    pub previous: Option<u32>,
    /// The page behind it.
    pub next: Option<u32>,
    /// Hash codes and row versions, in their order.
    pub entries: Vec<(u32, HeapTid)>,
}

impl HashPage {
    /// Reads a page.
    ///
    /// # Errors
    /// [`DecodeError`] for bytes that are none of a hash index.
    pub fn decode(blkno: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        let page = PageBytes::new(blkno, bytes)?;
        let Some(header) = PageHeader::read(&page)? else {
            return Ok(Self::Unused);
        };
        let id = page.u16(SPECIAL + 14);
        if id != HASHO_PAGE_ID || usize::from(header.pd_special) != SPECIAL {
            let expected = format!("{HASHO_PAGE_ID}, as of hash indexes");
            return Err(page.wrong(SPECIAL + 14, "hasho_page_id", id, expected));
        }
        let kind = page.u16(SPECIAL + 12) & PAGE_TYPE;
        Ok(match kind {
            0 => Self::Unused,
            LH_META_PAGE => Self::Meta(Metapage::read(&page)),
            LH_BITMAP_PAGE => Self::Bitmap(free_bits(&page)),
            LH_OVERFLOW_PAGE | LH_BUCKET_PAGE => {
                Self::Bucket(BucketPage::read(&page, &header, kind)?)
            }
            _ => {
                let expected = "one of 0, 1, 2, 4 and 8";
                return Err(page.wrong(SPECIAL + 12, "hasho_flag", kind, expected));
            }
        })
    }
}

impl Metapage {
    fn read(page: &PageBytes<'_>) -> Self {
        let at = |bytes: usize| page.u32(CONTENTS + bytes);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as it is counted
        let ntuples = f64::from_bits(page.u64(CONTENTS + 8)) as u64;
        Self {
            ntuples,
            ffactor: page.u16(CONTENTS + 16),
            maxbucket: at(24),
            highmask: at(28),
            lowmask: at(32),
            ovflpoint: at(36),
            firstfree: at(40),
        }
    }
}

fn free_bits(page: &PageBytes<'_>) -> Vec<u32> {
    let bits = page.slice(CONTENTS, BITMAP_BYTES as usize).iter();
    let bits = bits.flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1));
    let numbered = (0..).zip(bits);
    numbered
        .filter(|(_, used)| !used)
        .map(|(bit, _)| bit)
        .collect()
}

impl BucketPage {
    fn read(page: &PageBytes<'_>, header: &PageHeader, kind: u16) -> Result<Self, DecodeError> {
        let block = |at: usize| Some(page.u32(SPECIAL + at)).filter(|at| *at != INVALID_BLOCK);
        let mut entries = Vec::new();
        for item in item_ids(page, header)? {
            if item.flags == LpFlags::Unused {
                return Err(page.wrong(item.at, "lp_flags", 0_u32, "an entry's"));
            }
            let (at, _) = item.storage(page, header, ENTRY_BYTES)?;
            let (block, offset) = page.tid(at);
            let tid = HeapTid {
                block: BlockNumber(block),
                offset: OffsetNumber(offset),
            };
            entries.push((page.u32(at + 8), tid));
        }
        Ok(Self {
            bucket: page.u32(SPECIAL + 8),
            // A bucket's first page has the number of buckets there.
            previous: block(0).filter(|_| kind == LH_OVERFLOW_PAGE),
            next: block(4),
            entries,
        })
    }
}
