//! Reads PostgreSQL's write-ahead log and sums it by relation and cause.
//!
//! ```text
//! files --folder--> pieces in order --piece--> pages --reader--> records --tally--> sums
//! ```
//!
//! Versions 15 to 19. Two layers below the sums: [`reader`] makes records out of pages, [`record`]
//! takes one apart. Foreign bytes are never trusted: every length is checked, nothing is mapped,
//! memory does not depend on what the bytes claim. A bad record is the end of the log only if
//! nothing valid follows; else it is a gap, named by position and file ([`run`]). Gaps are disjoint
//! and in order, and what lies between two spans of records is one, or several side by side.

mod beside;
pub mod cause;
pub mod chunk;
mod cut;
pub mod detail;
pub mod error;
pub mod facts;
pub mod folder;
pub mod format;
pub mod history;
pub mod image;
pub mod memo;
pub mod outcome;
pub mod packing;
mod page;
pub mod pages;
mod part;
pub mod piece;
pub mod reader;
pub mod record;
pub mod replay;
pub mod resume;
pub mod rmgr;
pub mod run;
mod simple;
pub mod sink;
mod starts;
pub mod sums;
pub mod tally;
#[cfg(test)]
#[path = "../tests/wal_writer/mod.rs"]
mod wal_writer;

pub use cause::Cause;
pub use detail::Wanted;
pub use error::WalError;
pub use folder::{Chosen, choose};
pub use format::Major;
pub use outcome::{Gap, Outcome};
pub use run::run;
pub use tally::{Range, Tally};
