//! Engines: where a new row goes, and what an update leaves behind.
//!
//! ```text
//!            insert                            update
//! heap       target block, free space map      a new version; HOT or an entry in every index
//! clustered  beside the previous key           as heap
//! undo       as heap                           in place; the old values go to undo pages
//! ```
//!
//! Only `heap` is what servers do, to the unit. The others are models of engines that nobody has
//! at hand, and say so ([`Engine::model`]). Tables are loaded as heap; an engine begins with the
//! run. What an engine needs beside the heap is its [`Store`]; the executor asks it at two places
//! (`executor/engines.rs`).

pub mod clustered;
pub mod undo;

use undo::UndoLog;

/// A way to store rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Engine {
    /// PostgreSQL's heap.
    #[default]
    Heap,
    /// Heap whose inserts go to the page of the previous key.
    Clustered,
    /// Updates in place, old values in undo pages.
    Undo,
}

impl Engine {
    /// All, in the order in which messages name them.
    pub const ALL: [Self; 3] = [Self::Heap, Self::Clustered, Self::Undo];

    /// The engine of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// As options and results spell it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Clustered => "clustered",
            Self::Undo => "undo",
        }
    }

    /// What of it is a model, in a sentence; none when it is what servers do.
    #[must_use]
    pub const fn model(self) -> Option<&'static str> {
        match self {
            Self::Heap => None,
            Self::Clustered => Some(
                "the engine clustered is a model of a table access method: inserts go to the page \
                 of the previous key, all else is heap",
            ),
            Self::Undo => Some(
                "the engine undo is a model: five constants fitted to three of six published \
                 figures of one statement; undo pages are not used again within a run",
            ),
        }
    }
}

/// What a table's engine keeps beside its heap.
#[derive(Debug, Default)]
pub(crate) enum Store {
    /// Nothing.
    #[default]
    Heap,
    /// The position among the B-trees of the index that gives the order.
    Clustered(usize),
    /// The undo pages.
    Undo(UndoLog),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are those of options, and every engine that is no server's says so.
    #[test]
    fn engines_are_known_by_name() {
        for engine in Engine::ALL {
            assert_eq!(Engine::of(engine.name()), Some(engine));
            assert_eq!(engine.model().is_none(), engine == Engine::Heap);
        }
        assert_eq!(Engine::of("columnar"), None);
    }
}
