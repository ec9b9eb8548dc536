//! Python bindings of pgheadroom's core: the module `pgheadroom._core`.
//!
//! The only crate that knows Python. One file per crate bound, and the mapping of errors in
//! [`error`] alone. Nothing is computed here. `python/pgheadroom/_core.pyi` is its typed face and
//! is compared with the compiled module by mypy's stubtest.

// PyO3 takes arguments by value.
#![allow(clippy::needless_pass_by_value)]

use pgheadroom_twin::reserve::Allocator;
use pyo3::prelude::*;

mod clock;
mod decay;
mod decode;
mod error;
mod layout;
mod serverlog;
mod settings;
mod sql;
mod tprocc;
mod twin;
mod wal_what_if;
mod walread;
mod watch;

/// Ends a run of the twin where memory ends, instead of the process.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The compiled core of pgheadroom: arithmetic of PostgreSQL's on-disk format, server logs, the
/// grammar of statements, the write-ahead log, and the twin.
#[pymodule]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::decay::cluster_decay;

    #[pymodule_export]
    use super::decode::{
        BtreeItem, BtreePage, HeapLinePointer, PageHeader, decode_btree_page, decode_fsm_page,
        decode_heap_page, decode_visibility_page, places_digest, relation_places,
    };

    #[pymodule_export]
    use super::layout::{
        Column, ColumnLayout, RowLayout, btree_build_pages, hash_buckets, heap_pages,
        heap_tuple_bytes, index_tuple_bytes, rows_per_page, spare_versions, type_names,
    };

    #[pymodule_export]
    use super::serverlog::{LogFound, LogScan, log_prefix_has, log_time_ms};

    #[pymodule_export]
    use super::settings::{
        knows_gin_keys, may_wake_autovacuum, not_evaluated, setting_becomes, setting_expected,
        setting_names,
    };

    #[pymodule_export]
    use super::sql::{
        expression_reads, grammar_major, normalized_statements, not_immutable, split_statements,
        statement_facts, statement_heads, statement_reads, statement_writes, trigger_assigns,
    };

    #[pymodule_export]
    use super::tprocc::simulate_tprocc;

    #[pymodule_export]
    use super::twin::{
        Progress, Simulated, TableOutcome, arrivals_at_rate, drawn_keys, loading_waves,
        needed_bytes, redirect_rounds, simulate, unused_max,
    };

    #[pymodule_export]
    use super::wal_what_if::{WalCourses, WalPacked, wal_courses, wal_packed};

    #[pymodule_export]
    use super::walread::{WalSums, wal_kinds, wal_pages, wal_sums};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
