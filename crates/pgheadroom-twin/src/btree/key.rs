//! Keys as the B-tree compares them, and the sizes of the tuples that hold them.
//!
//! A key is one `i64` for each key column: any code whose order is the order of the index. An
//! integer is its own code (negated for DESC), a text value its rank; NULL has a code at either
//! end. The bytes of a tuple are kept apart, as a [`ShapeId`]: nearly all tuples of an index
//! share very few shapes, so that an entry of a one-column index costs 8 bytes of key and a wide
//! text index pays nothing for the lengths it does not have.

use std::collections::HashMap;

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::error::LayoutError;
use pgheadroom_layout::index_tuple::{
    BT_MAX_ITEM_SIZE, SIZE_OF_INDEX_ATTRIBUTE_BITMAP, SIZE_OF_INDEX_TUPLE_HEADER, index_tuple_bytes,
};
use pgheadroom_layout::tuple::Column;

use crate::page::Tid;

/// Code of NULL in a column with NULLS LAST.
pub const NULL_LAST: i64 = i64::MAX;
/// Code of NULL in a column with NULLS FIRST.
pub const NULL_FIRST: i64 = i64::MIN + 1;
/// What a truncated column of a pivot tuple counts as; no key may hold it.
pub(crate) const MINUS_INFINITY: i64 = i64::MIN;

/// Whether a key holds a NULL.
#[must_use]
pub fn has_null(key: &[i64]) -> bool {
    key.iter()
        .any(|&value| value == NULL_LAST || value == NULL_FIRST)
}

/// Number of columns that tell two keys apart: one more than they share.
///
/// Source: `_bt_keep_natts_fast`, src/backend/access/nbtree/nbtutils.c (REL_18_STABLE).
/// Differs: equal and "equal image" are the same here, so `numeric` 1.0 and 1.00 have to be given
/// as one code.
pub(crate) fn keep_natts(left: &[i64], right: &[i64]) -> usize {
    1 + left
        .iter()
        .zip(right)
        .take_while(|(one, other)| one == other)
        .count()
}

/// What is searched for: a key, and a TID as its last column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchKey<'a> {
    pub values: &'a [i64],
    pub tid: Option<Tid>,
}

/// How a value stands in an index tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Not at all.
    Null,
    /// At a multiple of `align`, with its length header.
    Aligned { align: u32, bytes: u32 },
}

/// Bytes of a tuple with these columns, whole and with trailing columns truncated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TupleSizes {
    /// Size with the first 0, 1, ... key columns.
    kept: Vec<u16>,
    /// Size of the leaf tuple, INCLUDE columns too.
    leaf: u16,
}

impl TupleSizes {
    /// Sizes of a tuple with these values.
    ///
    /// # Errors
    /// Those of [`index_tuple_bytes`].
    pub fn of_columns(key: &[Column], include: &[Column]) -> Result<Self, LayoutError> {
        let bytes = |columns: &[Column]| index_tuple_bytes(columns).map(narrow);
        let mut kept = vec![narrow(SIZE_OF_INDEX_TUPLE_HEADER)];
        for count in 1..=key.len() {
            kept.push(bytes(&key[..count])?);
        }
        let leaf = bytes(&[key, include].concat())?;
        Ok(Self { kept, leaf })
    }

    /// Sizes of a tuple of these values, of which the first `key_columns` are the key.
    ///
    /// # Errors
    /// [`LayoutError::IndexTupleTooBig`] above a third of a page.
    ///
    /// Source: `index_form_tuple`, src/backend/access/common/indextuple.c (REL_18_STABLE).
    pub(crate) fn of_pieces(pieces: &[Piece], key_columns: usize) -> Result<Self, LayoutError> {
        let bytes = |pieces: &[Piece]| {
            let bitmap = if pieces.contains(&Piece::Null) {
                SIZE_OF_INDEX_ATTRIBUTE_BITMAP
            } else {
                0
            };
            let start = maxalign(SIZE_OF_INDEX_TUPLE_HEADER + bitmap);
            let size = maxalign(pieces.iter().fold(start, |end, piece| match piece {
                Piece::Null => end,
                Piece::Aligned { align, bytes } => end.next_multiple_of(*align) + bytes,
            }));
            if size > BT_MAX_ITEM_SIZE {
                return Err(LayoutError::IndexTupleTooBig {
                    index_tuple_bytes: u64::from(size),
                    max_bytes: BT_MAX_ITEM_SIZE,
                });
            }
            Ok(narrow(size))
        };
        let leaf = bytes(pieces)?;
        let mut kept = vec![narrow(SIZE_OF_INDEX_TUPLE_HEADER)];
        for count in 1..=key_columns {
            kept.push(bytes(&pieces[..count])?);
        }
        Ok(Self { kept, leaf })
    }

    /// Sizes of a tuple of columns without NULLs whose widths and alignments are 2, 4 or 8 bytes.
    ///
    /// # Panics
    /// When the tuple would be wider than a B-tree takes.
    #[must_use]
    pub fn of_integers(widths: &[u32]) -> Self {
        let mut end = SIZE_OF_INDEX_TUPLE_HEADER;
        let mut kept = vec![narrow(end)];
        for &width in widths {
            assert!(width.is_power_of_two() && width <= 8, "width {width}");
            end = end.next_multiple_of(width) + width;
            kept.push(narrow(maxalign(end)));
        }
        let leaf = kept[widths.len()];
        Self { kept, leaf }
    }

    /// Key columns.
    #[must_use]
    pub fn key_columns(&self) -> usize {
        self.kept.len() - 1
    }

    /// Bytes of the leaf tuple.
    #[must_use]
    pub const fn leaf_bytes(&self) -> u16 {
        self.leaf
    }

    /// Bytes of a pivot tuple that keeps so many key columns, without a TID.
    pub(crate) fn kept_bytes(&self, columns: usize) -> u16 {
        self.kept[columns]
    }
}

fn narrow(bytes: u32) -> u16 {
    u16::try_from(bytes).expect("an index tuple is smaller than a page")
}

/// Which sizes a tuple has, in its index; below [`SHAPES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShapeId(pub(crate) u32);

/// Different sizes that the tuples of one index may have: an entry has three bytes for them.
pub const SHAPES_MAX: u32 = 1 << 24;

/// The different sizes that tuples of an index have.
#[derive(Debug, Clone)]
pub(crate) struct Shapes {
    sizes: Vec<TupleSizes>,
    known: HashMap<TupleSizes, ShapeId>,
    most: u32,
}

impl Default for Shapes {
    fn default() -> Self {
        Self {
            sizes: Vec::new(),
            known: HashMap::new(),
            most: SHAPES_MAX,
        }
    }
}

impl Shapes {
    /// `None` when there are as many others as there can be.
    pub fn intern(&mut self, sizes: TupleSizes) -> Option<ShapeId> {
        if let Some(&shape) = self.known.get(&sizes) {
            return Some(shape);
        }
        let number = u32::try_from(self.sizes.len()).ok();
        let shape = ShapeId(number.filter(|&number| number < self.most)?);
        self.known.insert(sizes.clone(), shape);
        self.sizes.push(sizes);
        Some(shape)
    }

    pub fn get(&self, shape: ShapeId) -> &TupleSizes {
        &self.sizes[shape.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integer widths agree with the layout's index tuples (physics: 16, 16, 16, 24 bytes).
    #[test]
    fn integer_tuples() {
        for (widths, leaf) in [
            (&[4_u32][..], 16),
            (&[4, 4], 16),
            (&[8], 16),
            (&[8, 8], 24),
            (&[4, 8], 24),
            (&[2, 4, 4], 24),
        ] {
            assert_eq!(TupleSizes::of_integers(widths).leaf_bytes(), leaf);
        }
    }

    /// More sizes than there may be are refused, and those that are known stay.
    #[test]
    fn shapes_are_bounded() {
        let mut shapes = Shapes {
            most: 2,
            ..Shapes::default()
        };
        let of = |widths: &[u32]| TupleSizes::of_integers(widths);
        let (one, other) = (shapes.intern(of(&[4])), shapes.intern(of(&[4, 8])));
        assert!(one.is_some() && other.is_some() && one != other);
        assert_eq!(shapes.intern(of(&[8, 8, 8])), None);
        assert_eq!(shapes.intern(of(&[4])), one);
        assert_eq!(shapes.get(other.unwrap()).leaf_bytes(), 24);
    }

    /// The count of distinguishing columns is one more than what is shared.
    #[test]
    fn distinguishing_columns() {
        assert_eq!(keep_natts(&[1, 2], &[2, 2]), 1);
        assert_eq!(keep_natts(&[1, 2], &[1, 3]), 2);
        assert_eq!(keep_natts(&[1, 2], &[1, 2]), 3);
    }
}
