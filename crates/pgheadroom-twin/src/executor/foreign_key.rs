//! Which columns of a table refer to another one.

use crate::executor::TableId;

/// A column that refers to another table's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ForeignKey {
    pub column: usize,
    pub parent: TableId,
    /// Among the parent's B-trees.
    pub index: usize,
}

/// What the triggers of foreign keys need of a table.
#[derive(Debug, Default)]
pub(super) struct ForeignKeys {
    /// In the order of their creation, in which their triggers fire.
    pub keys: Vec<ForeignKey>,
    /// Whether another table refers to this one.
    pub is_referenced: bool,
}

impl ForeignKeys {
    /// Whether any column refers to another table.
    pub fn is_any(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Whether this column refers to another table.
    pub fn has(&self, column: usize) -> bool {
        self.keys.iter().any(|key| key.column == column)
    }
}
