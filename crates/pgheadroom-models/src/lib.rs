//! What is not PostgreSQL: ways to keep rows and pages that no server of ours has.
//!
//! ```text
//! pgheadroom-layout <- pgheadroom-twin <- pgheadroom-models
//!                        trait Model   <-   engines: clustered, undo; storage: log-structured
//! ```
//!
//! The twin is exact; what is here is not, and says so ([`Model::sentence`]). All of it goes
//! through one trait, and every length that is a model's own stands here. [`decay`] is a program
//! of statements over such tables, and over heaps.
//!
//! [`Model::sentence`]: pgheadroom_twin::executor::Model::sentence

pub mod clustered;
pub mod decay;
pub mod engine;
pub mod storage;
pub mod undo;

pub use engine::Engine;
pub use storage::Storage;
