//! The tuple that a row's slots become: its length, its header's end, its bytes.

use pgheadroom_layout::align::maxalign;
use pgheadroom_layout::page::SIZE_OF_HEAP_TUPLE_HEADER;
use pgheadroom_layout::tuple::{TOAST_POINTER_SIZE, VARATT_SHORT_MAX, VARHDRSZ, VARHDRSZ_SHORT};

use crate::row::kind::Kind;
use crate::row::{ColumnLayout, Form, NULL_SLOT, RowType, Texts, numeric};

/// Source: `VARTAG_ONDISK`, src/include/varatt.h.
const VARTAG_ONDISK: u8 = 18;
/// OID of the TOAST table, the same in all pointers of a table; any will do.
const TOAST_RELATION: u32 = 16_384;

/// How long a tuple is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Measured {
    /// Length, not rounded (`lp_len`).
    pub tuple_bytes: u32,
    /// Where its user data begin (`t_hoff`).
    pub hoff: u32,
}

impl Kind {
    /// Writes a value that is no string, without a length header; `width` as the column has it.
    pub(crate) fn write_number(self, width: Option<u32>, slot: i64, out: &mut Vec<u8>) {
        match self {
            Self::Numeric { scale, .. } => numeric::write_to(slot, scale, out),
            Self::Counted(counted) => counted.write_to(slot, width.unwrap_or(0), out),
            #[allow(clippy::cast_possible_truncation)] // it was a float4 before
            Self::Float4 => {
                let number = f64::from_bits(slot.cast_unsigned()) as f32;
                out.extend_from_slice(&number.to_le_bytes());
            }
            _ => {
                let width = width.expect("a fixed length") as usize;
                out.extend_from_slice(&slot.to_le_bytes()[..width]);
            }
        }
    }
}

/// The next multiple of an alignment, which is a power of two.
#[inline]
const fn aligned_to(end: u32, align: u32) -> u32 {
    (end + align - 1) & !(align - 1)
}

impl ColumnLayout {
    /// Where the value begins when the one before ends at `end`, and where it ends.
    pub(crate) fn extent(&self, end: u32, slot: i64, texts: &Texts) -> (u32, u32) {
        if let Some(width) = self.width {
            let start = aligned_to(end, self.align);
            return (start, start + width);
        }
        let form = if self.kind.is_kept() {
            texts.form(slot)
        } else {
            None
        };
        let payload = match form {
            Some(Form::External { .. }) => return (end, end + TOAST_POINTER_SIZE),
            Some(Form::Compressed { payload_bytes }) => {
                let start = aligned_to(end, self.align);
                return (start, start + VARHDRSZ + payload_bytes);
            }
            None => self.payload_bytes(slot, texts),
        };
        if self.is_packable && payload + VARHDRSZ_SHORT <= VARATT_SHORT_MAX {
            (end, end + VARHDRSZ_SHORT + payload)
        } else {
            let start = aligned_to(end, self.align);
            (start, start + VARHDRSZ + payload)
        }
    }

    /// Bytes of a value without its length header.
    pub(crate) fn payload_bytes(&self, slot: i64, texts: &Texts) -> u32 {
        match (self.kind, self.width) {
            (_, Some(width)) => width,
            (Kind::Numeric { scale, .. }, None) => numeric::payload_bytes(slot, scale),
            (Kind::Counted(counted), None) => counted.varlena_bytes().expect("a length of its own"),
            (_, None) => texts.get(slot).len(),
        }
    }

    /// Writes a value of so many bytes, its header included.
    ///
    /// Source: `varattrib_4b`, `varattrib_1b_e` and `varatt_external`, src/include/varatt.h.
    fn write(&self, stored_bytes: u32, slot: i64, texts: &Texts, out: &mut Vec<u8>) {
        let form = if self.kind.is_kept() {
            texts.form(slot)
        } else {
            None
        };
        match form {
            Some(Form::Compressed { .. }) => {
                out.extend_from_slice(&((stored_bytes << 2) | 2).to_le_bytes());
                let text = texts.get(slot);
                let by = texts.method_of(slot);
                out.extend_from_slice(&texts.compression_header(text, by).to_le_bytes());
                out.extend(texts.compress(text, by).expect("it was compressed before"));
            }
            Some(Form::External {
                value_id,
                stored_bytes,
            }) => {
                out.extend_from_slice(&[1, VARTAG_ONDISK]);
                let text = texts.get(slot);
                let is_compressed = stored_bytes != text.len();
                let method = if is_compressed {
                    texts.compression_header(text, texts.method_of(slot)) - text.len()
                } else {
                    0
                };
                out.extend_from_slice(&(text.len() + VARHDRSZ).to_le_bytes());
                out.extend_from_slice(&(stored_bytes | method).to_le_bytes());
                out.extend_from_slice(&value_id.to_le_bytes());
                out.extend_from_slice(&TOAST_RELATION.to_le_bytes());
            }
            None => {
                if self.width.is_none() {
                    write_header(stored_bytes, self.payload_bytes(slot, texts), out);
                }
                self.write_payload(slot, texts, out);
            }
        }
    }

    fn write_payload(&self, slot: i64, texts: &Texts, out: &mut Vec<u8>) {
        if self.kind.is_kept() {
            texts.get(slot).write_to(out);
        } else {
            self.kind.write_number(self.width, slot, out);
        }
    }

    /// The bytes of a fixed-width value.
    #[inline]
    pub(super) fn fixed_bytes(&self, slot: i64) -> [u8; 8] {
        if self.kind == Kind::Float4 {
            #[allow(clippy::cast_possible_truncation)] // it was a float4 before
            let number = f64::from_bits(slot.cast_unsigned()) as f32;
            return u64::from(number.to_bits()).to_le_bytes();
        }
        if let Kind::Counted(counted) = self.kind {
            return counted.image(slot);
        }
        slot.to_le_bytes()
    }
}

impl RowType {
    /// Bytes of the header with its null bitmap.
    #[inline]
    pub(crate) fn hoff(&self, slots: &[i64]) -> u32 {
        self.hoff_of(slots.contains(&NULL_SLOT))
    }

    /// The same of a row that has a NULL, or has none.
    #[inline]
    pub(crate) fn hoff_of(&self, has_nulls: bool) -> u32 {
        let bitmap = if has_nulls {
            u32::try_from(self.columns.len().div_ceil(8)).expect("at most 1600 columns")
        } else {
            0
        };
        maxalign(SIZE_OF_HEAP_TUPLE_HEADER + bitmap)
    }

    /// Which columns have a value, a bit each.
    ///
    /// Source: `heap_fill_tuple`, src/backend/access/common/heaptuple.c (REL_18_STABLE).
    pub(crate) fn null_bitmap(&self, slots: &[i64]) -> impl Iterator<Item = u8> {
        let byte = |eight: &[i64]| {
            let bits = eight.iter().rev();
            bits.fold(0, |byte, &slot| byte << 1 | u8::from(slot != NULL_SLOT))
        };
        slots.chunks(8).map(byte)
    }

    /// How long the row's tuple is, before TOAST.
    ///
    /// Source: `heap_form_tuple` and `heap_compute_data_size`,
    /// src/backend/access/common/heaptuple.c (REL_18_STABLE).
    pub fn measure(&self, slots: &[i64], texts: &Texts) -> Measured {
        let hoff = self.hoff(slots);
        let mut end = 0;
        for (column, &slot) in self.columns.iter().zip(slots) {
            if slot != NULL_SLOT {
                end = column.extent(end, slot, texts).1;
            }
        }
        let tuple_bytes = hoff + end;
        Measured { tuple_bytes, hoff }
    }

    /// Writes the user data of the row's tuple.
    ///
    /// Source: `heap_fill_tuple`, src/backend/access/common/heaptuple.c (REL_18_STABLE).
    pub(crate) fn write_data(&self, slots: &[i64], texts: &Texts, out: &mut Vec<u8>) {
        self.write_data_but(slots, |_| false, texts, out);
    }

    /// The same with zeros in the place of values that nobody will look at.
    #[inline]
    pub(super) fn write_data_but(
        &self,
        slots: &[i64],
        is_zeros: impl Fn(usize) -> bool,
        texts: &Texts,
        out: &mut Vec<u8>,
    ) {
        out.clear();
        for (number, (column, &slot)) in self.columns.iter().zip(slots).enumerate() {
            if slot == NULL_SLOT {
                continue;
            }
            let end = u32::try_from(out.len()).expect("a row below 1 GB");
            let (start, new_end) = column.extent(end, slot, texts);
            if is_zeros(number) {
                out.resize(new_end as usize, 0);
                continue;
            }
            out.resize(start as usize, 0);
            column.write(new_end - start, slot, texts, out);
            debug_assert_eq!(out.len(), new_end as usize);
        }
    }
}

/// Length header of a value that is neither compressed nor out of line, on a little-endian machine.
///
/// Source: `SET_VARSIZE_4B` and `SET_VARSIZE_SHORT`, src/include/varatt.h.
fn write_header(stored_bytes: u32, payload_bytes: u32, out: &mut Vec<u8>) {
    if stored_bytes - payload_bytes == VARHDRSZ_SHORT {
        let header = u8::try_from((stored_bytes << 1) | 1).expect("a short value");
        out.push(header);
    } else {
        out.extend_from_slice(&(stored_bytes << 2).to_le_bytes());
    }
}
