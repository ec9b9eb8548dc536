//! The fields of an index in a profile, under their names in the file.

use serde::Deserialize;

use crate::profile::index_load::standing_in;
use crate::profile::{ElementsSpec, TableSpec, WidthSpec};

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
    /// Of a GIN; on when absent.
    #[serde(default)]
    pub fastupdate: Option<bool>,
    /// Of a GIN, in kB; the server's when absent.
    #[serde(default)]
    pub gin_pending_list_limit: Option<u32>,
    /// What stands for expressions that cannot be evaluated.
    #[serde(default)]
    pub stated: Vec<StatedSpec>,
}

/// What is stated of the values of an expression or a predicate.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedSpec {
    /// The expression, as it stands in the index.
    pub expression: String,
    /// Its type, canonical.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Bytes of a string.
    pub width: Option<WidthSpec>,
    /// Different values.
    pub ndistinct: Option<i64>,
    /// Share of NULLs.
    pub null_frac: f64,
    /// Share of rows for which a predicate is true.
    pub true_frac: Option<f64>,
    /// Of the updates that change one of its columns, those that change it.
    pub changed_frac: f64,
    /// The columns that it reads.
    pub columns: Vec<String>,
    /// Whether nobody stated it.
    pub assumed: bool,
    /// Where values have several elements.
    #[serde(default)]
    pub elements: Option<ElementsSpec>,
    /// What a server found a predicate to be true for: values of `columns`, as COPY
    /// writes them.
    #[serde(default)]
    pub true_for: Vec<Vec<String>>,
    /// Likewise false, or NULL.
    #[serde(default)]
    pub false_for: Vec<Vec<String>>,
    /// What makes this run another one.
    #[serde(skip)]
    pub salt: i64,
}

/// Bytes, different values, and shares of runs that try the least of what is not known.
const LEAST: (i64, i64, f64, f64) = (4, 4, 0.02, 0.0);
/// The most, but for the different values, which are as many as are given.
const MOST: (i64, f64, f64) = (40, 0.98, 1.0);

/// What is stated of these tables' expressions, in another run; and whether equal values share an
/// entry in B-trees over types that others stand for, which nobody says. (In a hash index and in a
/// BRIN none do.)
pub(crate) fn vary_stated(tables: &mut [TableSpec], run: u64) {
    for table in tables.iter_mut().filter(|_| run % 2 == 1) {
        let standing_in = standing_in(table).into_iter();
        let standing_in: Vec<String> = standing_in.map(|index| index.name.clone()).collect();
        let is_varied = |index: &&mut IndexSpec| {
            index.method == Method::Btree && standing_in.contains(&index.name)
        };
        for index in table.indexes.iter_mut().filter(is_varied) {
            index.deduplicate_items = Some(false);
        }
    }
    for index in tables.iter_mut().flat_map(|table| &mut table.indexes) {
        for stated in &mut index.stated {
            stated.vary(run);
        }
    }
}

impl StatedSpec {
    /// The same in another run: other values of the same kind, and where nobody stated anything
    /// the least and the most in turn.
    fn vary(&mut self, run: u64) {
        self.salt = i64::try_from(run).unwrap_or(0);
        if !self.assumed || run == 0 {
            return;
        }
        let is_predicate = self.true_frac.is_some();
        let bytes = if run % 2 == 1 {
            let (bytes, ndistinct, truth, changed) = LEAST;
            // A unique index has as many values as rows, whatever they are.
            self.ndistinct = self.ndistinct.map(|most| {
                if most > MANY {
                    most
                } else {
                    most.min(ndistinct)
                }
            });
            self.true_frac = is_predicate.then_some(truth);
            self.changed_frac = changed;
            if self.ndistinct > Some(MANY) {
                UNIQUE_BYTES
            } else {
                bytes
            }
        } else {
            let (bytes, truth, changed) = MOST;
            self.true_frac = is_predicate.then_some(truth);
            self.changed_frac = changed;
            bytes
        };
        self.width = self.width.map(|_| WidthSpec {
            min_bytes: bytes,
            max_bytes: bytes,
        });
    }
}

/// More values than rows: those of a unique index.
const MANY: i64 = 1 << 50;
/// Bytes of which there are more values than rows.
const UNIQUE_BYTES: i64 = 16;

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
