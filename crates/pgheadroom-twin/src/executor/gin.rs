//! A table's GIN index: the keys of its rows' values, and its trees.

use pgheadroom_layout::gin::GIN_MAX_ITEM_SIZE;
use pgheadroom_layout::index_tuple::TOAST_INDEX_TARGET;
use pgheadroom_layout::tuple::{VARATT_SHORT_MAX, VARHDRSZ, VARHDRSZ_SHORT};
use pgheadroom_layout::{Behaviour, LayoutError};

use crate::executor::StatementError;
use crate::executor::index::{Found, Part, parts_of};
use crate::executor::index_definition::{GinOperators, IndexDefinition};
use crate::expression::Expression;
use crate::gin::{Category, GinIndex, Key};
use crate::row::elements::ElementKind;
use crate::row::hash_bytes;
use crate::row::kind::Kind;
use crate::row::{Row, RowType, Texts};
use crate::text::Text;
use crate::wal::Wal;
use crate::wrap::{ARRAY_HEAD, Wrap};

/// Bytes of an array of one string, of a jsonb or hstore of one pair, and of a tsvector of one
/// word, before the string.
const TEXTS_HEAD: usize = ARRAY_HEAD as usize + 4;
const PAIR_HEAD: usize = 13;
const WORD_HEAD: usize = 8;
/// Marks of jsonb's keys and values, and of long ones, of which the hash is kept.
///
/// Source: `JGINFLAG_KEY`, `JGINFLAG_STR`, `JGINFLAG_HASHED`, `JGIN_MAXLENGTH`,
/// src/include/utils/jsonb.h.
const JSONB_KEY: u8 = 1;
const JSONB_STRING: u8 = 5;
const JSONB_HASHED: u8 = 0x10;
const JSONB_LENGTH_MAX: usize = 125;
/// Source: `KEYFLAG`, `VALFLAG`, contrib/hstore/hstore_gin.c.
const HSTORE_KEY: u8 = b'K';
const HSTORE_VALUE: u8 = b'V';

/// A GIN index.
#[derive(Debug)]
pub(super) struct Gin {
    pub index: GinIndex,
    pub keys: Keys,
}

/// What keys a row has.
#[derive(Debug)]
pub(super) struct Keys {
    parts: Vec<(Part, GinOperators)>,
    predicate: Option<Expression>,
}

impl Gin {
    /// An index without entries.
    pub fn new(
        behaviour: Behaviour,
        definition: IndexDefinition,
        row_type: &RowType,
        wal: &mut Wal,
    ) -> Self {
        let parts = parts_of(definition.keys, row_type).into_iter();
        Self {
            index: GinIndex::new(behaviour, definition.gin, wal),
            keys: Keys {
                parts: parts.zip(definition.gin_operators).collect(),
                predicate: definition.predicate,
            },
        }
    }

    /// It is new, and its transaction ends.
    pub fn log_new(&self, wal: &mut Wal) {
        let [main, _] = self.index.forks();
        wal.log_fork(main, &self.index.holes());
        wal.end_new_fork(main, self.index.page_count());
    }
}

impl Keys {
    /// What they are made of.
    pub fn sources(&self) -> (Option<&Expression>, impl Iterator<Item = &Part>) {
        let parts = self.parts.iter().map(|(part, _)| part);
        (self.predicate.as_ref(), parts)
    }

    /// The keys of a row, column by column and each column's in order; none where the predicate
    /// leaves the row out.
    ///
    /// Source: `ginExtractEntries`, src/backend/access/gin/ginutil.c (REL_18_STABLE).
    pub fn of(&self, row: Row<'_>) -> Result<Vec<Key>, StatementError> {
        let mut all = Vec::new();
        if let Some(predicate) = &self.predicate
            && !predicate.is_true(row)?
        {
            return Ok(all);
        }
        for (number, (part, operators)) in (1..).zip(&self.parts) {
            let column = (self.parts.len() > 1).then_some(number);
            let found = part.found(row)?;
            if found == Found::Null {
                all.push(Key::placeholder(column, Category::NullItem));
                continue;
            }
            let value = found.text(row).expect("a string").to_bytes();
            let mut keys = operators.extract(part.kind, &value, column, row.texts);
            if keys.is_empty() {
                keys.push(Key::placeholder(column, Category::EmptyItem));
            }
            keys.sort_unstable();
            keys.dedup();
            all.append(&mut keys);
        }
        // Source: `GinFormTuple`, src/backend/access/gin/ginentrypage.c (REL_18_STABLE).
        let widest = all.iter().map(Key::tuple_bytes).max().unwrap_or(0);
        if widest > GIN_MAX_ITEM_SIZE {
            return Err(StatementError::Layout(LayoutError::GinTupleTooBig {
                tuple_bytes: widest.into(),
                max_bytes: GIN_MAX_ITEM_SIZE,
            }));
        }
        Ok(all)
    }
}

impl GinOperators {
    /// The operator class of this name, or the default one of a type; `None` where its keys are
    /// not known.
    pub(crate) fn of(name: &str, kind: Kind) -> Option<Self> {
        let (default, others): (_, &[(&str, Self)]) = match kind {
            Kind::Elements(elements) => {
                let alone = match elements.kind {
                    ElementKind::Words => Kind::Wrapped(Wrap::TsVector),
                    ElementKind::Jsonb => Kind::Wrapped(Wrap::Jsonb),
                    // All arrays have one class.
                    _ => Kind::Wrapped(Wrap::Texts),
                };
                return Self::of(name, alone);
            }
            Kind::Integers(_) | Kind::Wrapped(Wrap::Texts | Wrap::Varchars) => {
                (Some(Self::ArrayOps), &[("array_ops", Self::ArrayOps)])
            }
            Kind::Wrapped(Wrap::TsVector) => {
                let others = &[("tsvector_ops", Self::TsvectorOps)];
                (Some(Self::TsvectorOps), others)
            }
            Kind::Wrapped(Wrap::Jsonb) => {
                let others = &[
                    ("jsonb_ops", Self::JsonbOps),
                    ("jsonb_path_ops", Self::JsonbPathOps),
                ];
                (Some(Self::JsonbOps), others)
            }
            Kind::Wrapped(Wrap::Hstore) => {
                let others = &[("gin_hstore_ops", Self::HstoreOps)];
                (Some(Self::HstoreOps), others)
            }
            Kind::Text { .. } => (None, &[("gin_trgm_ops", Self::TrgmOps)]),
            _ => return None,
        };
        if name.is_empty() {
            return default;
        }
        others.iter().find(|(one, _)| *one == name).map(|one| one.1)
    }

    /// A value's keys, in no order.
    ///
    /// Source: `ginarrayextract`, src/backend/access/gin/ginarrayproc.c; `gin_extract_tsvector`,
    /// src/backend/utils/adt/tsginidx.c; `gin_extract_jsonb` and `gin_extract_jsonb_path`,
    /// jsonb_gin.c; `gin_extract_hstore`, contrib/hstore/hstore_gin.c; `gin_extract_value_trgm`,
    /// contrib/pg_trgm/trgm_gin.c (REL_18_STABLE).
    fn extract(self, kind: Kind, value: &[u8], column: Option<u16>, texts: &Texts) -> Vec<Key> {
        let text = |bytes: &[u8]| Key::of_text(column, bytes, stored(bytes, texts));
        if let Kind::Elements(elements) = kind {
            let parts = elements.parts(value).into_iter();
            return parts
                .map(|part| match (self, elements.kind) {
                    (_, ElementKind::Integers { width, .. }) => {
                        let mut order = part.to_vec(); // they are not negative
                        order.reverse();
                        Key::of_number(column, &order, width.into())
                    }
                    (Self::JsonbOps, _) => text(&jsonb_key(JSONB_KEY, part)),
                    (Self::JsonbPathOps, _) => path_key(column, hash_bytes(part)),
                    _ => text(part),
                })
                .collect();
        }
        match self {
            Self::ArrayOps => match kind {
                Kind::Integers(integers) => {
                    // As unsigned, with the sign's bit the other way round.
                    let width: u32 = integers.width.into();
                    let sign = 1_i64 << (8 * width - 1);
                    let order = (integers.number(value) ^ sign).to_be_bytes();
                    vec![Key::of_number(column, &order[8 - width as usize..], width)]
                }
                _ => {
                    let size = &value[ARRAY_HEAD as usize..TEXTS_HEAD];
                    let size = u32::from_le_bytes(size.try_into().expect("4 bytes")) >> 2;
                    vec![text(&value[TEXTS_HEAD..(ARRAY_HEAD + size) as usize])]
                }
            },
            Self::TsvectorOps => vec![text(&value[WORD_HEAD..])],
            Self::JsonbOps => {
                let (key, string) = pair(value);
                vec![
                    text(&jsonb_key(JSONB_KEY, key)),
                    text(&jsonb_key(JSONB_STRING, string)),
                ]
            }
            Self::JsonbPathOps => {
                let (key, string) = pair(value);
                let path = hash_bytes(key).rotate_left(1) ^ hash_bytes(string);
                vec![path_key(column, path)]
            }
            Self::HstoreOps => {
                let (key, string) = pair(value);
                let marked = |mark: u8, bytes: &[u8]| text(&[&[mark], bytes].concat());
                vec![marked(HSTORE_KEY, key), marked(HSTORE_VALUE, string)]
            }
            Self::TrgmOps => trigrams(value)
                .iter()
                .map(|number| Key::of_number(column, number, 4))
                .collect(),
        }
    }
}

/// The hash of a path, which is compared as a signed number.
fn path_key(column: Option<u16>, path: u32) -> Key {
    Key::of_number(column, &(path ^ 1 << 31).to_be_bytes(), 4)
}

/// The key and the value of one pair.
fn pair(value: &[u8]) -> (&[u8], &[u8]) {
    (&value[PAIR_HEAD - 1..PAIR_HEAD], &value[PAIR_HEAD..])
}

/// Source: `make_text_key`, src/backend/utils/adt/jsonb_gin.c (REL_18_STABLE).
fn jsonb_key(mark: u8, bytes: &[u8]) -> Vec<u8> {
    if bytes.len() <= JSONB_LENGTH_MAX {
        return [&[mark], bytes].concat();
    }
    let hash = format!("{:08x}", hash_bytes(bytes));
    [&[mark | JSONB_HASHED], hash.as_bytes()].concat()
}

/// The trigrams of a string, each as a number with its highest byte first: of each word of letters
/// and digits, in lower case, with two blanks before it and one behind. Differs: a letter beyond
/// ASCII, which only a constant of an expression can have, ends a word.
///
/// Source: `generate_trgm_only`, contrib/pg_trgm/trgm_op.c; `trgm2int`, trgm_gin.c
/// (REL_15_STABLE, REL_18_STABLE).
fn trigrams(value: &[u8]) -> Vec<[u8; 4]> {
    let mut found = Vec::new();
    for word in value.split(|byte| !byte.is_ascii_alphanumeric()) {
        if word.is_empty() {
            continue;
        }
        let word = word.to_ascii_lowercase();
        let padded = [b"  ", word.as_slice(), b" "].concat();
        let threes = padded.windows(3);
        found.extend(threes.map(|three| [0, three[0], three[1], three[2]]));
    }
    found
}

/// Bytes of a string in an index tuple, with its header, and its alignment.
///
/// An entry is of another type than its column, and so by the default method, whatever the column
/// says.
///
/// Source: `index_form_tuple_context`, src/backend/access/common/indextuple.c, and
/// `ConstructTupleDescriptor`, src/backend/catalog/index.c (REL_18_STABLE).
fn stored(bytes: &[u8], texts: &Texts) -> (u32, u32) {
    let length = u32::try_from(bytes.len()).expect("a value below 1 GB");
    if length + VARHDRSZ > TOAST_INDEX_TARGET
        && let Some(compressed) = texts.compress(&Text::from_bytes(bytes), None)
    {
        let compressed = u32::try_from(compressed.len()).expect("a compressed string");
        return (compressed + 2 * VARHDRSZ, 4);
    }
    if length + VARHDRSZ_SHORT <= VARATT_SHORT_MAX {
        (length + VARHDRSZ_SHORT, 1)
    } else {
        (length + VARHDRSZ, 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is neither letter nor digit parts words; case does not count.
    #[test]
    fn trigrams_are_those_of_words() {
        let text = |value: &[u8]| -> Vec<String> {
            let found = trigrams(value).into_iter();
            let three = |number: [u8; 4]| String::from_utf8(number[1..].to_vec()).unwrap();
            found.map(three).collect()
        };
        assert_eq!(text(b"cAt"), ["  c", " ca", "cat", "at "]);
        assert_eq!(text(b"-a1,, B"), ["  a", " a1", "a1 ", "  b", " b "]);
        assert!(text(b"").is_empty() && text(b" - ").is_empty());
    }
}
