//! A heap tuple: header, null bitmap and values, byte by byte.
//!
//! ```text
//! 0            23          t_hoff                                    lp_len
//! | fixed part | bitmap    | value | pad | value | value | pad | value |
//!   xmin xmax    1 bit per   each value at a multiple of its alignment;
//!   ctid ...     column, if  variable-length values up to 126 bytes
//!                any NULL    anywhere, behind a 1-byte header
//! ```
//!
//! Takes columns in their physical order with the width of each value, and leaves out how wide
//! values become by compression (see [`crate::toast`] for what moves out of line).

use crate::align::maxalign;
use crate::column_type::{ColumnType, Storage, TypeLength};
use crate::error::LayoutError;
use crate::page::{MAX_HEAP_TUPLE_SIZE, SIZE_OF_HEAP_TUPLE_HEADER, SIZE_OF_ITEM_ID};

/// Most columns of a table. Source: `MaxHeapAttributeNumber`, access/htup_details.h.
pub const MAX_HEAP_ATTRIBUTE_NUMBER: usize = 1600;
/// Length header of a variable-length value in its usual form. Source: `VARHDRSZ`, c.h.
pub const VARHDRSZ: u32 = 4;
/// Length header of a short variable-length value. Source: `VARHDRSZ_SHORT`, varatt.h.
pub const VARHDRSZ_SHORT: u32 = 1;
/// Longest value with a 1-byte header, header included. Source: `VARATT_SHORT_MAX`, varatt.h.
pub const VARATT_SHORT_MAX: u32 = 0x7F;
/// Bytes that stand in the row for a value stored out of line.
///
/// Source: `TOAST_POINTER_SIZE`, src/include/access/detoast.h (2-byte header, 16-byte pointer).
pub const TOAST_POINTER_SIZE: u32 = 18;

const _: () = assert!(maxalign(SIZE_OF_HEAP_TUPLE_HEADER) == 24);
const _: () = assert!(TOAST_POINTER_SIZE < VARATT_SHORT_MAX);

/// How one value is stored in the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stored {
    /// No bytes; a cleared bit in the null bitmap.
    Null,
    /// In the row, uncompressed: this many bytes without the length header.
    Inline {
        /// Bytes of the value itself.
        payload_bytes: u32,
    },
    /// In the row, compressed: this many bytes without the 4-byte header, which stays even when
    /// the value is short.
    Compressed {
        /// Bytes after compression, the original length (4 bytes) included.
        payload_bytes: u32,
    },
    /// Out of line; the row holds a pointer of 18 bytes.
    ToastPointer,
}

/// A column and the value it holds in the row at hand.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Column {
    name: String,
    column_type: ColumnType,
    stored: Stored,
}

impl Column {
    /// A column whose value takes `payload_bytes`, or what the type says if `None`.
    ///
    /// # Errors
    /// [`LayoutError::WidthMissing`] or [`LayoutError::WidthImpossible`].
    pub fn new(
        name: impl Into<String>,
        column_type: ColumnType,
        payload_bytes: Option<u64>,
    ) -> Result<Self, LayoutError> {
        let payload_bytes = column_type.checked_payload(payload_bytes)?;
        Ok(Self {
            name: name.into(),
            column_type,
            stored: Stored::Inline { payload_bytes },
        })
    }

    /// A column that holds NULL.
    #[must_use]
    pub fn null(name: impl Into<String>, column_type: ColumnType) -> Self {
        Self {
            name: name.into(),
            column_type,
            stored: Stored::Null,
        }
    }

    /// The same column with its value stored in another way.
    ///
    /// # Errors
    /// [`LayoutError::NotToastable`] for a type that is never compressed or out of line.
    pub fn with_stored(&self, stored: Stored) -> Result<Self, LayoutError> {
        let toasted = matches!(stored, Stored::ToastPointer | Stored::Compressed { .. });
        if toasted && self.column_type.typstorage() == Storage::Plain {
            return Err(LayoutError::NotToastable {
                type_name: self.column_type.name().to_owned(),
            });
        }
        if let Stored::Inline { payload_bytes } = stored {
            self.column_type
                .checked_payload(Some(u64::from(payload_bytes)))?;
        }
        Ok(Self {
            stored,
            ..self.clone()
        })
    }

    /// The column's name; may be empty.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The column's type.
    #[must_use]
    pub const fn column_type(&self) -> &ColumnType {
        &self.column_type
    }

    /// How the value is stored.
    #[must_use]
    pub const fn stored(&self) -> Stored {
        self.stored
    }

    /// Whether the value is NULL.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self.stored, Stored::Null)
    }

    /// Length header, payload and alignment of the value as stored; `None` for NULL.
    ///
    /// Source: `fill_val` and `heap_compute_data_size`, src/backend/access/common/heaptuple.c
    /// (REL_18_STABLE). Differs: the storage of the *column* is not asked. `SET STORAGE PLAIN` on
    /// a text column does not prevent the short header in practice, because the parser's constant
    /// already has it.
    fn footprint(&self) -> Option<Footprint> {
        let alignment = self.column_type.typalign().bytes();
        let packable = self.column_type.typstorage() != Storage::Plain;
        Some(match (self.stored, self.column_type.typlen()) {
            (Stored::Null, _) => return None,
            (Stored::ToastPointer, _) => Footprint {
                alignment_bytes: 1,
                header_bytes: 0,
                payload_bytes: TOAST_POINTER_SIZE,
            },
            (Stored::Inline { payload_bytes }, TypeLength::Fixed(_)) => Footprint {
                alignment_bytes: alignment,
                header_bytes: 0,
                payload_bytes,
            },
            (Stored::Inline { payload_bytes }, TypeLength::Cstring) => Footprint {
                alignment_bytes: 1,
                header_bytes: 0,
                payload_bytes: payload_bytes + 1, // the zero byte at its end
            },
            (Stored::Inline { payload_bytes }, TypeLength::Varlena)
                if packable && payload_bytes + VARHDRSZ_SHORT <= VARATT_SHORT_MAX =>
            {
                Footprint {
                    alignment_bytes: 1,
                    header_bytes: VARHDRSZ_SHORT,
                    payload_bytes,
                }
            }
            (Stored::Inline { payload_bytes }, TypeLength::Varlena)
            | (Stored::Compressed { payload_bytes }, _) => Footprint {
                alignment_bytes: alignment,
                header_bytes: VARHDRSZ,
                payload_bytes,
            },
        })
    }
}

struct Footprint {
    alignment_bytes: u32,
    header_bytes: u32,
    payload_bytes: u32,
}

/// Where one column's value lies in the tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ColumnLayout {
    /// Distance of the value, its length header included, from the start of the tuple.
    pub offset_bytes: u32,
    /// Bytes lost before it, to reach its alignment.
    pub padding_bytes: u32,
    /// Length header: 0, 1 or 4 bytes.
    pub header_bytes: u32,
    /// The value itself; 18 for a TOAST pointer, 0 for NULL.
    pub payload_bytes: u32,
}

impl ColumnLayout {
    /// Bytes from the value's start to its end, header included.
    #[must_use]
    pub const fn stored_bytes(&self) -> u32 {
        self.header_bytes + self.payload_bytes
    }
}

/// A heap tuple laid out column by column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RowLayout {
    columns: Vec<Column>,
    layouts: Vec<ColumnLayout>,
    null_bitmap_bytes: u32,
    hoff: u32,
    tuple_bytes: u32,
}

impl RowLayout {
    /// Lays out a row; the columns come in their physical order.
    ///
    /// The row may be longer than a page: [`RowLayout::fits_page`] says so, and the caller decides
    /// whether TOAST would shorten it.
    ///
    /// # Errors
    /// [`LayoutError::TooManyColumns`] above 1600, [`LayoutError::TupleTooBig`] above 1 GB,
    /// [`LayoutError::NotStorable`] for `cstring`.
    ///
    /// Source: `heap_form_tuple`, src/backend/access/common/heaptuple.c (REL_18_STABLE).
    /// Differs: no.
    pub fn new(columns: Vec<Column>) -> Result<Self, LayoutError> {
        if columns.len() > MAX_HEAP_ATTRIBUTE_NUMBER {
            return Err(LayoutError::TooManyColumns {
                relation: "table",
                count: columns.len(),
                max: MAX_HEAP_ATTRIBUTE_NUMBER,
            });
        }
        if let Some(column) = columns
            .iter()
            .find(|column| column.column_type().typlen() == TypeLength::Cstring)
        {
            return Err(LayoutError::NotStorable {
                type_name: column.column_type().name().to_owned(),
                relation: "table",
                hint: "text or name hold such strings",
            });
        }
        let null_bitmap_bytes = null_bitmap_bytes(&columns);
        let hoff = maxalign(SIZE_OF_HEAP_TUPLE_HEADER + null_bitmap_bytes);
        let (layouts, tuple_bytes) = lay_out_data(&columns, hoff)?;
        Ok(Self {
            columns,
            layouts,
            null_bitmap_bytes,
            hoff,
            tuple_bytes,
        })
    }

    /// The columns in physical order.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Where each column's value lies, in the same order.
    #[must_use]
    pub fn column_layouts(&self) -> &[ColumnLayout] {
        &self.layouts
    }

    /// Bytes of the null bitmap, 0 without a NULL.
    #[must_use]
    pub const fn null_bitmap_bytes(&self) -> u32 {
        self.null_bitmap_bytes
    }

    /// `t_hoff`: where the values start.
    #[must_use]
    pub const fn hoff(&self) -> u32 {
        self.hoff
    }

    /// `lp_len`: the tuple's length, not rounded.
    #[must_use]
    pub const fn tuple_bytes(&self) -> u32 {
        self.tuple_bytes
    }

    /// What the row costs on a page: the aligned length and the line pointer.
    #[must_use]
    pub const fn page_bytes(&self) -> u32 {
        maxalign(self.tuple_bytes) + SIZE_OF_ITEM_ID
    }

    /// Bytes lost between the values.
    #[must_use]
    pub fn inner_padding_bytes(&self) -> u32 {
        self.layouts.iter().map(|layout| layout.padding_bytes).sum()
    }

    /// Bytes lost after the last value, to the next multiple of 8.
    #[must_use]
    pub const fn tail_padding_bytes(&self) -> u32 {
        maxalign(self.tuple_bytes) - self.tuple_bytes
    }

    /// Whether the tuple fits an empty page as it is.
    #[must_use]
    pub const fn fits_page(&self) -> bool {
        self.tuple_bytes <= MAX_HEAP_TUPLE_SIZE
    }
}

/// Bytes of the null bitmap: one bit per column if any value is NULL.
///
/// Source: `BITMAPLEN`, src/include/access/htup_details.h.
fn null_bitmap_bytes(columns: &[Column]) -> u32 {
    if columns.iter().any(Column::is_null) {
        // At most 1600 columns, so at most 200 bytes.
        u32::try_from(columns.len().div_ceil(8)).unwrap_or(u32::MAX)
    } else {
        0
    }
}

/// Lays values out one after the other from `start`, which is a multiple of 8; also says where the
/// last one ends. Shared by heap and index tuples.
///
/// Source: `heap_compute_data_size`, src/backend/access/common/heaptuple.c (REL_18_STABLE).
pub(crate) fn lay_out_data(
    columns: &[Column],
    start: u32,
) -> Result<(Vec<ColumnLayout>, u32), LayoutError> {
    let limit = crate::column_type::MAX_PAYLOAD;
    let mut end = start;
    let mut layouts = Vec::with_capacity(columns.len());
    for column in columns {
        let Some(footprint) = column.footprint() else {
            layouts.push(ColumnLayout {
                offset_bytes: end,
                padding_bytes: 0,
                header_bytes: 0,
                payload_bytes: 0,
            });
            continue;
        };
        let offset_bytes = end.next_multiple_of(footprint.alignment_bytes);
        layouts.push(ColumnLayout {
            offset_bytes,
            padding_bytes: offset_bytes - end,
            header_bytes: footprint.header_bytes,
            payload_bytes: footprint.payload_bytes,
        });
        // Both terms are at most 1 GB, so the sum stays below 2^32.
        end = offset_bytes + footprint.header_bytes + footprint.payload_bytes;
        if end > limit {
            return Err(LayoutError::TupleTooBig {
                tuple_bytes: u64::from(end),
                max_bytes: limit,
            });
        }
    }
    Ok((layouts, end))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn column(type_name: &str, payload_bytes: Option<u64>) -> Column {
        Column::new("c", ColumnType::parse(type_name).unwrap(), payload_bytes).unwrap()
    }

    pub(crate) fn null(type_name: &str) -> Column {
        Column::null("c", ColumnType::parse(type_name).unwrap())
    }

    fn tuple_bytes(columns: Vec<Column>) -> u32 {
        RowLayout::new(columns).unwrap().tuple_bytes()
    }

    fn int4() -> Column {
        column("int4", None)
    }

    /// The physics' worked rows: a short header at 64 characters, an aligned long one at 128.
    #[test]
    fn seed_rows() {
        let narrow = vec![int4(), int4(), column("char(64)", None), int4()];
        let layout = RowLayout::new(narrow).unwrap();
        assert_eq!(layout.tuple_bytes(), 104);
        assert_eq!(layout.inner_padding_bytes(), 3);
        assert_eq!(layout.column_layouts()[3].offset_bytes, 24 + 76);
        let wide = vec![int4(), int4(), column("char(128)", None), int4()];
        assert_eq!(tuple_bytes(wide), 168);
    }

    /// The limit of the short header: 126 bytes of payload.
    #[test]
    fn short_header_ends_at_126_bytes() {
        assert_eq!(tuple_bytes(vec![column("text", Some(126))]), 24 + 127);
        assert_eq!(tuple_bytes(vec![column("text", Some(127))]), 24 + 131);
        assert_eq!(
            tuple_bytes(vec![column("bool", None), column("text", Some(127))]),
            24 + 4 + 131
        );
    }

    /// Types that are never packed keep the long header even when short.
    #[test]
    fn plain_varlena_keeps_the_long_header() {
        let row =
            RowLayout::new(vec![column("bool", None), column("oidvector", Some(20))]).unwrap();
        assert_eq!(row.column_layouts()[1].header_bytes, 4);
        assert_eq!(row.column_layouts()[1].padding_bytes, 3);
    }

    /// The null bitmap fits the byte left by the fixed part up to 8 columns, then costs 8 more.
    #[test]
    fn null_bitmap() {
        let with_null = |others: usize| {
            let mut columns = vec![int4(); others];
            columns.push(null("text"));
            RowLayout::new(columns).unwrap()
        };
        assert_eq!(with_null(7).hoff(), 24);
        assert_eq!(with_null(8).hoff(), 32);
        assert_eq!(with_null(7).tuple_bytes(), 24 + 28);
        assert_eq!(tuple_bytes(vec![]), 24);
    }

    /// A parent row after one value moved out of line: 24 + 4 + 18 (golden of the TOAST section).
    #[test]
    fn toast_pointer_takes_18_bytes_anywhere() {
        let out = column("text", Some(10_000))
            .with_stored(Stored::ToastPointer)
            .unwrap();
        assert_eq!(tuple_bytes(vec![int4(), out]), 46);
        assert!(int4().with_stored(Stored::ToastPointer).is_err());
    }

    /// Columns beyond PostgreSQL's limits are refused.
    #[test]
    fn limits() {
        assert!(RowLayout::new(vec![int4(); 1601]).is_err());
        let huge = column("text", Some((1 << 30) - 5));
        assert!(RowLayout::new(vec![huge.clone()]).is_err());
        assert!(RowLayout::new(vec![huge; 8]).is_err());
    }

    proptest! {
        /// Bytes are conserved: header, values and padding make up the whole tuple, every value is
        /// aligned, and none overlaps the next.
        #[test]
        fn bytes_are_conserved(
            widths in proptest::collection::vec((0..6_usize, 0_u64..300), 0..40)
        ) {
            let types = ["int2", "int8", "text", "uuid", "bool", "int8[]"];
            let columns: Vec<_> = widths
                .iter()
                .map(|&(which, width)| match types[which] {
                    "text" => column("text", Some(width)),
                    "int8[]" => column("int8[]", Some(width + 12)),
                    other if width % 7 == 0 => null(other),
                    other => column(other, None),
                })
                .collect();
            let layout = RowLayout::new(columns).unwrap();
            let mut end = layout.hoff();
            for (column, value) in layout.columns().iter().zip(layout.column_layouts()) {
                prop_assert_eq!(value.offset_bytes, end + value.padding_bytes);
                if value.header_bytes != 1 && !column.is_null() {
                    let alignment = column.column_type().typalign().bytes();
                    prop_assert_eq!(value.offset_bytes % alignment, 0);
                }
                end = value.offset_bytes + value.stored_bytes();
            }
            prop_assert_eq!(end, layout.tuple_bytes());
        }
    }
}
