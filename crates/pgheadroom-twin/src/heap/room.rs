//! How much room a row asks for, on its page and on others.

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page::{InsertTarget, MAX_HEAP_TUPLE_SIZE, target_free_space};
use pgheadroom_layout::{BlockNumber, HeapFillfactor, LayoutError};

use crate::fsm::Modified;
use crate::heap::Heap;
use crate::page::Tid;
use crate::rules::{Rule, on};

impl Heap {
    /// Whether a new row of this length fits a page, its reserve left alone.
    ///
    /// # Errors
    /// [`LayoutError::TupleTooBig`] when it fits no page.
    pub(crate) fn takes_row(
        &self,
        block: BlockNumber,
        tuple_bytes: u16,
    ) -> Result<bool, LayoutError> {
        let fillfactor = self.insert_fillfactor();
        let wanted = target_free_space(u32::from(tuple_bytes), fillfactor, self.insert_target())?;
        let page = &self.pages[block.0 as usize];
        Ok(wanted.is_some_and(|wanted| wanted <= page.heap_free_space()))
    }

    /// An empty page that the free space map knows, else one by which the table grows.
    ///
    /// # Errors
    /// [`LayoutError`] when the row fits no page, or the table cannot grow.
    pub(crate) fn empty_page(
        &mut self,
        tuple_bytes: u16,
        log: &mut impl Modified,
    ) -> Result<BlockNumber, LayoutError> {
        let known = self.fsm.get(MAX_HEAP_TUPLE_SIZE, log);
        if let Some(block) = known.filter(|block| block.0 < self.page_count()) {
            self.pages[block.0 as usize].initialise();
            if self.takes_row(block, tuple_bytes)? {
                return Ok(block);
            }
        }
        self.extend(None, 1, true, log)
    }

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
