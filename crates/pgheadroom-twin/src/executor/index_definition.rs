//! What CREATE INDEX says of an index.

use pgheadroom_layout::btree::BtreeFillfactor;

use crate::expression::Expression;
pub use crate::gin::{GinOptions, GinSettings};

/// Kinds of indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexMethod {
    /// B-tree.
    Btree,
    /// Block ranges.
    Brin,
    /// Hash.
    Hash,
    /// GIN.
    Gin,
    /// Another, of which nothing is played but which updates it keeps from being HOT.
    Unpriced,
}

/// The order of a key column in a B-tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyOrder {
    /// DESC.
    pub is_descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

/// A key column of an index.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexKey {
    /// A column of the table, by position.
    Column(usize),
    /// An expression.
    Expression(Expression),
}

/// An index of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexDefinition {
    /// Its name, for messages; empty where nobody gave one.
    pub name: String,
    /// Its kind.
    pub method: IndexMethod,
    /// Its key columns.
    pub keys: Vec<IndexKey>,
    /// Columns that it only carries along.
    pub include: Vec<usize>,
    /// Which rows it has; all without one.
    pub predicate: Option<Expression>,
    /// Whether keys are unique.
    pub is_unique: bool,
    /// Fillfactor of a B-tree's leaves, or of a hash index's buckets.
    pub fillfactor: BtreeFillfactor,
    /// The option `deduplicate_items`.
    pub deduplicate_items: bool,
    /// Orders of the first key columns; the others are ascending, with NULLs last.
    pub order: Vec<KeyOrder>,
    /// NULLS NOT DISTINCT.
    pub nulls_not_distinct: bool,
    /// Heap pages of a range of a BRIN.
    pub pages_per_range: u32,
    /// Of the key columns of a GIN, in order.
    pub gin_operators: Vec<GinOperators>,
    /// What a GIN was told.
    pub gin: GinOptions,
}

/// Operator classes of GIN whose keys are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // PostgreSQL's names
pub enum GinOperators {
    ArrayOps,
    TsvectorOps,
    JsonbOps,
    JsonbPathOps,
    HstoreOps,
    TrgmOps,
}

impl IndexDefinition {
    /// A B-tree over columns with the default options.
    ///
    /// # Panics
    /// Without key columns.
    #[must_use]
    pub fn on_columns(columns: Vec<usize>, is_unique: bool) -> Self {
        assert!(!columns.is_empty(), "an index has a key");
        Self {
            name: String::new(),
            method: IndexMethod::Btree,
            keys: columns.into_iter().map(IndexKey::Column).collect(),
            include: Vec::new(),
            predicate: None,
            is_unique,
            fillfactor: BtreeFillfactor::new(90).expect("the default fillfactor"),
            deduplicate_items: true,
            order: Vec::new(),
            nulls_not_distinct: false,
            pages_per_range: PAGES_PER_RANGE,
            gin_operators: Vec::new(),
            gin: GinOptions::default(),
        }
    }
}

/// Source: `BRIN_DEFAULT_PAGES_PER_RANGE`, src/include/access/brin.h.
pub(crate) const PAGES_PER_RANGE: u32 = 128;
