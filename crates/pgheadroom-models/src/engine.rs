//! Engines: where a new row goes, and what an update leaves behind.
//!
//! ```text
//!            insert                            update
//! heap       target block, free space map      a new version; HOT or an entry in every index
//! clustered  beside the previous key           as heap
//! undo       as heap                           in place; the old values go to undo pages
//! ```
//!
//! Only `heap` is what servers do, to the unit, and no model. Tables are loaded as heap; an engine
//! begins with the run.

use std::sync::Arc;

use pgheadroom_twin::executor::Model;

use crate::clustered::Clustered;
use crate::undo::Undo;

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

    /// Its model; none of the heap.
    #[must_use]
    pub fn model(self) -> Option<Arc<dyn Model>> {
        match self {
            Self::Heap => None,
            Self::Clustered => Some(Arc::new(Clustered)),
            Self::Undo => Some(Arc::new(Undo)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names are those of options, and every engine that is no server's says so.
    #[test]
    fn engines_are_known_by_name() {
        for engine in Engine::ALL {
            assert_eq!(Engine::of(engine.name()), Some(engine));
            let said = engine.model().and_then(|model| model.sentence());
            assert_eq!(said.is_none(), engine == Engine::Heap);
        }
        assert_eq!(Engine::of("columnar"), None);
    }
}
