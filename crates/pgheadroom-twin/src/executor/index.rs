//! An index of a table: which rows it has, their keys, the sizes of its tuples.

use std::cell::RefCell;
use std::collections::HashMap;

use pgheadroom_layout::compression::Method;
use pgheadroom_layout::index_tuple::TOAST_INDEX_TARGET;
use pgheadroom_layout::tuple::{VARATT_SHORT_MAX, VARHDRSZ, VARHDRSZ_SHORT};
use pgheadroom_layout::{Behaviour, OffsetNumber, Storage};

use crate::btree::{self, Btree, Piece, SHAPES_MAX, ScannedPage, ShapeId, TupleSizes};
use crate::checkpoint::ForkId;
use crate::executor::StatementError;
use crate::executor::index_definition::{IndexDefinition, IndexKey, IndexMethod, KeyOrder};
use crate::executor::text_order::{TextOrder, needs_labels};
use crate::expression::Expression;
use crate::page::Tid;
use crate::row::cells::KeptSlots;
use crate::row::kind::Kind;
use crate::row::{Assignments, Form, NULL_SLOT, Row, RowType, Texts, numeric_payload_bytes};
use crate::text::Text;
use crate::value::Value;
use crate::wal::{IndexLog, Wal};
use crate::wrap::{NAME_DIGITS, Wrap};

/// Most key columns of an index.
///
/// Source: `INDEX_MAX_KEYS`, src/include/pg_config_manual.h.
const MAX_KEY_COLUMNS: usize = 32;
/// Key columns that are kept without an allocation.
const FEW_KEY_COLUMNS: usize = 4;

/// Codes of an entry's key columns.
#[derive(Debug, Clone)]
pub(super) enum Key {
    Few([i64; FEW_KEY_COLUMNS], u8),
    Many(Vec<i64>),
}

impl Key {
    pub fn values(&self) -> &[i64] {
        match self {
            Self::Few(values, len) => &values[..usize::from(*len)],
            Self::Many(values) => values,
        }
    }
}

/// What an index has for a row.
#[derive(Debug, Clone)]
pub(super) struct IndexEntry {
    pub key: Key,
    pub shape: ShapeId,
}

/// A column of an index.
#[derive(Debug)]
pub(super) struct Part {
    pub source: IndexKey,
    pub kind: Kind,
    pub align: u32,
    pub width: Option<u32>,
    /// Of strings that have no code of their own.
    pub order: Option<TextOrder>,
    pub direction: KeyOrder,
    /// Of a column that says by which its values are compressed; an expression says nothing.
    ///
    /// Source: `ConstructTupleDescriptor`, src/backend/catalog/index.c (REL_18_STABLE).
    pub compression: Option<Method>,
    /// How the column's values may be shortened; of an expression as its type has it.
    pub storage: Storage,
}

/// An index.
#[derive(Debug)]
pub(super) struct Index {
    pub tree: Btree,
    pub keys: Vec<Part>,
    include: Vec<Part>,
    predicate: Option<Expression>,
    /// Columns of the table whose change keeps an update from being HOT.
    pub blocking: Vec<usize>,
    /// Sizes of entries without NULLs, when all columns have fixed lengths.
    fixed_shape: Option<ShapeId>,
    /// Sizes of other entries, by the columns' payloads: the last ones, up to
    /// [`KNOWN_PAYLOADS_MAX`].
    shapes: HashMap<Box<[u32]>, ShapeId>,
    pub main: ForkId,
    pub fsm: ForkId,
}

/// Combinations of payloads whose shape is remembered; more are computed again. Arbitrary: 5 MB.
const KNOWN_PAYLOADS_MAX: usize = 1 << 16;

/// What stands for NULL among payloads.
const NULL_PAYLOAD: u32 = u32::MAX;
/// Marks compressed payloads, which keep their long header.
const COMPRESSED_PAYLOAD: u32 = 1 << 30;

impl Index {
    /// Its way to the log.
    pub fn log<'a, 'w>(&self, wal: &'a RefCell<&'w mut Wal>) -> IndexLog<'a, 'w> {
        IndexLog {
            wal,
            main: self.main,
            fsm: self.fsm,
        }
    }

    /// Marks the entries of a leaf that a scan found dead. It has kept its pin on the leaf of an
    /// unlogged table only, whose pages have no LSN that would tell of changes.
    ///
    /// Source: `_bt_drop_lock_and_maybe_pin`, src/backend/access/nbtree/nbtsearch.c
    /// (REL_15_STABLE), `so->dropPin` in `btrescan`, src/backend/access/nbtree/nbtree.c
    /// (REL_18_STABLE).
    pub fn kill(&mut self, scanned: &ScannedPage, dead: &[(OffsetNumber, Tid)], wal: &mut Wal) {
        let keeps_pin = wal.is_unlogged(self.main);
        let wal = RefCell::new(wal);
        let mut log = self.log(&wal);
        self.tree.kill(scanned, dead, keeps_pin, &mut log);
    }

    pub fn new(
        behaviour: Behaviour,
        definition: IndexDefinition,
        row_type: &RowType,
        wal: &mut Wal,
    ) -> Result<Self, StatementError> {
        assert_eq!(definition.method, IndexMethod::Btree, "a B-tree");
        let columns = definition.keys.len() + definition.include.len();
        assert!(!definition.keys.is_empty() && columns <= MAX_KEY_COLUMNS);
        let blocking = blocking_columns(&definition);
        let mut keys = parts_of(definition.keys, row_type);
        for (part, &direction) in keys.iter_mut().zip(&definition.order) {
            part.direction = direction;
        }
        for part in &mut keys {
            if part.kind == Kind::Wrapped(Wrap::Name) {
                part.width = Some(NAME_DIGITS + 1); // `name_ops` keeps a cstring
            }
        }
        let include = definition.include.into_iter().map(IndexKey::Column);
        let include = parts_of(include.collect(), row_type);
        let key_columns = u8::try_from(keys.len()).expect("at most 32 key columns");
        let mut tree = Btree::new(
            behaviour,
            btree::Definition {
                key_columns,
                is_unique: definition.is_unique,
                nulls_not_distinct: definition.nulls_not_distinct,
                fillfactor: definition.fillfactor,
                deduplicate_items: definition.deduplicate_items,
                all_equal_image: include.is_empty()
                    && keys
                        .iter()
                        .all(|part| part.kind.has_equal_image(&behaviour)),
            },
        );
        let mut widths = keys.iter().chain(&include).map(|part| part.width);
        let fixed_shape = if widths.all(|width| width.is_some()) {
            let sizes = {
                let widths = keys.iter().chain(&include).filter_map(|part| part.width);
                sizes_of(&keys, &include, widths)?
            };
            tree.shape(sizes)
        } else {
            None
        };
        Ok(Self {
            tree,
            keys,
            include,
            predicate: definition.predicate,
            blocking,
            fixed_shape,
            shapes: HashMap::new(),
            main: wal.add_fork(),
            fsm: wal.add_fork(),
        })
    }

    /// Whether it has every row, by columns.
    pub fn is_whole(&self) -> bool {
        let is_column = |part: &Part| matches!(part.source, IndexKey::Column(_));
        self.predicate.is_none() && self.keys.iter().all(is_column)
    }

    /// Whether its leaves have columns that are only included.
    pub fn has_includes(&self) -> bool {
        !self.include.is_empty()
    }

    /// Whether a foreign key may refer to its key.
    ///
    /// Source: `INDEX_ATTR_BITMAP_KEY` in `RelationGetIndexAttrBitmap`,
    /// src/backend/utils/cache/relcache.c (REL_18_STABLE).
    pub fn is_key(&self) -> bool {
        self.tree.definition().is_unique && self.is_whole()
    }

    /// The column of the table that its keys begin with.
    pub fn first_column(&self) -> Option<usize> {
        match self.keys[0].source {
            IndexKey::Column(column) => Some(column),
            IndexKey::Expression(_) => None,
        }
    }

    /// Whether an UPDATE that assigns these columns leaves the key's columns alone, which says
    /// nothing of their values.
    ///
    /// Source: `index_unchanged_by_update`, src/backend/executor/execIndexing.c (REL_18_STABLE).
    pub fn is_unchanged_by(&self, assignments: &Assignments<'_>) -> bool {
        self.keys.iter().all(|part| match &part.source {
            IndexKey::Column(column) => !assignments.assigns(*column),
            IndexKey::Expression(expression) => {
                let mut columns = expression.columns().iter();
                !columns.any(|&column| assignments.assigns(column))
            }
        })
    }

    /// The column of a unique index over one integer column of the table, of all rows.
    pub fn is_plain_key(&self) -> Option<usize> {
        match (&self.keys[..], &self.predicate) {
            (
                [
                    Part {
                        source: IndexKey::Column(column),
                        kind: Kind::Integer { .. },
                        direction,
                        ..
                    },
                ],
                None,
            ) if self.tree.definition().is_unique && !direction.is_descending => Some(*column),
            _ => None,
        }
    }

    /// Gives labels to the strings of these rows, which the index is built with.
    pub fn learn<'r>(
        &mut self,
        rows: impl Iterator<Item = Row<'r>> + Clone,
    ) -> Result<(), StatementError> {
        for part in self.keys.iter_mut().filter(|part| part.order.is_some()) {
            let mut texts = Vec::new();
            for row in rows.clone() {
                if let Some(text) = part.found(row)?.text(row) {
                    texts.push(part.ordered_by(text));
                }
            }
            part.order = Some(TextOrder::spread_over(texts.into_iter()));
        }
        Ok(())
    }

    /// What its entries are made of.
    pub fn sources(&self) -> (Option<&Expression>, impl Iterator<Item = &Part>) {
        let parts = self.keys.iter().chain(&self.include);
        (self.predicate.as_ref(), parts)
    }

    /// The entry of a row, as the statement that makes it has its values, or as they are stored;
    /// `None` when the predicate leaves it out.
    ///
    /// # Errors
    /// When an expression fails, or the entry is too wide.
    pub fn entry_of(
        &mut self,
        row: Row<'_>,
        statement: Option<u32>,
    ) -> Result<Option<IndexEntry>, StatementError> {
        if let Some(predicate) = &self.predicate
            && !predicate.is_true(row)?
        {
            return Ok(None);
        }
        let mut key = Key::Few([0; FEW_KEY_COLUMNS], 0);
        if self.keys.len() > FEW_KEY_COLUMNS {
            key = Key::Many(Vec::with_capacity(self.keys.len()));
        }
        let mut fixed_shape = self.fixed_shape;
        let mut payloads = Vec::new();
        for column in 0..self.keys.len() {
            let found = self.keys[column].found(row)?;
            if found == Found::Null {
                fixed_shape = None;
            }
            if self.fixed_shape.is_none() {
                payloads.push(self.keys[column].payload_bytes(&found, row, statement)?);
            }
            let code = self.code(column, &found, row);
            match &mut key {
                Key::Few(values, len) => {
                    values[column] = code;
                    *len += 1;
                }
                Key::Many(values) => values.push(code),
            }
        }
        for part in &self.include {
            let found = part.found(row)?;
            if found == Found::Null {
                fixed_shape = None;
            }
            if self.fixed_shape.is_none() {
                payloads.push(part.payload_bytes(&found, row, statement)?);
            }
        }
        let shape = match (fixed_shape, self.fixed_shape) {
            (Some(shape), _) => shape,
            (None, None) => self.shape_of(&payloads)?,
            (None, Some(_)) => {
                for part in self.keys.iter().chain(&self.include) {
                    payloads.push(part.payload_bytes(&part.found(row)?, row, statement)?);
                }
                self.shape_of(&payloads)?
            }
        };
        Ok(Some(IndexEntry { key, shape }))
    }

    /// The key and the sizes of a row's entry, where they follow from its slots alone: numbers of
    /// fixed widths without NULLs, and no predicate.
    #[inline]
    pub fn plain_entry_of(&self, slots: KeptSlots<'_>, key: &mut Vec<i64>) -> Option<ShapeId> {
        if self.predicate.is_some() {
            return None;
        }
        let shape = self.fixed_shape?;
        key.clear();
        for (position, part) in self.keys.iter().chain(&self.include).enumerate() {
            let IndexKey::Column(column) = part.source else {
                return None;
            };
            let slot = slots.get(column);
            if slot == NULL_SLOT || part.kind.is_kept() {
                return None;
            }
            if position < self.keys.len() {
                key.push(part.directed(part.plain_code(slot)));
            }
        }
        Some(shape)
    }

    /// The column of which an entry's key is a row's slot as it is, NULLs apart, and the sizes of
    /// such entries: that of an ascending index over one integer column and all rows.
    pub fn slots_as_keys(&self) -> Option<(usize, ShapeId)> {
        let [part] = &self.keys[..] else {
            return None;
        };
        let is_plain = matches!(part.kind, Kind::Integer { .. })
            && !part.direction.is_descending
            && self.predicate.is_none()
            && !self.has_includes();
        match part.source {
            IndexKey::Column(column) if is_plain => Some((column, self.fixed_shape?)),
            _ => None,
        }
    }

    fn shape_of(&mut self, payloads: &[u32]) -> Result<ShapeId, StatementError> {
        if let Some(&shape) = self.shapes.get(payloads) {
            return Ok(shape);
        }
        let sizes = sizes_of(&self.keys, &self.include, payloads.iter().copied())?;
        let shape = self.tree.shape(sizes).ok_or_else(|| {
            StatementError::Unsupported(format!(
                "an index whose entries have more than {SHAPES_MAX} different sizes: leave the \
                 index out, or give its columns fewer different widths"
            ))
        })?;
        if self.shapes.len() >= KNOWN_PAYLOADS_MAX {
            self.shapes.clear(); // found again from the sizes
        }
        self.shapes.insert(payloads.into(), shape);
        Ok(shape)
    }
}

/// A value of an index column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    Null,
    /// What is no string, as slots have it.
    Plain(i64),
    /// A string of the table.
    Kept(i64),
    /// A string that an expression made.
    Made(Text),
}

impl Found {
    pub fn text<'a>(&'a self, row: Row<'a>) -> Option<&'a Text> {
        match self {
            Self::Kept(slot) => Some(row.texts.get(*slot)),
            Self::Made(text) => Some(text),
            _ => None,
        }
    }
}

/// Columns of an index out of their definitions.
pub(super) fn parts_of(keys: Vec<IndexKey>, row_type: &RowType) -> Vec<Part> {
    let keys = keys.into_iter().map(|key| match key {
        IndexKey::Expression(expression) => match expression.plain_column() {
            Some(column) => IndexKey::Column(column),
            None => IndexKey::Expression(expression),
        },
        column => column,
    });
    keys.map(|source| {
        let (kind, align, width, compression, storage) = match &source {
            IndexKey::Column(column) => {
                let layout = &row_type.columns[*column];
                (
                    layout.kind,
                    layout.align,
                    layout.width,
                    layout.compression,
                    layout.storage,
                )
            }
            IndexKey::Expression(expression) => {
                let kind = expression.kind();
                let (align, width) = kind.layout();
                (kind, align, width, None, Storage::Extended)
            }
        };
        Part {
            source,
            kind,
            align,
            width,
            order: needs_labels(kind).then(TextOrder::default),
            direction: KeyOrder::default(),
            compression,
            storage,
        }
    })
    .collect()
}

impl Part {
    pub fn found(&self, row: Row<'_>) -> Result<Found, StatementError> {
        let expression = match &self.source {
            IndexKey::Column(column) => {
                return Ok(match row.slots.get(*column) {
                    NULL_SLOT => Found::Null,
                    slot if self.kind.is_kept() => Found::Kept(slot),
                    slot => Found::Plain(slot),
                });
            }
            IndexKey::Expression(expression) => expression,
        };
        Ok(match expression.evaluate(row)? {
            Value::Null => Found::Null,
            Value::Integer(number) => Found::Plain(number),
            // -0.0 is equal to 0.0, and becomes it by the addition.
            Value::Float(number) => Found::Plain((number + 0.0).to_bits().cast_signed()),
            Value::Text(text) => Found::Made(text),
        })
    }

    /// A long value as an entry has it compressed; none where it stays as it is.
    pub fn compressed(&self, text: &Text, texts: &Texts) -> Option<Vec<u8>> {
        let may_be = matches!(self.storage, Storage::Extended | Storage::Main);
        may_be.then(|| texts.compress(text, self.compression))?
    }

    /// Bytes of a value without its header, and whether they are compressed.
    ///
    /// Source: `index_form_tuple_context`, src/backend/access/common/indextuple.c (REL_18_STABLE).
    pub fn payload_bytes(
        &self,
        found: &Found,
        row: Row<'_>,
        statement: Option<u32>,
    ) -> Result<u32, StatementError> {
        let text = match (found, self.width, self.kind) {
            (Found::Null, _, _) => return Ok(NULL_PAYLOAD),
            (_, Some(width), _) => return Ok(width),
            (Found::Plain(slot), None, Kind::Numeric { scale, .. }) => {
                return Ok(numeric_payload_bytes(*slot, scale));
            }
            (Found::Plain(_), None, Kind::Counted(counted)) => {
                return Ok(counted.varlena_bytes().expect("a length of its own"));
            }
            _ => found.text(row).expect("a string"),
        };
        let form = match found {
            Found::Kept(slot) => row.texts.form_in_slot(*slot, statement),
            _ => None,
        };
        match form {
            Some(Form::Compressed { payload_bytes }) => Ok(payload_bytes | COMPRESSED_PAYLOAD),
            Some(Form::External { .. }) => Err(StatementError::Unsupported(
                "an index over a string in the TOAST table: leave the index out, or make the \
                 string narrower"
                    .to_owned(),
            )),
            None if text.len() + VARHDRSZ > TOAST_INDEX_TARGET => Ok(self
                .compressed(text, row.texts)
                .map_or(text.len(), |bytes| {
                    let bytes = u32::try_from(bytes.len()).expect("a compressed string");
                    (bytes + VARHDRSZ) | COMPRESSED_PAYLOAD
                })),
            None => Ok(text.len()),
        }
    }
}

/// Sizes of an entry whose columns have these payloads.
///
/// Source: `index_form_tuple`, src/backend/access/common/indextuple.c (REL_18_STABLE).
fn sizes_of(
    keys: &[Part],
    include: &[Part],
    payloads: impl Iterator<Item = u32>,
) -> Result<TupleSizes, StatementError> {
    let pieces: Vec<Piece> = keys
        .iter()
        .chain(include)
        .zip(payloads)
        .map(|(part, payload)| match part.width {
            _ if payload == NULL_PAYLOAD => Piece::Null,
            Some(width) => Piece::Aligned {
                align: part.align,
                bytes: width,
            },
            None if payload & COMPRESSED_PAYLOAD != 0 => Piece::Aligned {
                align: part.align,
                bytes: (payload & !COMPRESSED_PAYLOAD) + VARHDRSZ,
            },
            None if payload + VARHDRSZ_SHORT <= VARATT_SHORT_MAX => Piece::Aligned {
                align: 1,
                bytes: payload + VARHDRSZ_SHORT,
            },
            None => Piece::Aligned {
                align: part.align,
                bytes: payload + VARHDRSZ,
            },
        })
        .collect();
    Ok(TupleSizes::of_pieces(&pieces, keys.len())?)
}

/// Columns that an update has to leave alone to be HOT: those of keys, expressions and predicate,
/// and those that are only included.
///
/// Source: `RelationGetIndexAttrBitmap` with `INDEX_ATTR_BITMAP_HOT_BLOCKING`,
/// src/backend/utils/cache/relcache.c (REL_18_STABLE).
pub(super) fn blocking_columns(definition: &IndexDefinition) -> Vec<usize> {
    let mut columns = Vec::new();
    columns.extend_from_slice(&definition.include);
    for key in &definition.keys {
        match key {
            IndexKey::Column(column) => columns.push(*column),
            IndexKey::Expression(expression) => columns.extend(expression.columns()),
        }
    }
    if let Some(predicate) = &definition.predicate {
        columns.extend(predicate.columns());
    }
    columns.sort_unstable();
    columns.dedup();
    columns
}
