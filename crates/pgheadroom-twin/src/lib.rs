//! A page-level twin of PostgreSQL's storage: what a table's pages become under a workload.
//!
//! Second step of the core, on top of `pgheadroom-layout`. So far: heap pages with line pointers,
//! the free space map, the visibility map, placement of new and updated rows, pruning, VACUUM
//! of the heap, and the invariants that all of them keep. See README.md beside this crate for
//! pictures and words.
//! Tuples are their lengths, transactions and places; the values of rows are kept beside them.

pub mod autovacuum;
pub mod btree;
pub mod check;
pub mod checkpoint;
pub mod checkpointer;
pub mod clock;
pub mod counters;
pub mod executor;
pub mod expression;
pub mod fsm;
mod gin;
mod hash_index;
pub mod heap;
pub mod hint;
pub mod lock_options;
mod md5;
mod memory;
mod memory_settings;
pub mod multixact;
mod object_ids;
pub mod order;
pub mod page;
pub mod pgbench;
#[cfg(test)]
mod pglz;
pub mod places;
pub mod procarray;
pub mod profile;
pub mod prune;
pub mod reserve;
pub mod row;
pub mod run;
pub mod scenario;
pub mod series;
mod text;
pub mod tprocc;
pub mod transaction;
mod unsettled;
pub mod vacuum;
pub mod value;
pub mod vm;
pub mod wal;
pub mod watch;
pub mod workload;
mod wrap;

pub use fsm::FreeSpaceMap;
pub use heap::Heap;
pub use page::{HeapPage, LinePointer, Tid, Tuple};
pub use transaction::{Transactions, Xid};
pub use vm::VisibilityMap;
