//! A heap of which a page is watched: what happens to it is told to its [`Watch`].

use pgheadroom_layout::BlockNumber;

use crate::heap::Heap;
use crate::watch::{EventKind, PageLife, Watch};

impl Heap {
    /// Starts to note what happens to a page, which need not exist yet.
    pub fn watch(&mut self, block: BlockNumber) {
        let page = self.pages.get(block.0 as usize);
        let watch = Watch::new(block, page, self.prune_below_bytes());
        self.watch = Some(Box::new(watch));
    }

    /// Says when it is now, for events to come.
    pub fn note_moment(&mut self, transaction: u64) {
        if let Some(watch) = &mut self.watch {
            watch.note_moment(transaction);
        }
    }

    /// What happened to the watched page, if there is one.
    #[must_use]
    pub fn page_life(&self) -> Option<PageLife> {
        self.watch.as_deref().map(Watch::life)
    }

    /// Whether some page is watched.
    pub(crate) const fn is_any_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Whether this page is watched.
    #[inline]
    pub(crate) fn is_watched(&self, block: BlockNumber) -> bool {
        let watch = self.watch.as_ref();
        watch.is_some_and(|watch| watch.block() == block)
    }

    /// Notes an event, if its page is watched.
    #[inline]
    pub(crate) fn note(&mut self, block: BlockNumber, kind: impl FnOnce() -> EventKind) {
        if self.is_watched(block) {
            self.add_event(kind());
        }
    }

    /// The table was cut: notes it if the page went.
    pub(crate) fn note_cut(&mut self, before: u32, after: u32) {
        let watch = self.watch.as_ref();
        if watch.is_some_and(|watch| (after..before).contains(&watch.block().0)) {
            self.add_event(EventKind::CutOff);
        }
    }

    #[cold]
    fn add_event(&mut self, kind: EventKind) {
        if let Some(watch) = &mut self.watch {
            let page = self.pages.get(watch.block().0 as usize);
            watch.add(kind, page);
        }
    }
}
