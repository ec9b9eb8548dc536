//! A key of a GIN index: what it is ordered by, and the bytes of an entry with it.

use pgheadroom_layout::align::MAXIMUM_ALIGNOF;
use pgheadroom_layout::tuple::VARATT_SHORT_MAX;

/// Bytes of an index tuple's header, without and with a null bitmap.
///
/// Source: `IndexInfoFindDataOffset`, src/include/access/itup.h.
const HEADER_BYTES: u32 = 8;
const HEADER_WITH_NULLS_BYTES: u32 = 16;
/// Bytes of a column's number, which an index over several columns has before its keys.
const COLUMN_BYTES: u32 = 2;

/// What stands for a key.
///
/// Source: `GinNullCategory`, src/include/access/ginblock.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Category {
    /// A key.
    Normal,
    /// A value without keys.
    EmptyItem,
    /// NULL.
    NullItem,
}

/// A key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    column: u16,
    category: Category,
    /// Bytes in the order of the operator class; a string's own.
    order: Box<[u8]>,
    /// Bytes of its entry before its rows.
    head_bytes: u32,
    is_text: bool,
}

impl Key {
    /// A key of fixed length that is aligned to it.
    pub fn of_number(column: Option<u16>, order: &[u8], bytes: u32) -> Self {
        Self::new(column, order, (bytes, bytes), false)
    }

    /// A key that is a string, whose bytes in an index tuple, with its header, and alignment are
    /// these.
    pub fn of_text(column: Option<u16>, order: &[u8], stored: (u32, u32)) -> Self {
        Self::new(column, order, stored, true)
    }

    /// `column` is its number where the index has several.
    fn new(column: Option<u16>, order: &[u8], (bytes, align): (u32, u32), is_text: bool) -> Self {
        let before = column.map_or(0, |_| COLUMN_BYTES.next_multiple_of(align));
        let head = (HEADER_BYTES + before + bytes).next_multiple_of(MAXIMUM_ALIGNOF);
        Self {
            column: column.unwrap_or(0),
            category: Category::Normal,
            order: order.into(),
            head_bytes: head,
            is_text,
        }
    }

    /// What stands for a value without keys.
    ///
    /// Source: `GinFormTuple`, src/backend/access/gin/ginentrypage.c (REL_18_STABLE).
    pub fn placeholder(column: Option<u16>, category: Category) -> Self {
        let before = column.map_or(0, |_| COLUMN_BYTES);
        let tuple = (HEADER_WITH_NULLS_BYTES + before).next_multiple_of(MAXIMUM_ALIGNOF);
        // The category's byte.
        let head = tuple.max(HEADER_WITH_NULLS_BYTES + before + 1);
        Self {
            column: column.unwrap_or(0),
            category,
            order: Box::default(),
            head_bytes: head.next_multiple_of(2),
            is_text: false,
        }
    }

    /// Its bytes in an entry, behind the tuple's header: the column's number where the index has
    /// several, and the key. Of numbers the sign may be another one.
    pub fn stored_bytes(&self) -> Vec<u8> {
        let column = (self.column > 0).then_some(self.column);
        let mut bytes: Vec<u8> = column.map_or_else(Vec::new, |number| number.to_le_bytes().into());
        if self.category != Category::Normal {
            bytes.resize(bytes.len() + 8, 0); // the bitmap of NULLs
            return bytes;
        }
        let length = self.order.len();
        if !self.is_text {
            let start = bytes.len().next_multiple_of(length.min(8));
            bytes.resize(start, 0);
            bytes.extend(self.order.iter().rev());
        } else if length < VARATT_SHORT_MAX as usize {
            bytes.push(u8::try_from(2 * length + 3).unwrap_or(u8::MAX));
            bytes.extend_from_slice(&self.order);
        } else {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            let length = u32::try_from(length + 4).unwrap_or(u32::MAX);
            bytes.extend((length << 2).to_le_bytes());
            bytes.extend_from_slice(&self.order);
        }
        bytes
    }

    /// Bytes of an entry before its list of rows.
    pub const fn head_bytes(&self) -> u32 {
        self.head_bytes
    }

    /// Bytes of an entry without rows.
    pub const fn tuple_bytes(&self) -> u32 {
        self.head_bytes().next_multiple_of(MAXIMUM_ALIGNOF)
    }

    /// Bytes of a string in memory, as an index tuple has it (`is_packed`), or as it is made;
    /// `None` of what is passed by value.
    pub fn datum_bytes(&self, is_packed: bool) -> Option<u64> {
        let bytes = self.order.len() as u64;
        let is_short = is_packed && bytes < u64::from(VARATT_SHORT_MAX);
        self.is_text.then_some(bytes + if is_short { 1 } else { 4 })
    }
}
