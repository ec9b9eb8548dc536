//! The bytes of a heap page, so far as they are known: command numbers are left out.

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::decode::{LpFlags, PD_ALL_VISIBLE, PD_HAS_FREE_LINES};
use pgheadroom_layout::flags::{
    HEAP_HASNULL, HEAP_HASVARWIDTH, HEAP_HOT_UPDATED, HEAP_ONLY_TUPLE, HEAP_UPDATED,
    HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMIN_COMMITTED, HEAP_XMIN_FROZEN,
};
use pgheadroom_layout::page::BLCKSZ;
use pgheadroom_layout::toast::TOAST_MAX_CHUNK_SIZE;
use pgheadroom_layout::{BlockNumber, OffsetNumber};

use super::{Header, PageBytes, tid, xid};
use crate::executor::replaced::Body;
use crate::executor::table::{Table, Toast};
use crate::page::{LinePointer, Tid, Tuple, XmaxHint, XminHint};
use crate::row::Texts;

/// A page of a TOAST table without its hole; `texts` are the strings of the table that it is of.
pub(super) fn chunk_page(toast: &Toast, texts: &Texts, block: BlockNumber) -> Vec<u8> {
    let mut value = (0, Vec::new());
    heap_page(&toast.table, block, |at, tuple| {
        let mut body = toast.table.body(at, tuple);
        let [value_id, sequence, _] = toast.table.values.slots(tuple.row)[..] else {
            return body;
        };
        let value_id = u32::try_from(value_id).unwrap_or(0);
        if value.0 != value_id {
            let stored = toast.value(value_id).map(|value| texts.stored(value));
            value = (value_id, stored.unwrap_or_default());
        }
        let begin = usize::try_from(sequence).unwrap_or(0) * TOAST_MAX_CHUNK_SIZE as usize;
        let rest = value.1.get(begin..).unwrap_or_default();
        let chunk = &rest[..rest.len().min(TOAST_MAX_CHUNK_SIZE as usize)];
        if let Some(from) = body.bytes.len().checked_sub(chunk.len()) {
            body.bytes[from..].copy_from_slice(chunk);
        }
        body
    })
}

/// A heap page without its hole; its versions lie in the order in which they were made, and
/// `body_of` has what they hold.
pub(super) fn heap_page(
    table: &Table,
    block: BlockNumber,
    mut body_of: impl FnMut(Tid, &Tuple) -> Body,
) -> Vec<u8> {
    let page = &table.heap.pages()[block.0 as usize];
    let items = page.items();
    let at = |position: usize| Tid {
        block,
        offset: OffsetNumber(u16::try_from(position + 1).unwrap_or(0)),
    };
    let mut made: Vec<(usize, &Tuple)> = Vec::new();
    for (position, item) in items.iter().enumerate() {
        if let LinePointer::Normal(tuple) = item {
            made.push((position, tuple));
        }
    }
    made.sort_by_key(|(_, tuple)| tuple.xmin);
    let mut places = vec![0; items.len()];
    let mut upper = BLCKSZ;
    for &(position, tuple) in &made {
        upper = upper.saturating_sub(maxalign(u32::from(tuple.lp_len)));
        places[position] = upper;
    }
    let mut bytes = PageBytes::with_special(&[]);
    for (item, place) in items.iter().zip(places) {
        match item {
            LinePointer::Unused => bytes.point(0, LpFlags::Unused, 0),
            LinePointer::Normal(tuple) => {
                bytes.point(place, LpFlags::Normal, u32::from(tuple.lp_len))
            }
            LinePointer::Redirect(to) => bytes.point(u32::from(to.0), LpFlags::Redirect, 0),
            LinePointer::Dead => bytes.point(0, LpFlags::Dead, 0),
        }
    }
    bytes.tuples = made
        .iter()
        .map(|&(position, tuple)| heap_tuple(table, tuple, body_of(at(position), tuple)))
        .collect();
    bytes.upper = upper;
    bytes.put_together(Header {
        flags: (u16::from(page.is_all_visible()) * PD_ALL_VISIBLE)
            | (u16::from(page.has_free_lines()) * PD_HAS_FREE_LINES),
        prune_xid: page.prune_xid(),
        ..Header::default()
    })
}

/// A row version: its header and its values.
fn heap_tuple(table: &Table, tuple: &Tuple, body: Body) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(usize::from(tuple.lp_len) + 8);
    bytes.extend_from_slice(&xid(tuple.xmin));
    bytes.extend_from_slice(&xid(tuple.xmax));
    bytes.extend_from_slice(&[0; 4]); // command numbers
    bytes.extend_from_slice(&tid(tuple.next));
    let [low, high] = infomask(tuple, body.has_nulls).to_le_bytes();
    let [columns, flags] = infomask2(tuple, table.columns().len()).to_le_bytes();
    let hoff = u8::try_from(body.hoff).unwrap_or(24);
    bytes.extend_from_slice(&[columns, flags, low, high, hoff]);
    bytes.extend(body.bytes);
    bytes.resize(maxalign(u32::from(tuple.lp_len)) as usize, 0);
    bytes
}

/// Flags of a version's header.
///
/// Source: `t_infomask`, src/include/access/htup_details.h (REL_18_STABLE).
fn infomask(tuple: &Tuple, has_nulls: bool) -> u16 {
    let xmin = match tuple.xmin_hint {
        XminHint::Unset => 0,
        XminHint::Set => HEAP_XMIN_COMMITTED,
        XminHint::Frozen => HEAP_XMIN_FROZEN,
    };
    let xmax = match (tuple.xmax_hint, tuple.xmax.0) {
        (_, 0) => HEAP_XMAX_INVALID,
        (XmaxHint::Set, _) => HEAP_XMAX_COMMITTED,
        _ => 0,
    };
    (u16::from(has_nulls) * HEAP_HASNULL)
        | HEAP_HASVARWIDTH
        | xmin
        | xmax
        | (u16::from(tuple.is_updated) * HEAP_UPDATED)
}

/// Number of columns, and whether the version is HOT.
///
/// Source: `t_infomask2`, src/include/access/htup_details.h (REL_18_STABLE).
fn infomask2(tuple: &Tuple, columns: usize) -> u16 {
    let hot = (u16::from(tuple.is_hot_updated) * HEAP_HOT_UPDATED)
        | (u16::from(tuple.is_heap_only) * HEAP_ONLY_TUPLE);
    u16::try_from(columns).unwrap_or(0) | hot
}
