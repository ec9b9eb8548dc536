//! The tests of the twin as one program, which is built in half the time that 24 of them took.
//!
//! Apart from it is `golden_scenarios`, which is built anew for each mutant.

mod brin;
mod btree_player;
mod clock_runs;
mod common;
mod end_locks;
mod fast_path;
mod gin_keys;
mod golden_btree;
mod golden_btree_recorded;
mod golden_btree_updates;
mod golden_churn;
mod golden_clients;
mod golden_drawn;
mod golden_heap;
mod golden_heap_recorded;
mod golden_pgbench;
mod golden_profile;
mod golden_reuse;
mod golden_run;
mod golden_seed;
mod golden_statements;
mod golden_tprocc;
mod hash_builds;
mod index_pages;
mod json;
mod load;
mod online_rewrite;
mod order;
mod random_btree;
mod random_heap;
mod random_profiles;
mod sessions;
mod upserts;
