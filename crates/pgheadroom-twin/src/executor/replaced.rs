//! What replaced row versions hold, for their pages' images; kept where images are compressed.

use std::collections::HashMap;

use crate::page::Tid;
use crate::transaction::Xid;

/// A version from its bitmap of NULLs on.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub has_nulls: bool,
    pub hoff: u32,
    pub bytes: Vec<u8>,
}

/// Versions by place, with the transactions that made them: a place is used again.
#[derive(Debug, Default)]
pub(super) struct Replaced(Option<HashMap<Tid, (Xid, Body)>>);

impl Replaced {
    /// What images are put together from is kept from now on.
    pub fn begin(&mut self) {
        self.0 = Some(HashMap::new());
    }

    /// All places are others.
    pub fn clear(&mut self) {
        if let Some(kept) = &mut self.0 {
            kept.clear();
        }
    }

    /// Whether anything is kept.
    pub const fn is_kept(&self) -> bool {
        self.0.is_some()
    }

    /// The version here, of this transaction, is about to get a successor.
    pub fn keep(&mut self, tid: Tid, made_by: Xid, body: Body) {
        if let Some(kept) = &mut self.0 {
            kept.insert(tid, (made_by, body));
        }
    }

    /// What the version here held, which this transaction made.
    pub fn body(&self, tid: Tid, made_by: Xid) -> Option<&Body> {
        let (known, body) = self.0.as_ref()?.get(&tid)?;
        (*known == made_by).then_some(body)
    }
}
