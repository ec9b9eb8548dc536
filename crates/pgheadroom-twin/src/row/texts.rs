//! The strings of a table's rows, and how each is stored.
//!
//! Rows refer to them by number, so that a row is one `i64` for each column. A version that keeps
//! a string keeps its number, and with it the compressed or out-of-line form, as PostgreSQL copies
//! the stored value. The first few strings are kept once and for good, for many rows may share
//! them, such as a filler of blanks.

use std::collections::HashMap;

use pgheadroom_layout::compression::Method;

use crate::text::Text;

/// Strings that are shared: the first so many.
const SHARED_MAX: usize = 4;

/// How a string is stored, if not as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Compressed in the row.
    Compressed {
        /// Compressed bytes and the original length, without the 4-byte header.
        payload_bytes: u32,
    },
    /// In the TOAST table.
    External {
        /// Its OID there.
        value_id: u32,
        /// Bytes in its chunks, compressed or not.
        stored_bytes: u32,
    },
}

/// A string in the TOAST table.
#[derive(Debug, Clone)]
pub(crate) struct OutOfLine {
    pub text: Text,
    pub is_compressed: bool,
    /// By which, if its column says so.
    pub method: Option<Method>,
}

/// A string that is compressed or out of line.
#[derive(Debug)]
struct Kept {
    form: Form,
    /// The statement that made it so.
    made_by: u32,
    /// By which it is compressed, if its column says so.
    method: Option<Method>,
}

/// Strings by number.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    texts: Vec<Text>,
    free: Vec<i64>,
    /// Of strings that are compressed or out of line.
    forms: HashMap<i64, Kept>,
    /// By which they are compressed where their column says nothing.
    method: Method,
}

impl Texts {
    /// None yet; `method` compresses those whose column says nothing.
    pub fn compressed_by(method: Method) -> Self {
        Self {
            method,
            ..Self::default()
        }
    }

    /// Keeps a string; its number.
    pub fn add(&mut self, text: Text) -> i64 {
        if let Some(slot) = self.shared_slot(&text) {
            return slot;
        }
        self.put(text)
    }

    /// Keeps a string in another form, which a statement gives it; its number. `method` is its
    /// column's.
    pub fn add_form(
        &mut self,
        text: Text,
        form: Form,
        made_by: u32,
        method: Option<Method>,
    ) -> i64 {
        while self.texts.len() < SHARED_MAX {
            self.texts.push(Text::new("")); // a shared one would be found as it is
        }
        let slot = self.put(text);
        let kept = Kept {
            form,
            made_by,
            method,
        };
        self.forms.insert(slot, kept);
        slot
    }

    fn put(&mut self, text: Text) -> i64 {
        if let Some(slot) = self.free.pop() {
            self.texts[index(slot)] = text;
            return slot;
        }
        let slot = i64::try_from(self.texts.len()).expect("strings in memory");
        self.texts.push(text);
        slot
    }

    fn shared_slot(&self, text: &Text) -> Option<i64> {
        let shared = self.texts.iter().take(SHARED_MAX);
        let found = shared
            .zip(0..)
            .find(|(known, _)| known.is_same_making(text));
        found.map(|(_, slot)| slot)
    }

    /// Whether rows with the same string share this number.
    pub fn is_shared(slot: i64) -> bool {
        index(slot) < SHARED_MAX
    }

    /// The string of a number.
    pub fn get(&self, slot: i64) -> &Text {
        &self.texts[index(slot)]
    }

    /// Its form; `None` when it is stored as it is.
    pub fn form(&self, slot: i64) -> Option<Form> {
        if self.forms.is_empty() {
            return None;
        }
        self.forms.get(&slot).map(|kept| kept.form)
    }

    /// The form in which a statement's new row version comes to the indexes: what the heap
    /// shortened in the statement itself is there as it was before.
    ///
    /// Source: `heap_prepare_insert` and `heap_update`, src/backend/access/heap/heapam.c
    /// (REL_18_STABLE), which shorten a copy of the tuple in the slot.
    pub fn form_in_slot(&self, slot: i64, statement: Option<u32>) -> Option<Form> {
        let kept = self.forms.get(&slot)?;
        (statement != Some(kept.made_by)).then_some(kept.form)
    }

    /// By which a string that is compressed is, if its column says so.
    pub fn method_of(&self, slot: i64) -> Option<Method> {
        self.forms.get(&slot)?.method
    }

    /// Whether any string is compressed or out of line.
    pub fn has_forms(&self) -> bool {
        !self.forms.is_empty()
    }

    /// The compressed bytes of a string, if the server would store them; `by` is its column's
    /// method.
    ///
    /// Source: `toast_compress_datum`, src/backend/access/common/toast_internals.c
    /// (REL_18_STABLE), which wants more than two bytes saved, with a header of 8, and takes the
    /// default of now where the column has no method.
    pub fn compress(&self, text: &Text, by: Option<Method>) -> Option<Vec<u8>> {
        let bytes = text.to_bytes();
        let compressed = by.unwrap_or(self.method).compress(&bytes);
        compressed.filter(|compressed| compressed.len() + 8 + 2 < bytes.len())
    }

    /// What stands before a string's compressed bytes: its length as it was, and the method.
    ///
    /// Source: `TOAST_COMPRESS_SET_SIZE_AND_COMPRESS_METHOD`,
    /// src/include/access/toast_internals.h (REL_18_STABLE).
    pub fn compression_header(&self, text: &Text, by: Option<Method>) -> u32 {
        text.len() | by.unwrap_or(self.method).toast_bits()
    }

    /// The strings that are out of line, by their OIDs.
    pub fn out_of_line(&self) -> impl Iterator<Item = (u32, OutOfLine)> {
        self.forms.iter().filter_map(|(&slot, kept)| {
            let Form::External {
                value_id,
                stored_bytes,
            } = kept.form
            else {
                return None;
            };
            let text = self.get(slot).clone();
            let is_compressed = stored_bytes != text.len();
            Some((
                value_id,
                OutOfLine {
                    text,
                    is_compressed,
                    method: kept.method,
                },
            ))
        })
    }

    /// The bytes of a value's chunks.
    ///
    /// Source: `toast_save_datum`, src/backend/access/common/toast_internals.c (REL_18_STABLE).
    pub fn stored(&self, value: &OutOfLine) -> Vec<u8> {
        if !value.is_compressed {
            return value.text.to_bytes();
        }
        let header = self.compression_header(&value.text, value.method);
        let mut bytes = header.to_le_bytes().to_vec();
        bytes.extend(self.compress(&value.text, value.method).unwrap_or_default());
        bytes
    }

    /// Gives up a string that no row refers to any more.
    pub fn remove(&mut self, slot: i64) {
        if index(slot) >= SHARED_MAX {
            self.forms.remove(&slot);
            self.free.push(slot);
        }
    }
}

fn index(slot: i64) -> usize {
    usize::try_from(slot).expect("a string's number")
}
