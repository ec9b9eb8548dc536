//! A page-level twin of PostgreSQL's storage: what a table's pages become under a workload.
//!
//! Second step of the core, on top of `pgheadroom-layout`. So far: heap pages with line pointers,
//! the free space map, the visibility map, placement of new and updated rows, pruning, VACUUM
//! of the heap, and the invariants that all of them keep. See README.md beside this crate for
//! pictures and words.
//! Leaves out the contents of rows: a tuple is its length, its transactions and its place.

pub mod btree;
pub mod check;
pub mod checkpoint;
pub mod counters;
pub mod executor;
pub mod fsm;
pub mod heap;
pub mod horizon;
pub mod page;
pub mod pgbench;
pub mod prune;
pub mod run;
pub mod transaction;
pub mod vacuum;
pub mod vm;
pub mod wal;
pub mod workload;

pub use fsm::FreeSpaceMap;
pub use heap::Heap;
pub use page::{HeapPage, LinePointer, Tid, Tuple};
pub use transaction::{Transactions, Xid};
pub use vm::VisibilityMap;
