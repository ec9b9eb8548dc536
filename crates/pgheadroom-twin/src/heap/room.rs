//! How much room a row asks for, on its page and on others.

use pgheadroom_layout::HeapFillfactor;
use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page::InsertTarget;

use crate::heap::Heap;
use crate::page::Tid;
use crate::rules::{Rule, on};

impl Heap {
    /// The rule of the version about rows that exceed the reserve.
    pub(super) fn insert_target(&self) -> InsertTarget {
        if on(Rule::NearlyEmptyPage) {
            self.behaviour.insert_target
        } else {
            InsertTarget::ReserveOrExtend
        }
    }

    /// The fillfactor that insertions honour.
    pub(super) fn insert_fillfactor(&self) -> HeapFillfactor {
        if on(Rule::FillfactorReserve) {
            self.fillfactor
        } else {
            HeapFillfactor::new(100).expect("the default fillfactor")
        }
    }

    /// Whether a new version of this length stays on the old one's page, which has so much room.
    ///
    /// Source: `heap_update`, src/backend/access/heap/heapam.c (REL_18_STABLE).
    pub(super) fn stays_on_page(&self, old: Tid, tuple_bytes: u16, free: u32) -> bool {
        let tuple_bytes = if on(Rule::GrownVersionNeedsMoreRoom) {
            tuple_bytes
        } else {
            let page = &self.pages[old.block.0 as usize];
            page.tuple(old.offset).map_or(tuple_bytes, |old| old.lp_len)
        };
        let reserve = if on(Rule::UpdateIgnoresFillfactor) {
            0
        } else {
            self.fillfactor.reserve_bytes()
        };
        maxalign(u32::from(tuple_bytes)) + reserve <= free
    }
}
