//! What a statement of a migration does, as values; `python/pgheadroom/migration/actions.py` has
//! the same fields and their meaning.

use serde::Serialize;

/// A table or index by name, as PostgreSQL folds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// None if none was given.
    pub schema: Option<String>,
    /// Its name.
    pub name: String,
}

/// A new index, by itself or by a constraint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AddIndex {
    /// Its table.
    pub table: Target,
    /// Its name, if one was given.
    pub name: Option<String>,
    /// `index`, `primary key`, `unique constraint`, `exclusion constraint`.
    pub kind: &'static str,
    /// Its access method.
    pub method: String,
    /// Plain key columns.
    pub columns: Vec<String>,
    /// Columns of INCLUDE.
    pub include: Vec<String>,
    /// All columns that it reads.
    pub depends: Vec<String>,
    /// A key is an expression.
    pub has_expressions: bool,
    /// It has a WHERE.
    pub has_predicate: bool,
    /// Of its options.
    pub fillfactor: Option<i64>,
    /// The operator class of each key, without its schema, empty: the default; none at all where
    /// none is named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub opclasses: Vec<String>,
    /// Of a GIN's options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fastupdate: Option<bool>,
    /// ON ONLY a partitioned table.
    pub only: bool,
    /// Columns that its expressions read.
    pub expression_columns: Vec<String>,
    /// Columns that its predicate reads.
    pub predicate_columns: Vec<String>,
    /// An expression or the predicate names the row itself.
    pub whole_row: bool,
    /// One of them names `t` alone: the column of that name, or the row where there is none.
    pub may_be_row: bool,
    /// What an index without a name is named after: keys, then INCLUDE; none of an expression
    /// that has no name of its own.
    pub named_after: Vec<Option<String>>,
    /// CONCURRENTLY.
    pub concurrently: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The column of ADD COLUMN IF NOT EXISTS that it stands behind, without which it comes not.
    pub comes_with: Option<String>,
}

/// A column is added or gets another type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetColumn {
    /// Its table.
    pub table: Target,
    /// Its name.
    pub name: String,
    /// As PostgreSQL spells it.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Added, not altered.
    pub is_new: bool,
    /// `none`, `constant`, `stable`, `volatile`, `unknown`.
    pub default: &'static str,
    /// NOT NULL.
    pub not_null: bool,
    /// `stored` or `virtual`.
    pub generated: Option<&'static str>,
    /// Columns that a generated one reads.
    pub reads: Vec<String>,
    /// The new type's value is another expression than the column or a plain cast of it.
    pub has_using: bool,
    /// COLLATE.
    pub collation: Option<String>,
    /// ADD COLUMN IF NOT EXISTS.
    pub if_not_exists: bool,
}

/// What a statement does to a table besides its columns, indexes and fillfactor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Work {
    /// The table.
    pub table: Option<Target>,
    /// What is done.
    pub kind: &'static str,
    /// Of REINDEX INDEX, CLUSTER USING.
    pub index: Option<Target>,
    /// The referenced table, the partition.
    pub other: Option<Target>,
    /// The partition is the default one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_default: bool,
    /// Of SET NOT NULL and the like.
    pub column: Option<String>,
    /// NOT VALID.
    pub not_valid: bool,
    /// CONCURRENTLY.
    pub concurrently: bool,
    /// Of LOCK TABLE.
    pub mode: Option<&'static str>,
    /// Of REINDEX SCHEMA.
    pub schema: Option<String>,
    /// The column of ADD COLUMN IF NOT EXISTS that it stands behind, without which it comes not.
    pub comes_with: Option<String>,
    /// Of a foreign key, if one was given.
    pub name: Option<String>,
    /// Of a foreign key: its columns.
    pub columns: Vec<String>,
    /// Of a foreign key: those that it refers to; none for the primary key.
    pub referenced: Vec<String>,
}

impl Work {
    /// Of that kind on a table, nothing else said.
    pub(crate) fn new(kind: &'static str, table: Option<Target>) -> Self {
        Self {
            table,
            kind,
            index: None,
            other: None,
            is_default: false,
            column: None,
            not_valid: false,
            concurrently: false,
            mode: None,
            schema: None,
            comes_with: None,
            name: None,
            columns: Vec::new(),
            referenced: Vec::new(),
        }
    }
}

/// One thing that a statement does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action")]
pub enum Fact {
    /// An index comes.
    AddIndex(AddIndex),
    /// An index or a constraint goes.
    DropIndex {
        /// It.
        index: Target,
        /// The constraint's table.
        table: Option<Target>,
        /// CONCURRENTLY.
        concurrently: bool,
    },
    /// A column comes or changes.
    SetColumn(SetColumn),
    /// A generated column reads other columns; None: it is generated no more.
    SetExpression {
        /// Its table.
        table: Target,
        /// The column.
        name: String,
        /// What it reads.
        reads: Option<Vec<String>>,
    },
    /// A column goes.
    DropColumn {
        /// Its table.
        table: Target,
        /// The column.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// The fillfactor of new pages; None: the default again.
    SetFillfactor {
        /// The table.
        table: Target,
        /// From 10 to 100.
        fillfactor: Option<i64>,
    },
    /// A table, a column of it or an index is called otherwise.
    Rename {
        /// `table`, `column`, `index`.
        what: &'static str,
        /// What it was.
        old: Target,
        /// What it is.
        new: String,
        /// The column, as it was.
        column: Option<String>,
        /// The schema into which it moves.
        schema: Option<String>,
    },
    /// Something about a table that no profile tells.
    Remarkable {
        /// The table.
        table: Target,
        /// `new`, `dropped`, `trigger`, `partition`.
        kind: &'static str,
        /// A sentence.
        text: String,
        /// CREATE TABLE IF NOT EXISTS.
        if_not_exists: bool,
    },
    /// A domain comes, or has another constraint.
    Domain {
        /// It.
        domain: Target,
        /// It comes.
        is_new: bool,
        /// The type that a new one is over.
        over: Option<String>,
        /// It has a CHECK or NOT NULL.
        is_constrained: bool,
        /// The columns of it that are there are read.
        is_checked: bool,
    },
    /// Anything else that it does to a table.
    Work(Work),
    /// The session's search_path from here on; None: not one schema alone.
    SearchPath {
        /// The only schema.
        schema: Option<String>,
        /// Until the transaction ends.
        local: bool,
    },
    /// Syntax that servers have only from a major version on.
    Newer {
        /// That version.
        since: i32,
        /// What it is called.
        text: &'static str,
    },
    /// A transaction ends.
    TransactionEnd,
    /// A part that is not understood, and why.
    Problem {
        /// A sentence.
        text: String,
    },
}
