//! Removing TIDs from a leaf, for whatever reason.

use pgheadroom_layout::BlockNumber;

use crate::btree::Btree;
use crate::btree::item::OwnedItem;
use crate::btree::record::{Record, RecordKind, Sink};
use crate::btree::slots::tid_of;
use crate::page::Tid;

/// A TID of a leaf, with the position of its item: one number, so that lists of them are sorted
/// fast, here in the order of TIDs.
///
/// ```text
/// | block 4 | offset number 2 | position 2 |
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate(u64);

impl Candidate {
    #[inline]
    pub fn new(tid_number: u64, position: usize) -> Self {
        debug_assert!(position < 1 << 16, "items of one page");
        Self(tid_number << 16 | position as u64)
    }

    #[inline]
    pub const fn tid(self) -> Tid {
        tid_of(self.0 >> 16)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // as they were put together
    pub const fn position(self) -> usize {
        self.0 as u16 as usize
    }

    /// It is to go.
    #[inline]
    pub const fn doomed(self) -> Doomed {
        Doomed(self.0.rotate_right(16))
    }
}

/// The same in the order of the page, of a TID that is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Doomed(u64);

impl Doomed {
    #[inline]
    pub const fn tid(self) -> Tid {
        tid_of(self.0)
    }

    #[inline]
    pub const fn position(self) -> usize {
        (self.0 >> 48) as usize
    }
}

/// What a removal does to items.
#[derive(Debug, Default)]
struct Removal {
    whole: Vec<usize>,
    shortened: Vec<(usize, OwnedItem)>,
    /// TIDs that shortened lists lose.
    tids: u32,
}

impl Btree {
    /// Removes TIDs, which come in the order of the page, and logs it.
    ///
    /// Source: `_bt_delitems_delete_check`, `_bt_delitems_delete` and `_bt_delitems_vacuum`,
    /// src/backend/access/nbtree/nbtpage.c (REL_18_STABLE).
    pub(super) fn remove_tids(
        &mut self,
        block: BlockNumber,
        doomed: &[Doomed],
        kind: RecordKind,
        sink: &mut impl Sink,
    ) {
        if doomed.is_empty() {
            return;
        }
        let removal = self.plan_removal(block, doomed);
        let main_bytes = match kind {
            RecordKind::Vacuum => 4,
            _ => self.behaviour.btree_delete_main_bytes,
        };
        let data_bytes =
            2 * count(&removal.whole) + 4 * count(&removal.shortened) + 2 * removal.tids;
        let page = self.page_mut(block);
        for (position, item) in removal.shortened {
            page.replace(position, item);
        }
        page.remove_many(&removal.whole);
        let record = Record::new(kind, main_bytes).change(block, self.page(block), data_bytes);
        self.log(sink, &record);
    }

    fn plan_removal(&self, block: BlockNumber, doomed: &[Doomed]) -> Removal {
        let page = self.page(block);
        let mut removal = Removal::default();
        for group in doomed.chunk_by(|one, other| one.position() == other.position()) {
            let position = group[0].position();
            let item = page.item(position);
            if group.len() == item.tid_count() {
                removal.whole.push(position);
                continue;
            }
            let mut gone = group.iter().map(|one| one.tid()).peekable();
            let mut left = Vec::with_capacity(item.tid_count() - group.len());
            left.extend(item.each_tid().filter(|tid| gone.next_if_eq(tid).is_none()));
            assert!(gone.peek().is_none(), "TIDs to remove are in the list");
            // A list that is dead stays so, should a part of it be removed by VACUUM.
            let mut shorter = OwnedItem::with_tids(item, left);
            if item.is_dead() {
                shorter.mark_dead();
            }
            removal.shortened.push((position, shorter));
            removal.tids += count(group);
        }
        removal
    }
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).expect("items of one page")
}
