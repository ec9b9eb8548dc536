//! Shares of bytes that matter to users beside the cause under which they count.

use crate::format::{Major, u16_at};
use crate::record::Record;
use crate::rmgr::Rmgr;

/// Source: `XLH_INSERT_CONTAINS_NEW_TUPLE`, `XLH_UPDATE_CONTAINS_OLD`, `XLH_DELETE_CONTAINS_OLD`,
/// `SizeOfHeapUpdate`, `SizeOfHeapDelete`, src/include/access/heapam_xlog.h.
const UPDATE_CONTAINS_OLD: u8 = 0x04 | 0x08;
const DELETE_CONTAINS_OLD: u8 = 0x02 | 0x04;
pub(crate) const UPDATE_MAIN_BYTES: u32 = 14;
pub(crate) const DELETE_MAIN_BYTES: u32 = 8;
/// Source: `XLHP_HAS_FREEZE_PLANS`; `xlhp_freeze_plan`.
pub(crate) const PRUNE_HAS_FREEZE_PLANS: u8 = 1 << 4;
const FREEZE_PLAN_BYTES: usize = 12;
pub(crate) const VISIBILITY_MAP: u8 = 2;

/// Bytes of each memo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memo {
    /// Freeze plans inside prune records (17 and later).
    pub freeze: u64,
    /// Blocks of the visibility map inside prune records (19), images included.
    pub visibility: u64,
    /// Old rows or keys of them, which UPDATE and DELETE log for logical decoding.
    pub logical_old_rows: u64,
    /// New rows that are logged although there is an image of their page, for logical decoding.
    pub logical_rows_beside_images: u64,
}

impl Memo {
    /// Names and bytes.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 4] {
        [
            ("freeze", self.freeze),
            ("visibility", self.visibility),
            ("logical_old_rows", self.logical_old_rows),
            (
                "logical_rows_beside_images",
                self.logical_rows_beside_images,
            ),
        ]
    }

    /// Adds another's bytes.
    pub fn merge(&mut self, other: &Self) {
        self.freeze += other.freeze;
        self.visibility += other.visibility;
        self.logical_old_rows += other.logical_old_rows;
        self.logical_rows_beside_images += other.logical_rows_beside_images;
    }

    /// Notes what a record has of these.
    pub fn note(&mut self, major: Major, record: &Record<'_>) {
        match (Rmgr::of(record.header.rmgr), record.info() >> 4 & 0x7) {
            (Rmgr::Heap, operation @ (0x0..=0x2 | 0x4)) => self.note_row(operation, record),
            (Rmgr::Heap2, 0x5) => self.note_beside_image(record),
            (Rmgr::Heap2, 0x1..=0x3) if major >= Major::V17 => self.note_prune(major, record),
            _ => {}
        }
    }

    fn note_row(&mut self, operation: u8, record: &Record<'_>) {
        // The flags lie behind old_offnum and, of UPDATE, old_infobits_set; of DELETE too.
        let main = record.main();
        let flags = main.get(7).copied().unwrap_or_default();
        let old = match operation {
            0x1 if flags & DELETE_CONTAINS_OLD != 0 => DELETE_MAIN_BYTES,
            0x2 | 0x4 if flags & UPDATE_CONTAINS_OLD != 0 => UPDATE_MAIN_BYTES,
            _ => record.main_bytes,
        };
        self.logical_old_rows += u64::from(record.main_bytes.saturating_sub(old));
        if operation != 0x1 {
            self.note_beside_image(record);
        }
    }

    fn note_beside_image(&mut self, record: &Record<'_>) {
        if let Some(block) = record.blocks.first()
            && block.image.is_some()
        {
            self.logical_rows_beside_images += u64::from(block.data_bytes);
        }
    }

    fn note_prune(&mut self, major: Major, record: &Record<'_>) {
        if major >= Major::V19 {
            self.visibility += record
                .blocks
                .iter()
                .filter(|block| block.fork == VISIBILITY_MAP)
                .map(|block| {
                    u64::from(block.header_bytes)
                        + u64::from(block.data_bytes)
                        + u64::from(block.image_bytes())
                })
                .sum::<u64>();
        }
        // 17 and 18: reason, flags; 19: flags of 16 bits.
        let place = usize::from(major < Major::V19);
        let flags = record.main().get(place).copied().unwrap_or_default();
        if flags & PRUNE_HAS_FREEZE_PLANS == 0 || record.blocks.is_empty() {
            return;
        }
        let data = record.block_data(0);
        if data.len() < 4 {
            return; // not there beside an image
        }
        let plans = usize::from(u16_at(data, 0));
        let Some(array) = data.get(4..4 + plans * FREEZE_PLAN_BYTES) else {
            return;
        };
        let rows: usize = array
            .chunks_exact(FREEZE_PLAN_BYTES)
            .map(|plan| usize::from(u16_at(plan, FREEZE_PLAN_BYTES - 2)))
            .sum();
        let bytes = 4 + array.len() + 2 * rows;
        self.freeze += bytes.min(data.len()) as u64;
    }
}
