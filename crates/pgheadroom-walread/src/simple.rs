//! Records of the few forms that most records have, summed without being taken apart.
//!
//! ```text
//! header 24 | id 0, flags, data length 4 | relation 12 | block 4 | 255, main length 2 |
//!   data | main
//! header 24 | 255, main length 2 | main                         (the end of a transaction)
//! ```
//!
//! One block without an image, short main data, and nothing else to note: cause and type follow
//! from the header, and the whole record belongs to one relation. So it is enough to add to one
//! pair of numbers, kept for the bytes that say all this. Records with the same bytes there need no
//! other look than at their lengths; what the bytes mean is found out when a pair is taken, and
//! when it gives way.

use crate::cause::Cause;
use crate::format::{Major, RECORD_HEADER_BYTES};
use crate::memo::{DELETE_MAIN_BYTES, PRUNE_HAS_FREEZE_PLANS, UPDATE_MAIN_BYTES, VISIBILITY_MAP};
use crate::record::RelFile;
use crate::rmgr::Rmgr;
use crate::sums::Moment;

/// Pairs at a time: a table and its indexes take some ten. A power of two; 12 kB in all.
const SLOTS: usize = 256;
const SLOT_SHIFT: u32 = 64 - SLOTS.ilog2();
/// Sums that wait to be asked for. Arbitrary.
const GIVEN_WAY_MOST: usize = 1024;

/// Where the parts of a record are; see above.
const INFO_AT: usize = 16;
const RMGR_AT: usize = 17;
const BLOCK_AT: usize = RECORD_HEADER_BYTES;
const RELATION_AT: usize = BLOCK_AT + 4;
const MAIN_HEADER_AT: usize = RELATION_AT + 16;
const ONE_BLOCK_BYTES: usize = MAIN_HEADER_AT + 2;
const NO_BLOCK_BYTES: usize = RECORD_HEADER_BYTES + 2;
/// Source: `XLR_BLOCK_ID_DATA_SHORT`, `BKPBLOCK_*`, src/include/access/xlogrecord.h.
const SHORT_MAIN: u8 = 255;
const FORK_MASK: u8 = 0x0F;
const HAS_IMAGE: u8 = 0x10;
const HAS_DATA: u8 = 0x20;
const SAME_REL: u8 = 0x80;

/// What a kind of record with one block has to look like beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    /// Longest main data: more hold old rows, which are a memo.
    main_most: u8,
    /// Where the main data have flags, and which of them may not be set.
    flags_at: u8,
    flags_none: u8,
}

impl Form {
    fn of(major: Major, rmgr: u8, index: u8) -> Option<Self> {
        let any = Self {
            main_most: u8::MAX,
            flags_at: 0,
            flags_none: 0,
        };
        let at_most = |bytes: u32| Self {
            main_most: u8::try_from(bytes).unwrap_or(u8::MAX),
            ..any
        };
        match (Rmgr::of(rmgr), index & 0x7) {
            // With one block an UPDATE stays on its page.
            (Rmgr::Heap, 0x2 | 0x4) => Some(at_most(UPDATE_MAIN_BYTES)),
            (Rmgr::Heap, 0x1) => Some(at_most(DELETE_MAIN_BYTES)),
            (Rmgr::Heap2, 0x1..=0x3) if major >= Major::V17 => Some(Self {
                flags_at: u8::from(major < Major::V19),
                flags_none: PRUNE_HAS_FREEZE_PLANS,
                ..any
            }),
            (Rmgr::Heap | Rmgr::Heap2 | Rmgr::Btree, _) => Some(any),
            _ => None,
        }
    }
}

/// The bytes that say what a record with one block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    /// `xl_info`, `xl_rmid`, the block's id and flags, the main data's id and length.
    what: u64,
    /// Tablespace and database.
    place: u64,
    relfilenode: u32,
}

impl Key {
    /// Of no record: what it is takes six bytes.
    const NONE: Self = Self {
        what: u64::MAX,
        place: 0,
        relfilenode: 0,
    };

    #[inline]
    fn of(head: &[u8; ONE_BLOCK_BYTES]) -> Self {
        let two = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let four =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        Self {
            what: two(INFO_AT) | two(BLOCK_AT) << 16 | two(MAIN_HEADER_AT) << 32,
            place: u64::from(four(RELATION_AT)) | u64::from(four(RELATION_AT + 4)) << 32,
            relfilenode: four(RELATION_AT + 8),
        }
    }

    #[inline]
    const fn slot(&self) -> usize {
        let mixed =
            (self.what ^ (self.relfilenode as u64) << 8).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> SLOT_SHIFT) as usize
    }

    fn byte(&self, at: usize) -> u8 {
        self.what.to_le_bytes()[at]
    }

    /// Resource manager, and the upper half of `xl_info`.
    fn kind(&self) -> (u8, u8) {
        (self.byte(1), self.byte(0) >> 4)
    }

    fn relation(&self) -> RelFile {
        let [a, b, c, d, e, f, g, h] = self.place.to_le_bytes();
        RelFile {
            tablespace: u32::from_le_bytes([a, b, c, d]),
            database: u32::from_le_bytes([e, f, g, h]),
            relfilenode: self.relfilenode,
        }
    }

    /// What records with these bytes have to look like beside; None if they are taken apart.
    fn form(&self, major: Major) -> Option<Form> {
        let (id, flags) = (self.byte(2), self.byte(3));
        let (main_id, main_bytes) = (self.byte(4), self.byte(5));
        let (rmgr, index) = self.kind();
        let form = Form::of(major, rmgr, index)?;
        // A memo: no server prunes a map alone.
        let is_map = major >= Major::V19
            && form.flags_none == PRUNE_HAS_FREEZE_PLANS
            && flags & FORK_MASK == VISIBILITY_MAP;
        let is_simple = id == 0
            && flags & (HAS_IMAGE | SAME_REL) == 0
            && main_id == SHORT_MAIN
            && main_bytes > form.flags_at
            && main_bytes <= form.main_most
            && !is_map;
        is_simple.then_some(form)
    }
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    key: Key,
    flags_at: u8,
    flags_none: u8,
    records: u64,
    bytes: u64,
}

const FREE: Slot = Slot {
    key: Key::NONE,
    flags_at: 0,
    flags_none: 0,
    records: 0,
    bytes: 0,
};

/// What was summed of one relation and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
    /// None of records without a block.
    pub relation: Option<RelFile>,
    pub cause: Cause,
    /// Resource manager, and the upper half of `xl_info`.
    pub kind: (u8, u8),
    pub records: u64,
    pub bytes: u64,
}

/// What came of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It has none of the forms.
    No,
    /// It is summed.
    Yes,
    /// It is summed, and ended a transaction at this time.
    Ended(Moment),
}

/// The sums.
pub(crate) struct Simple {
    major: Major,
    slots: Box<[Slot; SLOTS]>,
    /// Records and bytes of ends of transactions, by the upper half of `xl_info`.
    ends: [(u64, u64); 16],
    given_way: Vec<Sum>,
}

impl Simple {
    pub fn new(major: Major) -> Self {
        Self {
            major,
            slots: Box::new([FREE; SLOTS]),
            ends: [(0, 0); 16],
            given_way: Vec::new(),
        }
    }

    /// Sums a record if it has one of the forms; the checksum holds.
    #[inline]
    pub fn take(&mut self, record: &[u8]) -> Taken {
        let Some(head) = record.first_chunk::<ONE_BLOCK_BYTES>() else {
            return self.take_end(record);
        };
        if head[BLOCK_AT] == SHORT_MAIN {
            return self.take_end(record);
        }
        let key = Key::of(head);
        let data_bytes = u16::from_le_bytes([head[BLOCK_AT + 2], head[BLOCK_AT + 3]]);
        let main_at = ONE_BLOCK_BYTES + usize::from(data_bytes);
        let adds_up = main_at + usize::from(head[MAIN_HEADER_AT + 1]) == record.len();
        let has_data = head[BLOCK_AT + 1] & HAS_DATA != 0;
        if !adds_up || has_data != (data_bytes > 0) {
            return Taken::No;
        }
        let mut slot = &mut self.slots[key.slot()];
        if slot.key != key {
            if !self.make_room(key) {
                return Taken::No;
            }
            slot = &mut self.slots[key.slot()];
        }
        let flags = record.get(main_at + usize::from(slot.flags_at)).copied();
        if flags.unwrap_or(u8::MAX) & slot.flags_none != 0 {
            return Taken::No;
        }
        slot.records += 1;
        slot.bytes += record.len() as u64;
        Taken::Yes
    }

    /// Source: `xl_xact_commit.xact_time`, `xl_xact_abort.xact_time`, src/include/access/xact.h.
    #[inline]
    fn take_end(&mut self, record: &[u8]) -> Taken {
        let Some((head, main)) = record.split_first_chunk::<NO_BLOCK_BYTES>() else {
            return Taken::No;
        };
        let index = head[INFO_AT] >> 4;
        let is_end = Rmgr::of(head[RMGR_AT]) == Rmgr::Transaction
            && matches!(index & 0x7, 0 | 2 | 3 | 4)
            && head[BLOCK_AT] == SHORT_MAIN
            && usize::from(head[BLOCK_AT + 1]) == main.len();
        let (true, Some(time)) = (is_end, main.first_chunk()) else {
            return Taken::No;
        };
        let sum = &mut self.ends[usize::from(index)];
        sum.0 += 1;
        sum.1 += record.len() as u64;
        Taken::Ended(Moment::from_le_bytes(*time))
    }

    /// Gives records with these bytes their slot; false if they are taken apart.
    #[cold]
    fn make_room(&mut self, key: Key) -> bool {
        let Some(form) = key.form(self.major) else {
            return false;
        };
        if self.given_way.len() >= GIVEN_WAY_MOST {
            return false;
        }
        let now = Slot {
            key,
            flags_at: form.flags_at,
            flags_none: form.flags_none,
            ..FREE
        };
        let before = std::mem::replace(&mut self.slots[key.slot()], now);
        self.give_way(before);
        true
    }

    /// Whether it makes no more room before it is asked for what it has.
    pub fn is_full(&self) -> bool {
        self.given_way.len() >= GIVEN_WAY_MOST
    }

    /// Everything that was summed since it was asked for last.
    pub fn settle(&mut self) -> Vec<Sum> {
        let slots = std::mem::replace(&mut self.slots, Box::new([FREE; SLOTS]));
        for slot in *slots {
            self.give_way(slot);
        }
        let ends = std::mem::take(&mut self.ends);
        for (index, (records, bytes)) in (0_u8..).zip(ends) {
            let rmgr = Rmgr::Transaction as u8;
            if records > 0 {
                self.given_way.push(Sum {
                    relation: None,
                    cause: Cause::of_kind(self.major, rmgr, index),
                    kind: (rmgr, index),
                    records,
                    bytes,
                });
            }
        }
        std::mem::take(&mut self.given_way)
    }

    fn give_way(&mut self, slot: Slot) {
        if slot.records == 0 {
            return;
        }
        let (rmgr, index) = slot.key.kind();
        self.given_way.push(Sum {
            relation: Some(slot.key.relation()),
            cause: Cause::of_kind(self.major, rmgr, index),
            kind: (rmgr, index),
            records: slot.records,
            bytes: slot.bytes,
        });
    }
}
