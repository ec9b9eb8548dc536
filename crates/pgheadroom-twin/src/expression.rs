//! SQL expressions of indexes and predicates, over the columns of one row.
//!
//! ```text
//! text -> token.rs -> parse.rs: a tree whose types are known -> evaluate.rs: a value for a row
//!                                 normal.rs: as a server has it -> evaluate.rs: what is looked at
//! ```
//!
//! Knows columns, literals, `= <> < <= > >=`, AND, OR, NOT, `IS [NOT] NULL`, IN, BETWEEN,
//! `+ - * / %` of integers and float8, `||`, casts between integers and to text, and the functions
//! abs, coalesce, left, length, lower, md5, mod and upper. Everything else is refused by name;
//! a collation other than C is not known either. What is stated of an expression's
//! values stands for what is not known (`stated.rs`), and what a server has found of a predicate is
//! what it is (`found.rs`).

mod evaluate;
mod found;
mod normal;
mod parse;
mod stated;
mod token;
mod typing;

pub use found::Found;
pub use stated::Statement;

use crate::row::ColumnDefinition;
use crate::row::kind::Kind;
use crate::value::Value;

/// An expression that the twin can evaluate.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    node: Node,
    /// As a server evaluates it: of an index's key, and of a predicate.
    simplified: Node,
    conditions: Vec<Node>,
    kind: Kind,
    columns: Vec<usize>,
    columns_read: Vec<usize>,
}

/// Why an expression cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// Something that the twin does not know.
    #[error(
        "the expression {text:?} has {what}, which the twin does not evaluate: leave the index out"
    )]
    Unsupported {
        /// The expression.
        text: String,
        /// What is not known.
        what: String,
    },
    /// Text that is no expression by the twin's grammar, which is a part of PostgreSQL's.
    #[error("the expression {text:?} is wrong: {what}")]
    Unread {
        /// The expression.
        text: String,
        /// What is not understood.
        what: String,
    },
    /// What no server would take either.
    #[error("the expression {text:?} is wrong: {what}")]
    Wrong {
        /// The expression.
        text: String,
        /// What is wrong.
        what: String,
    },
}

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
enum Node {
    Column(usize),
    Literal(Value),
    Compare(Comparison, Box<[Node; 2]>),
    /// Of strings without blanks at their ends.
    ComparePadded(Comparison, Box<[Node; 2]>),
    Arithmetic(Operator, Width, Box<[Node; 2]>),
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    IsNull(Box<Node>),
    Call(Function, Vec<Node>),
    /// What cannot be evaluated.
    Stated(Box<stated::Stated>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// What arithmetic works on; results beyond are errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Int2,
    Int4,
    Int8,
    Float8,
}

impl Width {
    const fn type_name(self) -> &'static str {
        match self {
            Self::Int2 => "int2",
            Self::Int4 => "int4",
            Self::Int8 => "int8",
            Self::Float8 => "float8",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Abs(Width),
    Coalesce,
    Concatenate,
    Left,
    Length,
    Lower,
    Md5,
    Upper,
    /// To an integer of another width.
    ToInteger(Width),
    /// Of an integer, or a bpchar, which loses its blanks.
    ToText,
}

impl Expression {
    /// Reads an expression over these columns.
    ///
    /// # Errors
    /// [`ExpressionError`] names what the twin does not know, or what is wrong.
    pub fn parse(text: &str, columns: &[ColumnDefinition]) -> Result<Self, ExpressionError> {
        parse::parse(text, columns).map(Self::of)
    }

    /// Reads what WHERE takes, a boolean.
    ///
    /// # Errors
    /// As [`Self::parse`], and for another type, which is wrong.
    pub fn condition(text: &str, columns: &[ColumnDefinition]) -> Result<Self, ExpressionError> {
        parse::condition(text, columns).map(Self::of)
    }

    fn of(typed: typing::Typed) -> Self {
        let [columns, columns_read] = [false, true].map(|only_read| {
            let mut used = Vec::new();
            typed.node.collect_columns(only_read, &mut used);
            used.sort_unstable();
            used.dedup();
            used
        });
        Self::with_columns(typed.node, typed.kind, columns, columns_read)
    }

    fn with_columns(node: Node, kind: Kind, columns: Vec<usize>, columns_read: Vec<usize>) -> Self {
        let simplified = node.simplified();
        Self {
            conditions: simplified.clone().conditions(),
            simplified,
            node,
            kind,
            columns,
            columns_read,
        }
    }

    /// Columns that it reads, ascending.
    #[must_use]
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Those whose values it may look at, not only whether they are NULL.
    pub(crate) fn columns_read(&self) -> &[usize] {
        &self.columns_read
    }

    /// The column, if it is nothing else; an index over it is one over the column.
    ///
    /// Source: `ComputeIndexAttrs`, src/backend/commands/indexcmds.c (REL_18_STABLE).
    pub(crate) const fn plain_column(&self) -> Option<usize> {
        match self.node {
            Node::Column(column) => Some(column),
            _ => None,
        }
    }

    /// The column and the integer, if it is their equality and nothing else.
    pub(crate) fn equality(&self) -> Option<(usize, i64)> {
        let Node::Compare(Comparison::Equal, parts) = &self.node else {
            return None;
        };
        match &**parts {
            [Node::Column(column), Node::Literal(Value::Integer(value))]
            | [Node::Literal(Value::Integer(value)), Node::Column(column)] => {
                Some((*column, *value))
            }
            _ => None,
        }
    }

    /// Whether its values are stated, not evaluated.
    pub(crate) const fn is_stated(&self) -> bool {
        matches!(self.node, Node::Stated(_))
    }

    /// What its values are.
    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }
}

impl Node {
    fn collect_columns(&self, only_read: bool, columns: &mut Vec<usize>) {
        match self {
            Self::IsNull(part) if only_read && matches!(**part, Self::Column(_)) => {}
            Self::Column(column) => columns.push(*column),
            Self::Literal(_) => {}
            Self::Stated(stated) => columns.extend(stated.columns()),
            Self::Compare(_, parts)
            | Self::ComparePadded(_, parts)
            | Self::Arithmetic(_, _, parts) => {
                for part in parts.iter() {
                    part.collect_columns(only_read, columns);
                }
            }
            Self::All(parts) | Self::Any(parts) | Self::Call(_, parts) => {
                for part in parts {
                    part.collect_columns(only_read, columns);
                }
            }
            Self::Not(part) | Self::IsNull(part) => part.collect_columns(only_read, columns),
        }
    }
}

#[cfg(test)]
mod tests;
