//! How much room a row asks for, on its page and on others.

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page::{
    BLCKSZ, MAX_HEAP_TUPLE_SIZE, MAX_HEAP_TUPLES_PER_PAGE, SIZE_OF_ITEM_ID, SIZE_OF_PAGE_HEADER,
    target_free_space,
};
use pgheadroom_layout::{BlockNumber, HeapFillfactor, LayoutError};

use crate::heap::{Heap, Placing};

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
        self.takes(block, tuple_bytes, self.fillfactor)
    }

    /// Whether another version of this length fits on a page where one is already, for which the
    /// reserve is kept.
    ///
    /// # Errors
    /// [`LayoutError::TupleTooBig`] when it fits no page.
    pub(crate) fn takes_version(
        &self,
        block: BlockNumber,
        tuple_bytes: u16,
    ) -> Result<bool, LayoutError> {
        self.takes(block, tuple_bytes, HeapFillfactor::FULL)
    }

    fn takes(
        &self,
        block: BlockNumber,
        tuple_bytes: u16,
        fillfactor: HeapFillfactor,
    ) -> Result<bool, LayoutError> {
        let rule = self.behaviour.insert_target;
        let wanted = target_free_space(u32::from(tuple_bytes), fillfactor, rule)?;
        let page = &self.pages[block.0 as usize];
        Ok(wanted.is_some_and(|wanted| wanted <= page.heap_free_space()))
    }

    /// How many new rows of this length fit a page that takes such, its reserve left alone, one
    /// after the other: [`Heap::takes_row`] is true before each.
    ///
    /// # Errors
    /// [`LayoutError::TupleTooBig`] when one fits no page.
    pub(crate) fn takes_rows(
        &self,
        block: BlockNumber,
        tuple_bytes: u16,
    ) -> Result<u32, LayoutError> {
        let rule = self.behaviour.insert_target;
        let wanted = target_free_space(u32::from(tuple_bytes), self.fillfactor, rule)?;
        let page = &self.pages[block.0 as usize];
        let spare = wanted.and_then(|wanted| page.heap_free_space().checked_sub(wanted));
        let each = maxalign(u32::from(tuple_bytes)) + SIZE_OF_ITEM_ID;
        let left = MAX_HEAP_TUPLES_PER_PAGE.saturating_sub(page.item_count());
        Ok(spare.map_or(0, |spare| (spare / each + 1).min(left)))
    }

    /// Bytes that a new row of this length needs free on a page, its reserve with it.
    ///
    /// # Errors
    /// [`LayoutError::TupleTooBig`] when it fits no page.
    pub(crate) fn wanted_bytes(&self, tuple_bytes: u16) -> Result<u32, LayoutError> {
        let rule = self.behaviour.insert_target;
        let wanted = target_free_space(u32::from(tuple_bytes), self.fillfactor, rule)?;
        Ok(wanted.unwrap_or(MAX_HEAP_TUPLE_SIZE))
    }

    /// Adds an empty page at the end, which searches of the free space map find.
    ///
    /// # Errors
    /// [`LayoutError`] when the table cannot grow.
    pub(crate) fn add_known_page(
        &mut self,
        log: &mut impl Placing,
    ) -> Result<BlockNumber, LayoutError> {
        let block = self.extend(None, 1, true, log)?;
        self.fsm.record(block, BLCKSZ - SIZE_OF_PAGE_HEADER, log);
        self.fsm.vacuum(block, Some(BlockNumber(block.0 + 1)), log);
        Ok(block)
    }
}
