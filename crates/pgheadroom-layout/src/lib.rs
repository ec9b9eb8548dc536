//! Sizes and constants of PostgreSQL's on-disk format, and its pages byte by byte.
//!
//! First step of the core: knows how long a row, an index entry, a page and a WAL record are, and
//! how that differs between versions; and reads pages of relation files ([`decode`]), as text that
//! the twin's pages are compared with ([`places`]). No input or output; the twin builds on it.
//! Where a number comes from PostgreSQL, its file and function are named; branches are those of
//! `postgres/postgres`.

pub mod align;
pub mod btree;
pub mod column_order;
pub mod column_type;
pub mod compression;
pub mod decode;
pub mod error;
pub mod flags;
pub mod gin;
pub mod hash_index;
pub mod index_tuple;
pub mod lsn;
pub mod page;
pub mod pglz;
pub mod places;
pub mod toast;
pub mod tuple;
pub mod version;
pub mod wal_record;

pub use align::Alignment;
pub use column_type::{ColumnType, Storage, TypeLength};
pub use error::LayoutError;
pub use lsn::Lsn;
pub use page::{BlockNumber, HeapFillfactor, InsertTarget, OffsetNumber};
pub use tuple::{Column, ColumnLayout, RowLayout, Stored};
pub use version::{Behaviour, PgVersion};
