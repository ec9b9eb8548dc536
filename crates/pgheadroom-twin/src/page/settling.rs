//! Which tuples of a page pruning looks at, and which of them it need not look at again.

use pgheadroom_layout::OffsetNumber;

use crate::page::{HeapPage, LinePointer, Tuple, XmaxHint, XminHint, index_of};
use crate::unsettled::Unsettled;

impl HeapPage {
    /// The tuples that pruning has to look at.
    pub(crate) fn unsettled(&self) -> Unsettled {
        let mut unsettled = self.touched_tuples();
        if let Some(deferred) = self.deferred() {
            unsettled.add(deferred.old);
            unsettled.add(deferred.new);
        }
        unsettled
    }

    /// A line pointer that may have an unsettled tuple.
    #[inline]
    fn unsettled_item(&self, offset: OffsetNumber) -> Option<LinePointer> {
        let packed = self.items.get(index_of(offset))?;
        let is_plain = packed.settled_row().is_some();
        (!is_plain).then(|| self.item_at(offset))
    }

    /// After pruning has looked at all unsettled tuples.
    pub(super) fn forget_settled(&mut self) {
        let is_unsettled = |offset: OffsetNumber| match self.unsettled_item(offset) {
            Some(LinePointer::Normal(tuple)) => !is_settled(&tuple),
            _ => false,
        };
        let mut left = Unsettled::NONE;
        for offset in self.touched_tuples().listed() {
            if is_unsettled(offset) {
                left.add(offset);
            }
        }
        self.leave_unsettled(left);
    }
}

/// Whether nothing about this tuple changes until somebody touches it: its inserter is noted as
/// committed, which pruning makes sure of by removing the others, and nobody removed it.
fn is_settled(tuple: &Tuple) -> bool {
    tuple.xmin_hint != XminHint::Unset
        && tuple.xmax_hint == XmaxHint::Set
        && (!tuple.xmax.is_valid() || tuple.is_locked_only)
}
