//! What a page says about its tuples by their packed form, without unpacking them whole.

use pgheadroom_layout::OffsetNumber;

use crate::page::packed::{
    DEAD, HAS_LINK, IS_HEAP_ONLY, IS_HOT_UPDATED, IS_LOCKED_ONLY, IS_UPDATED, KIND, NORMAL, Packed,
    Plain, REDIRECT, Replaced, Walked, XMAX_KEY_SHARE, XMAX_NO_KEY, XMAX_UNSET, XMIN_FROZEN,
    XMIN_SET, hints,
};
use crate::page::touched::Link;
use crate::page::{HeapPage, LinePointer, Tid, Tuple, XmaxHint, XminHint, index_of};
use crate::transaction::Xid;

impl HeapPage {
    /// A tuple that nobody has deleted, locked or replaced, and whose inserter's end is noted; none
    /// of another line pointer.
    #[inline]
    pub(crate) fn settled_tuple(&self, offset: OffsetNumber) -> Option<Tuple> {
        let is_deferred = offset == self.deferred.new || offset == self.deferred.old;
        let packed = self.items.get(index_of(offset)).filter(|_| !is_deferred)?;
        let row = packed.settled_row()?;
        let mut tuple = Tuple::new(row, packed.lp_len, packed.xmin);
        tuple.root = packed.root;
        tuple.is_hot_updated = packed.flags & IS_HOT_UPDATED != 0;
        tuple.is_heap_only = packed.is_heap_only();
        tuple.is_locked_only = packed.flags & IS_LOCKED_ONLY != 0;
        tuple.is_updated = packed.flags & IS_UPDATED != 0;
        tuple.xmin_hint = if packed.flags & XMIN_FROZEN == 0 {
            XminHint::Set
        } else {
            XminHint::Frozen
        };
        tuple.next = Tid {
            block: self.block,
            offset,
        };
        Some(tuple)
    }

    /// Whether it is a tuple of which [`HeapPage::settled_tuple`] tells.
    #[inline]
    pub(crate) fn is_settled(&self, offset: OffsetNumber) -> bool {
        let is_deferred = offset == self.deferred.new || offset == self.deferred.old;
        let packed = self.items.get(index_of(offset));
        !is_deferred && packed.is_some_and(|packed| packed.settled_row().is_some())
    }

    /// What [`HeapPage::settled_tuple`] tells, as far as a look at all tuples of the page wants it.
    #[inline]
    pub(crate) fn plain(&self, offset: OffsetNumber) -> Option<Plain> {
        let is_deferred = offset == self.deferred.new || offset == self.deferred.old;
        let packed = self.items.get(index_of(offset)).filter(|_| !is_deferred)?;
        packed.settled_row().map(|_| Plain {
            xmin: packed.xmin,
            is_frozen: packed.flags & XMIN_FROZEN != 0,
        })
    }

    /// Whether it is a dead line pointer.
    #[inline]
    pub(crate) fn is_dead(&self, offset: OffsetNumber) -> bool {
        let is_deferred = offset == self.deferred.new;
        let packed = self.items.get(index_of(offset));
        !is_deferred && packed.is_some_and(|packed| packed.flags & KIND == DEAD)
    }

    /// Whether it is a redirect.
    #[inline]
    pub(crate) fn is_redirect(&self, offset: OffsetNumber) -> bool {
        let is_deferred = offset == self.deferred.new;
        let packed = self.items.get(index_of(offset));
        !is_deferred && packed.is_some_and(|packed| packed.flags & KIND == REDIRECT)
    }

    /// Whether a tuple is a heap-only one.
    #[inline]
    pub(crate) fn is_heap_only(&self, offset: OffsetNumber) -> bool {
        let packed = self.items.get(index_of(offset));
        offset == self.deferred.new || packed.is_some_and(Packed::is_heap_only)
    }

    /// Whether the page has tuples or redirects.
    pub(crate) fn leads_to_rows(&self) -> bool {
        let leads = |packed: &Packed| matches!(packed.flags & KIND, NORMAL | REDIRECT);
        self.deferred().is_some() || self.items.iter().any(leads)
    }

    /// The line pointer that index entries lead to of this row, by a version of it; `None` if that
    /// is not known, or no version of the row is here.
    #[inline]
    pub(crate) fn root_of(&self, offset: OffsetNumber, row: u32) -> Option<OffsetNumber> {
        let (of, root) = match self.deferred() {
            Some(deferred) if deferred.new == offset => (deferred.row, deferred.root),
            _ => {
                let packed = self.items.get(index_of(offset))?;
                let is_root = !packed.is_heap_only();
                (packed.row()?, if is_root { offset } else { packed.root })
            }
        };
        (of == row && root.0 != 0).then_some(root)
    }

    /// A tuple that a HOT update has replaced, where the ends of its maker and of its replacer are
    /// noted; none of another line pointer.
    #[inline]
    pub(crate) fn replaced(&self, offset: OffsetNumber) -> Option<Replaced> {
        let packed = self.items.get(index_of(offset))?;
        let is_deferred = offset == self.deferred.new || offset == self.deferred.old;
        if !packed.is_replaced() || is_deferred {
            return None;
        }
        let link = self.link(offset);
        Some(Replaced {
            xmin: packed.xmin,
            xmax: link.xmax,
            next: link.next.offset,
            is_heap_only: packed.is_heap_only(),
        })
    }

    /// How far a walk along the chain from this redirect has come by versions that [`replaced`]
    /// tells of, and the newest transaction that replaced one of them; with the transaction that
    /// made the version there.
    ///
    /// Pruning takes no version out of a chain without a new root, so they are still those.
    ///
    /// [`replaced`]: HeapPage::replaced
    #[inline]
    pub(crate) fn walked_to(&self, root: OffsetNumber) -> Option<Walked> {
        let packed = self.items.get(index_of(root))?;
        if packed.flags & KIND != REDIRECT || packed.lp_len == 0 {
            return None;
        }
        let at = OffsetNumber(packed.lp_len);
        Some(Walked {
            at,
            newest: packed.xmin,
            made_by: self.items[index_of(at)].xmin,
        })
    }

    /// A walk from this line pointer has come by all versions before this one, which is no deferred
    /// update's new version; `newest` replaced one of them, and no newer transaction did.
    #[inline]
    pub(crate) fn note_walk(&mut self, root: OffsetNumber, at: OffsetNumber, newest: Xid) {
        let is_deferred = at == self.deferred.new || root == self.deferred.new;
        let packed = &mut self.items[index_of(root)];
        if !is_deferred && packed.flags & KIND == REDIRECT {
            (packed.lp_len, packed.xmin) = (at.0, newest);
        }
    }

    /// Where a row's newest version may be, by a version of it: here, or where a HOT update has put
    /// the next; `None` when another update or a delete followed, or without a tuple.
    #[inline]
    pub(crate) fn newest(&self, offset: OffsetNumber) -> Option<(u32, Tid)> {
        let at = |offset| Tid {
            block: self.block,
            offset,
        };
        if let Some(deferred) = self.deferred()
            && (deferred.new == offset || deferred.old == offset)
        {
            return Some((deferred.row, at(deferred.new)));
        }
        let packed = self.items.get(index_of(offset))?;
        let row = packed.row()?;
        let has = |flag: u16| packed.flags & flag != 0;
        let link = has(HAS_LINK).then(|| self.link(offset));
        if has(IS_HOT_UPDATED) {
            return Some((row, link.map_or(at(offset), |link| link.next)));
        }
        let is_replaced = link.is_some_and(|link| link.xmax.is_valid()) && !has(IS_LOCKED_ONLY);
        (!is_replaced).then_some((row, at(offset)))
    }

    /// Length of a tuple.
    ///
    /// # Panics
    /// When the page has no line pointer of this number.
    #[inline]
    pub(crate) fn lp_len(&self, offset: OffsetNumber) -> u16 {
        match self.deferred() {
            Some(deferred) if deferred.new == offset => deferred.lp_len,
            _ => self.items[index_of(offset)].lp_len,
        }
    }

    /// The row of a tuple that is about to be replaced, and the root of its chain if it is known.
    ///
    /// # Panics
    /// When there is no tuple.
    #[inline]
    pub(crate) fn row_and_root(&self, offset: OffsetNumber) -> (u32, OffsetNumber) {
        match self.deferred() {
            Some(deferred) if deferred.new == offset => (deferred.row, deferred.root),
            _ => {
                let packed = &self.items[index_of(offset)];
                let is_root = !packed.is_heap_only();
                let root = if is_root { offset } else { packed.root };
                (packed.row().expect("a tuple"), root)
            }
        }
    }

    /// This transaction has replaced a tuple by the one at `next`.
    ///
    /// # Panics
    /// When there is no tuple.
    pub(crate) fn set_replaced(
        &mut self,
        offset: OffsetNumber,
        xmax: Xid,
        is_hot: bool,
        next: Tid,
    ) {
        self.write_out_deferred();
        self.unsettle(offset);
        let packed = &mut self.items[index_of(offset)];
        assert!(packed.row().is_some(), "item {} is no tuple", offset.0);
        let xmin_hints = XMIN_SET | XMIN_FROZEN;
        let kept = packed.flags & (KIND | IS_HEAP_ONLY | IS_UPDATED | xmin_hints);
        let is_hot_updated = if is_hot { IS_HOT_UPDATED } else { 0 };
        packed.flags = kept | HAS_LINK | is_hot_updated | hints(XminHint::Unset, XmaxHint::Unset);
        self.set_link(offset, Link { xmax, next });
    }

    /// The row of the tuple of this number, if the line pointer has one.
    #[inline]
    pub(crate) fn row(&self, offset: OffsetNumber) -> Option<u32> {
        match self.deferred() {
            Some(deferred) if deferred.new == offset => Some(deferred.row),
            _ => self.items.get(index_of(offset))?.row(),
        }
    }

    /// What the items say, the deferred update left out.
    #[inline]
    pub(in crate::page) fn packed_item(&self, offset: OffsetNumber) -> LinePointer {
        let packed = &self.items[index_of(offset)];
        let has = |flag: u16| packed.flags & flag != 0;
        match packed.flags & KIND {
            0 => return LinePointer::Unused,
            #[allow(clippy::cast_possible_truncation)] // an offset number
            REDIRECT => return LinePointer::Redirect(OffsetNumber(packed.row as u16)),
            DEAD => return LinePointer::Dead,
            _ => {}
        }
        let link = if has(HAS_LINK) {
            self.link(offset)
        } else {
            let block = self.block;
            Link {
                xmax: Xid::INVALID,
                next: Tid { block, offset },
            }
        };
        LinePointer::Normal(Tuple {
            row: packed.row,
            xmin: packed.xmin,
            xmax: link.xmax,
            next: link.next,
            lp_len: packed.lp_len,
            root: packed.root,
            is_locked_only: has(IS_LOCKED_ONLY),
            is_hot_updated: has(IS_HOT_UPDATED),
            is_heap_only: has(IS_HEAP_ONLY),
            is_updated: has(IS_UPDATED),
            xmin_hint: if has(XMIN_FROZEN) {
                XminHint::Frozen
            } else if has(XMIN_SET) {
                XminHint::Set
            } else {
                XminHint::Unset
            },
            xmax_hint: match (has(XMAX_UNSET), has(XMAX_KEY_SHARE)) {
                (false, false) => XmaxHint::Set,
                (false, true) => XmaxHint::UnsetKeyShare,
                (true, true) => XmaxHint::UnsetShare,
                (true, false) if has(XMAX_NO_KEY) => XmaxHint::UnsetNoKeyUpdate,
                (true, false) => XmaxHint::Unset,
            },
        })
    }

    /// Puts something in the place of a line pointer.
    pub(in crate::page) fn put(&mut self, offset: OffsetNumber, item: LinePointer) {
        let position = index_of(offset);
        let tuple = match item {
            LinePointer::Unused => {
                self.items[position] = Packed::UNUSED;
                return;
            }
            LinePointer::Redirect(target) => {
                self.items[position] = Packed::redirect(target);
                return;
            }
            LinePointer::Dead => {
                self.items[position] = Packed {
                    flags: DEAD,
                    ..Packed::UNUSED
                };
                return;
            }
            LinePointer::Normal(tuple) => tuple,
        };
        let block = self.block;
        let has_link = tuple.xmax.is_valid() || tuple.next != (Tid { block, offset });
        let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
        self.items[position] = Packed {
            row: tuple.row,
            xmin: tuple.xmin,
            lp_len: tuple.lp_len,
            root: tuple.root,
            flags: NORMAL
                | flag(has_link, HAS_LINK)
                | flag(tuple.is_heap_only, IS_HEAP_ONLY)
                | flag(tuple.is_updated, IS_UPDATED)
                | flag(tuple.is_hot_updated, IS_HOT_UPDATED)
                | flag(tuple.is_locked_only, IS_LOCKED_ONLY)
                | hints(tuple.xmin_hint, tuple.xmax_hint),
        };
        if has_link {
            let (xmax, next) = (tuple.xmax, tuple.next);
            self.set_link(offset, Link { xmax, next });
        }
    }
}
