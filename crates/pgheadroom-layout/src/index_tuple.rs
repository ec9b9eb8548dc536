//! A B-tree's index tuple: its header and the values of its columns.
//!
//! ```text
//! 0      6      8 (16 with a NULL)              MAXALIGN
//! | TID  | info | values, laid out as in a heap tuple | pad |
//! ```
//!
//! Leaf tuples only; pivot tuples and posting lists are in [`crate::btree`].

use crate::align::maxalign;
use crate::error::LayoutError;
use crate::tuple::{Column, lay_out_data};

/// Header of an index tuple. Source: `IndexTupleData`, src/include/access/itup.h.
pub const SIZE_OF_INDEX_TUPLE_HEADER: u32 = 8;
/// Most columns of an index. Source: `INDEX_MAX_KEYS`, src/include/pg_config_manual.h.
pub const INDEX_MAX_KEYS: usize = 32;
/// Bytes of the null bitmap, whose size does not depend on the columns.
///
/// Source: `IndexAttributeBitMapData`, src/include/access/itup.h.
pub const SIZE_OF_INDEX_ATTRIBUTE_BITMAP: u32 = 4;
/// Payload above which an index tries to compress a value whose storage allows it.
///
/// Source: `TOAST_INDEX_TARGET`, src/include/access/heaptoast.h (`MaxHeapTupleSize` / 16).
pub const TOAST_INDEX_TARGET: u32 = crate::page::MAX_HEAP_TUPLE_SIZE / 16;
/// Widest index tuple of a B-tree: three and a high key must fit a page.
///
/// Source: `BTMaxItemSize`, src/include/access/nbtree.h (REL_18_STABLE).
pub const BT_MAX_ITEM_SIZE: u32 = 2704;

const _: () = assert!(TOAST_INDEX_TARGET == 510);
const _: () = assert!(
    BT_MAX_ITEM_SIZE
        == crate::align::maxalign_down((8192 - maxalign(24 + 3 * 4) - maxalign(16)) / 3) - 8
);

/// Size of an index tuple that holds these values, uncompressed; `IndexTupleSize`, aligned.
///
/// On the page it takes 4 bytes more, its line pointer. A column of type `name` is kept as a
/// `cstring` of the name's own length (`opckeytype` of `name_ops`), so it has to be given as one.
///
/// # Errors
/// [`LayoutError::TooManyColumns`] above 32, [`LayoutError::IndexTupleTooBig`] above 2704 bytes,
/// [`LayoutError::NotStorable`] for `name`.
///
/// Source: `index_form_tuple`, src/backend/access/common/indextuple.c (REL_18_STABLE).
/// Differs: values above 510 bytes may be compressed there, which depends on their contents.
pub fn index_tuple_bytes(columns: &[Column]) -> Result<u32, LayoutError> {
    if columns.len() > INDEX_MAX_KEYS {
        return Err(LayoutError::TooManyColumns {
            relation: "index",
            count: columns.len(),
            max: INDEX_MAX_KEYS,
        });
    }
    if let Some(column) = columns
        .iter()
        .find(|column| column.column_type().name() == "name")
    {
        return Err(LayoutError::NotStorable {
            type_name: column.column_type().name().to_owned(),
            relation: "B-tree",
            hint: "it keeps a cstring as long as the name; give that with its payload",
        });
    }
    let has_null = columns.iter().any(Column::is_null);
    let bitmap = if has_null {
        SIZE_OF_INDEX_ATTRIBUTE_BITMAP
    } else {
        0
    };
    let hoff = maxalign(SIZE_OF_INDEX_TUPLE_HEADER + bitmap);
    let (_, end) = lay_out_data(columns, hoff)?;
    let size = maxalign(end);
    if size > BT_MAX_ITEM_SIZE {
        return Err(LayoutError::IndexTupleTooBig {
            index_tuple_bytes: u64::from(size),
            max_bytes: BT_MAX_ITEM_SIZE,
        });
    }
    Ok(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuple::tests::{column, null};

    fn size(types: &[&str]) -> u32 {
        let columns: Vec<_> = types.iter().map(|name| column(name, None)).collect();
        index_tuple_bytes(&columns).unwrap()
    }

    /// The physics' worked sizes.
    #[test]
    fn worked_sizes() {
        assert_eq!(size(&["int4"]), 16);
        assert_eq!(size(&["int4", "int4"]), 16);
        assert_eq!(size(&["int8"]), 16);
        assert_eq!(size(&["int8", "int8"]), 24);
        assert_eq!(size(&["uuid"]), 24);
    }

    /// A NULL adds the bitmap, aligned to 8 bytes.
    #[test]
    fn nulls_take_eight_bytes() {
        let columns = [column("int4", None), null("int4")];
        assert_eq!(index_tuple_bytes(&columns), Ok(24));
        assert_eq!(index_tuple_bytes(&[null("text")]), Ok(16));
    }

    /// A name takes its own length and a zero byte, not 64 bytes.
    #[test]
    fn names_are_kept_as_cstrings() {
        let columns = [column("int8", None), column("cstring", Some(20))];
        assert_eq!(index_tuple_bytes(&columns), Ok(40));
        assert!(index_tuple_bytes(&[column("name", None)]).is_err());
        assert!(crate::tuple::RowLayout::new(columns.to_vec()).is_err());
    }

    /// A third of a page is the limit.
    #[test]
    fn wide_entries_are_refused() {
        assert_eq!(index_tuple_bytes(&[column("text", Some(2692))]), Ok(2704));
        assert!(index_tuple_bytes(&[column("text", Some(2693))]).is_err());
    }
}
