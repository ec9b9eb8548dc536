//! Elements of values, as a profile has them.

use serde::Deserialize;

use crate::row::Elements;

/// Elements of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ElementsSpec {
    /// Fewest of a value.
    pub min: u32,
    /// Most of a value.
    pub max: u32,
    /// Different ones.
    pub ndistinct: i64,
    /// The first of them, which are equally frequent; all when absent.
    pub alike: Option<i64>,
    /// Digits of a string; none of a number.
    pub width: Option<u32>,
}

impl ElementsSpec {
    /// Elements of this type; `None` for types that have none here.
    pub(crate) fn of_type(&self, typname: &str) -> Option<Elements> {
        let count = (self.min, self.max.max(self.min));
        let even = Elements::of(typname, count, self.ndistinct, self.width.unwrap_or(0))?;
        Some(self.alike.map_or(even, |alike| even.with_alike(alike)))
    }
}
