//! A profile as the twin reads it: the canonical JSON of the Python side, and what of it the twin
//! can play.
//!
//! ```text
//! JSON -> ProfileSpec -> run::support   -> load::load -> Database -> workload -> run
//!         (every field)  (what cannot be   (tables, rows,
//!                         played, by name)  indexes, VACUUM)
//! ```
//!
//! `profile.to_json` on the Python side has read a person's file, filled in the defaults and
//! checked what belongs together; so a text that does not fit these structs is a mistake of a
//! program, and is refused with the field's name.

pub mod ages;
mod elements_spec;
mod enums;
pub mod estimate;
pub(crate) mod foreign_key;
pub(crate) mod head;
pub(crate) mod index_load;
mod index_spec;
mod line_pointers;
pub mod load;
mod monitor;
mod page_shape;
mod pages;
pub(crate) mod ranges;
mod run_spec;
mod server_spec;
pub mod setting_values;
pub mod settings;
mod spec;

pub use elements_spec::ElementsSpec;
pub use index_load::knows_gin_keys;
pub(crate) use index_spec::vary_stated;
pub use index_spec::{IndexSpec, Method, StatedSpec};
pub use line_pointers::{Piece, Waves, unused_max};
pub use load::{LoadedTable, PgbenchTables};
pub use monitor::Monitor;
pub use page_shape::{OfLoad, OfPage, PageKindSpec};
pub use pages::{PageKinds, redirect_rounds};
pub use run_spec::{CommandName, Isolation, MachineSpec, MaintenanceSpec, RunSpec, SnapshotSpec};
pub use server_spec::{ColumnCompression, ColumnStorage, Compression, ServerSpec, WalLevel};
pub use spec::{
    Among, BuiltinName, ChangeSpec, ColumnSpec, Distribution, Find, ForeignKeySpec, GrowsSpec,
    KindName, OperationSpec, ParentPick, PgbenchSpec, PickSpec, ProfileSpec, RowsSpec, SampleSpec,
    TableSpec, ValuesKind, ValuesSpec, WidthSpec,
};

/// Why a profile is not played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The text is not the canonical JSON of a profile.
    #[error("not the JSON of a profile: {reason}")]
    NotAProfile {
        /// The parser's words, with line and column.
        reason: String,
    },
    /// The twin does not know how the server would behave.
    #[error("the twin cannot play {field}: found {found}, expected {expected}")]
    Unsupported {
        /// The field's path, as in the profile.
        field: String,
        /// Its value.
        found: String,
        /// What the twin can play.
        expected: String,
    },
    /// The twin does not know how to do this, whatever the value.
    #[error("the twin cannot play {field}: {reason}")]
    Unplayable {
        /// The field's path, as in the profile.
        field: String,
        /// What it cannot do.
        reason: String,
    },
    /// The server would end the run with an error.
    #[error("a server could not play this: {table}, transaction {transaction}: {reason}")]
    StatementFails {
        /// The server's reason.
        reason: String,
        /// Counted from 1; 0 while the tables are loaded.
        transaction: u64,
        /// The table at hand.
        table: String,
    },
    /// There is not enough memory, or it ran out.
    #[error("{}", out_of_memory(*.needed_bytes))]
    OutOfMemory {
        /// What the run is estimated to take.
        needed_bytes: Option<u64>,
    },
    /// Somebody asked to stop.
    #[error("the twin was told to stop before it was done")]
    Cancelled,
}

fn out_of_memory(needed_bytes: Option<u64>) -> String {
    let about = needed_bytes.map_or_else(String::new, |bytes| {
        format!(", which takes about {} MiB", (bytes >> 20) + 1)
    });
    format!(
        "memory ran out for this run{about}: expected more memory (see `ulimit -v`), fewer runs at \
         once, fewer rows or operations, or a sample (--sample-pages)"
    )
}

impl ProfileError {
    /// A field that cannot be played.
    pub(crate) fn unsupported(
        field: impl Into<String>,
        found: impl std::fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self::Unsupported {
            field: field.into(),
            found: found.to_string(),
            expected: expected.into(),
        }
    }
}
