//! What can be wrong with a question about the layout.

/// A question about the layout that has no answer, with what was found and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// No built-in type of this name is known.
    #[error(
        "unknown column type {name:?}: expected a built-in type as PostgreSQL spells it, such as \
         int4, bpchar(84), numeric(10,2) or text[]"
    )]
    UnknownType {
        /// The name as it was given.
        name: String,
    },
    /// The part in parentheses does not suit the type.
    #[error("column type {name:?}: the modifier ({modifier}) is invalid, expected {expected}")]
    BadTypeModifier {
        /// The type as it was given.
        name: String,
        /// What stood between the parentheses.
        modifier: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// The type does not say how wide a value is, and the caller did not either.
    #[error("a column of type {type_name} needs the width of its value: give its payload in bytes")]
    WidthMissing {
        /// The type's canonical name.
        type_name: String,
    },
    /// The type cannot hold a value of this width.
    #[error(
        "a value of type {type_name} cannot have a payload of {payload_bytes} bytes: expected \
         {min_bytes} to {max_bytes}"
    )]
    WidthImpossible {
        /// The type's canonical name.
        type_name: String,
        /// The width that was given.
        payload_bytes: u64,
        /// Smallest possible payload.
        min_bytes: u32,
        /// Largest possible payload.
        max_bytes: u32,
    },
    /// A type of fixed length has no out-of-line form.
    #[error("a value of type {type_name} is never stored out of line: it has no TOAST storage")]
    NotToastable {
        /// The type's canonical name.
        type_name: String,
    },
    /// The relation never holds values of this type as such.
    #[error("a {relation} does not hold values of type {type_name}: {hint}")]
    NotStorable {
        /// The type's canonical name.
        type_name: String,
        /// The kind of relation.
        relation: &'static str,
        /// What to ask instead.
        hint: &'static str,
    },
    /// A number lies outside its range.
    #[error("{what} is {value}: expected {min} to {max}")]
    OutOfRange {
        /// Which number.
        what: &'static str,
        /// What it is.
        value: i64,
        /// Smallest valid value.
        min: i64,
        /// Largest valid value.
        max: i64,
    },
    /// More columns than a table or an index may have.
    #[error("{count} columns: a {relation} has at most {max}")]
    TooManyColumns {
        /// `table` or `index`.
        relation: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// The row does not fit a page, and nothing may move it out of line.
    #[error("a row of {tuple_bytes} bytes does not fit a page: expected at most {max_bytes}")]
    TupleTooBig {
        /// The tuple's length.
        tuple_bytes: u64,
        /// `MaxHeapTupleSize`, or PostgreSQL's limit on one value in memory.
        max_bytes: u32,
    },
    /// The index entry is wider than a third of a page.
    #[error(
        "an index entry of {index_tuple_bytes} bytes is too wide for a B-tree: expected at most \
         {max_bytes}; index a hash or a prefix of the value instead"
    )]
    IndexTupleTooBig {
        /// The entry's size.
        index_tuple_bytes: u64,
        /// `BTMaxItemSize`.
        max_bytes: u32,
    },
    /// A GIN's entry is wider than a third of a page.
    #[error(
        "an index entry of {tuple_bytes} bytes is too wide for a GIN, where each element of a \
         value has one: expected at most {max_bytes}"
    )]
    GinTupleTooBig {
        /// The entry's size.
        tuple_bytes: u64,
        /// `GinMaxItemSize`.
        max_bytes: u32,
    },
    /// So many rows that the relation would pass PostgreSQL's last block.
    #[error("{pages} pages: a relation has at most {max} (32 TiB)")]
    TooManyPages {
        /// How many pages there would be.
        pages: u64,
        /// `MaxBlockNumber` + 1.
        max: u64,
    },
    /// A version whose storage is not known.
    #[error("PostgreSQL {version} is not known here: expected 13 to 19, for instance 18.4")]
    UnsupportedVersion {
        /// The version as it was given.
        version: String,
    },
    /// Text that is not a log sequence number.
    #[error("{text:?} is not a log sequence number: expected the form 16/B374D848")]
    BadLsn {
        /// The text as it was given.
        text: String,
    },
}
