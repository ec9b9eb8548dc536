//! The fields of a profile, under their names in the file.

use std::collections::BTreeMap;
use std::fmt;

use pgheadroom_layout::LayoutError;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::executor::ColumnDefinition;
use crate::profile::ProfileError;
use crate::profile::elements_spec::ElementsSpec;
use crate::profile::index_spec::IndexSpec;
use crate::profile::page_shape::PageKindSpec;
use crate::profile::run_spec::RunSpec;
use crate::profile::server_spec::{ColumnCompression, ColumnStorage, Ignored, ServerSpec};

/// A whole profile, its defaults filled in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileSpec {
    /// The format's version; 1.
    pub schema_version: u32,
    /// The server and its settings.
    pub server: ServerSpec,
    /// The profile's own tables.
    #[serde(default)]
    pub table: Vec<TableSpec>,
    /// What is done to them.
    #[serde(default)]
    pub operation: Vec<OperationSpec>,
    /// pgbench's tables and script instead.
    pub pgbench: Option<PgbenchSpec>,
    /// How long, and by whom.
    pub run: RunSpec,
    /// What this is a share of.
    #[serde(default)]
    pub sample: Option<SampleSpec>,
}

/// That a profile has a share of the rows and transactions of a whole, and stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleSpec {
    /// Transactions of the whole.
    pub whole_operations: u64,
    /// pgbench's scale of the whole, where its branches and tellers are there whole.
    #[serde(default)]
    pub whole_scale: Option<i64>,
}

impl ProfileSpec {
    /// Reads the JSON that `profile.to_json` gives.
    ///
    /// # Errors
    /// [`ProfileError::NotAProfile`] with the parser's words.
    pub fn from_json(text: &str) -> Result<Self, ProfileError> {
        let not_a_profile = |reason: String| ProfileError::NotAProfile { reason };
        let spec: Self =
            serde_json::from_str(text).map_err(|error| not_a_profile(error.to_string()))?;
        if spec.schema_version != 1 {
            let found = spec.schema_version;
            return Err(not_a_profile(format!("schema_version {found}, expected 1")));
        }
        Ok(spec)
    }

    /// The operations by transaction, each one script, in order of first appearance; operations
    /// by their position in the profile.
    #[must_use]
    pub fn transactions(&self) -> Vec<Vec<usize>> {
        let mut named: BTreeMap<&str, usize> = BTreeMap::new();
        let mut scripts: Vec<Vec<usize>> = Vec::new();
        for (number, operation) in self.operation.iter().enumerate() {
            let known = operation
                .transaction
                .as_deref()
                .and_then(|name| named.get(name).copied());
            if let Some(script) = known {
                scripts[script].push(number);
                continue;
            }
            if let Some(name) = &operation.transaction {
                named.insert(name, scripts.len());
            }
            scripts.push(vec![number]);
        }
        scripts
    }
}

/// A table as it is loaded.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Its name.
    pub name: String,
    /// Rows that are loaded, with keys from 1.
    pub rows: i64,
    /// Whether it is UNLOGGED.
    #[serde(default)]
    pub unlogged: bool,
    /// The option of the heap, in percent.
    pub fillfactor: i64,
    /// How full its pages are; none: as a load leaves them.
    #[serde(default)]
    pub pages: Vec<PageKindSpec>,
    /// Rows that a load puts on a page; set where `pages` is.
    #[serde(default)]
    pub rows_per_page: Option<i64>,
    /// Other storage parameters.
    #[serde(default)]
    pub reloptions: BTreeMap<String, String>,
    /// In their order.
    pub columns: Vec<ColumnSpec>,
    /// In the order of their creation.
    #[serde(default)]
    pub indexes: Vec<IndexSpec>,
    /// In the order of their creation.
    #[serde(default)]
    pub foreign_keys: Vec<ForeignKeySpec>,
    /// What was observed; of no concern here.
    #[serde(default)]
    pub observed: Option<Ignored>,
}

impl TableSpec {
    /// The position of the first unique index, by which rows are found.
    #[must_use]
    pub fn key_index(&self) -> Option<usize> {
        self.indexes.iter().position(IndexSpec::is_key)
    }

    /// The position of the key: the first column of the first unique index that counts the rows.
    #[must_use]
    pub fn key_column(&self) -> Option<usize> {
        let index = &self.indexes[self.key_index()?];
        self.column(index.columns.get(self.key_place()?)?)
    }

    /// Where the key is among the columns of its index.
    #[must_use]
    pub fn key_place(&self) -> Option<usize> {
        let index = &self.indexes[self.key_index()?];
        let counts = |name: &String| {
            let column = self.column(name).map(|column| &self.columns[column]);
            column.is_some_and(|column| column.values.kind == ValuesKind::Serial)
        };
        let place = index.columns.iter().position(counts);
        place.or((!index.columns.is_empty()).then_some(0))
    }

    /// Its columns, for expressions over them.
    ///
    /// # Errors
    /// [`LayoutError`] of a type that is none.
    pub fn columns_of_expressions(&self) -> Result<Vec<ColumnDefinition>, LayoutError> {
        let columns = self.columns.iter();
        let columns: Vec<(&str, &str, &[String])> = columns
            .map(|column| (&*column.name, &*column.type_name, &*column.labels))
            .collect();
        ColumnDefinition::of_expressions(&columns)
    }

    /// The position of the column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// REFERENCES.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignKeySpec {
    /// The referring column, alone.
    pub columns: Vec<String>,
    /// The table whose key it refers to.
    pub references: String,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// Its type, canonical: `int4`, `bpchar(84)`.
    #[serde(rename = "type")]
    pub type_name: String,
    /// How its values are made.
    pub values: ValuesSpec,
    /// Bytes of a string.
    pub width: Option<WidthSpec>,
    /// Share of NULLs.
    pub null_frac: f64,
    /// Of an enum, in their order.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Where values have several elements.
    #[serde(default)]
    pub elements: Option<ElementsSpec>,
    /// By which values are compressed, if it says so.
    #[serde(default)]
    pub compression: Option<ColumnCompression>,
    /// How values may be shortened, if not as their type says.
    #[serde(default)]
    pub storage: Option<ColumnStorage>,
    /// The type of which this one has the stored form; none where it is itself.
    #[serde(default)]
    pub stands_for: Option<String>,
}

impl ColumnSpec {
    /// The number of an enum's label, from 0.
    #[must_use]
    pub fn label(&self, label: &str) -> Option<i64> {
        let place = self.labels.iter().position(|known| known == label)?;
        i64::try_from(place).ok()
    }
}

/// How values are made.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValuesSpec {
    /// Which way.
    pub kind: ValuesKind,
    /// How many different ones; set for random ones and for keys of a parent.
    pub ndistinct: Option<i64>,
    /// Which key of the parent a run's inserts take; one of the hash when absent.
    #[serde(default)]
    pub pick: Option<ParentPick>,
    /// Whether uuids and strings are in the order of their numbers.
    #[serde(default)]
    pub ordered: bool,
    /// Of an enum: the share of each label.
    #[serde(default)]
    pub shares: Vec<f64>,
    /// Of an enum: the label of rows that a run inserts, if not one of the hash.
    #[serde(default)]
    pub new: Option<String>,
}

/// Which key of a parent an insert takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParentPick {
    /// The one that this client inserted last.
    Newest,
}

/// Ways to make values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValuesKind {
    /// The row number.
    Serial,
    /// 0.
    Constant,
    /// A hash of the row number.
    Random,
    /// A key of the table that a foreign key refers to.
    Parent,
}

/// Bytes of a string, uniform between the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WidthSpec {
    /// At least.
    pub min_bytes: i64,
    /// At most.
    pub max_bytes: i64,
}

/// An operation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationSpec {
    /// The table's name.
    pub table: String,
    /// What is done.
    pub kind: KindName,
    /// Its script's share among the scripts.
    pub weight: i64,
    /// Keys of one statement.
    pub rows_per_statement: RowsSpec,
    /// Share of its transactions that is rolled back.
    pub abort_frac: f64,
    /// What an update assigns, in file order.
    #[serde(default, deserialize_with = "in_order")]
    pub sets: Vec<(String, ChangeSpec)>,
    /// To which rows; absent for an insert.
    pub pick: Option<PickSpec>,
    /// How rows are found; absent where nothing is looked for.
    pub find: Option<Find>,
    /// The name of its transaction.
    pub transaction: Option<String>,
}

/// Rows of a statement, in a file a number or `{ min, max }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(from = "RowsForm")]
pub struct RowsSpec {
    /// At least.
    pub min: i64,
    /// At most; where that is more, each statement draws its number.
    pub max: i64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RowsForm {
    Number(i64),
    Range(RowRange),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowRange {
    min: i64,
    max: i64,
}

impl From<RowsForm> for RowsSpec {
    fn from(form: RowsForm) -> Self {
        match form {
            RowsForm::Number(rows) => Self {
                min: rows,
                max: rows,
            },
            RowsForm::Range(RowRange { min, max }) => Self { min, max },
        }
    }
}

/// Kinds of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // SQL's words
pub enum KindName {
    Insert,
    Update,
    Delete,
    Select,
    Upsert,
    Lock,
}

/// What an update does to a column.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSpec {
    /// Share of the statements that change it; all assign it.
    pub changed_frac: f64,
    /// Growth of a string.
    pub grows_bytes: Option<GrowsSpec>,
    /// The label that an enum gets, if not the next.
    #[serde(default)]
    pub to: Option<String>,
}

/// Growth of a string, uniform between the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrowsSpec {
    /// At least, in bytes.
    pub min: i64,
    /// At most, in bytes.
    pub max: i64,
}

/// Which keys an operation takes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PickSpec {
    /// Which way.
    pub distribution: Distribution,
    /// Of `zipfian`.
    pub theta: Option<f64>,
    /// Of `gaussian`.
    pub param: Option<f64>,
    /// Of `hot_set`: the share of the rows that is hot.
    pub rows_frac: Option<f64>,
    /// Of `hot_set`: the share of the operations that goes there.
    pub weight: Option<f64>,
    /// Of `stride`.
    pub n: Option<i64>,
    /// Of `head`: the index whose order it is.
    pub using: Option<String>,
    /// Of `head`: which rows are in the queue; all when absent.
    #[serde(rename = "where")]
    pub predicate: Option<String>,
    /// Whether keys are scattered over the table.
    #[serde(default)]
    pub scatter: bool,
    /// Of which rows, if not of those that were loaded.
    pub among: Option<Among>,
    /// Of `oldest`: rows of a block through which deletes go in a mixed order.
    pub within: Option<i64>,
    /// Of `age`: own rows behind the last one, at least.
    pub min: Option<i64>,
    /// At most.
    pub max: Option<i64>,
}

impl PickSpec {
    /// Whether it follows the rows that are there, in a statement over at most so many keys.
    #[must_use]
    pub fn is_living(&self, rows: i64) -> bool {
        match self.distribution {
            Distribution::Age => true,
            Distribution::Oldest => rows == 1 || self.within.is_some(),
            Distribution::Uniform | Distribution::Zipfian | Distribution::Gaussian => {
                self.among.is_some()
            }
            _ => false,
        }
    }
}

/// Of which rows keys are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Among {
    /// Those that the client has not tried to delete, of those that it has inserted.
    Live,
}

/// Ways to take keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // explained in `workload::Pick`
pub enum Distribution {
    Uniform,
    Zipfian,
    Gaussian,
    HotSet,
    Sequential,
    Stride,
    Newest,
    Oldest,
    Age,
    Head,
}

/// How rows are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Find {
    /// By the key's index.
    Index,
    /// By reading the whole table.
    Seqscan,
    /// By a bitmap of the entries of the key's index.
    Bitmap,
}

/// A script that pgbench has built in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PgbenchSpec {
    /// Which one.
    pub builtin: BuiltinName,
    /// pgbench's scale.
    pub scale: i64,
    /// Of each of its tables, in percent.
    pub fillfactor: BTreeMap<String, i64>,
}

/// pgbench's scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // pgbench's words
pub enum BuiltinName {
    TpcbLike,
    SimpleUpdate,
    SelectOnly,
}

/// The members of an object in the order of the text: draws are made in that order.
fn in_order<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, ChangeSpec)>, D::Error> {
    struct Members;

    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, ChangeSpec)>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object of columns and changes")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }

    deserializer.deserialize_map(Members)
}
