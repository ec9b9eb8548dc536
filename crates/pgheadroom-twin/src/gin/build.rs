//! CREATE INDEX: keys are gathered with their rows, and put into the trees in order.

use crate::executor::SessionId;
use crate::gin::accumulate::Accumulator;
use crate::gin::key::Key;
use crate::gin::page::Content;
use crate::gin::{GinIndex, Surroundings};
use crate::page::Tid;
use crate::transaction::Xid;
use crate::wal::Wal;

const KB: u64 = 1024;

impl GinIndex {
    /// Fills a new index with these rows' keys, rows in their order. Nothing of it is logged.
    ///
    /// Source: `ginbuild`, src/backend/access/gin/gininsert.c (REL_18_STABLE). Left out: parallel
    /// workers, of 18 and later, which a profile's load does not have.
    ///
    /// # Errors
    /// The first of `rows`.
    pub fn build<E>(
        &mut self,
        rows: impl Iterator<Item = Result<(Vec<Key>, Tid), E>>,
        wal: &mut Wal,
    ) -> Result<(), E> {
        let memory = u64::from(self.options.server.memory.maintenance_work_mem) * KB;
        let mut gathered = Accumulator::new(self.behaviour.memory_chunk_header_bytes, false);
        let around = &mut Surroundings {
            wal,
            is_removable: &|_| true,
            session: SessionId(0),
        };
        for row in rows {
            let (keys, tid) = row?;
            for key in keys {
                gathered.add(key, tid);
            }
            if gathered.memory >= memory {
                self.insert_gathered(&mut gathered, around);
            }
        }
        self.insert_gathered(&mut gathered, around);
        self.count_pages(&|_| true);
        Ok(())
    }

    fn insert_gathered(&mut self, gathered: &mut Accumulator, around: &mut Surroundings<'_>) {
        for (key, tids) in gathered.take() {
            self.insert_rows(&key, &tids, around);
        }
    }

    /// From now on everything is logged.
    pub const fn begin_logging(&mut self) {
        self.log.is_on = true;
    }

    /// What the metapage says of pages and entries.
    ///
    /// Source: `ginUpdateStats`, src/backend/access/gin/ginutil.c; `ginvacuumcleanup`, ginvacuum.c
    /// (REL_18_STABLE).
    pub(super) fn count_pages(&mut self, is_removable: &dyn Fn(Xid) -> bool) {
        let (mut entry_pages, mut data_pages, mut entries) = (0, 0, 0);
        for page in &self.pages {
            match &page.content {
                Content::Leaf(leaf) => {
                    entry_pages += 1;
                    entries += leaf.items.len() as u64;
                }
                Content::Inner(_) => entry_pages += 1,
                Content::DataLeaf { .. } | Content::DataInner { .. } => data_pages += 1,
                // Of a posting tree: it is one until it is free.
                Content::Deleted { .. } if !page.is_recyclable(is_removable) => data_pages += 1,
                _ => {}
            }
        }
        self.meta.pages = [self.page_count(), entry_pages, data_pages];
        self.meta.entries = entries;
    }
}
