//! The fields of an index in a profile, under their names in the file.

use serde::Deserialize;

/// An index.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexSpec {
    /// Its name.
    pub name: String,
    /// Key columns; empty with expressions.
    #[serde(default)]
    pub columns: Vec<String>,
    /// Key expressions.
    #[serde(default)]
    pub expressions: Vec<String>,
    /// Whether keys are unique.
    pub unique: bool,
    /// Access method.
    pub method: Method,
    /// Columns that ride along.
    #[serde(default)]
    pub include: Vec<String>,
    /// Its predicate.
    #[serde(rename = "where")]
    pub predicate: Option<String>,
    /// Of its leaves, in percent; 90 when absent.
    pub fillfactor: Option<i64>,
    /// On when absent.
    pub deduplicate_items: Option<bool>,
    /// `DESC NULLS LAST` and the like, of the key columns in their order.
    #[serde(default)]
    pub order: Vec<String>,
    /// Operator classes, of the key columns in their order; empty: the type's default.
    #[serde(default)]
    pub opclass: Vec<String>,
    /// Whether NULLs are equal in a unique index.
    #[serde(default)]
    pub nulls_not_distinct: bool,
    /// Of a BRIN; 128 when absent.
    #[serde(default)]
    pub pages_per_range: Option<u32>,
}

impl IndexSpec {
    /// Whether rows may be found by it: unique, over columns, with all rows.
    #[must_use]
    pub fn is_key(&self) -> bool {
        self.unique && self.expressions.is_empty() && self.predicate.is_none()
    }
}

/// Access methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // PostgreSQL's words
pub enum Method {
    Btree,
    Brin,
    Hash,
    Gin,
    Gist,
    Spgist,
}
