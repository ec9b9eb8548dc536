//! Which pages are dirty, and which owe a full-page image.
//!
//! A checkpoint moves the redo pointer and writes all dirty pages. Afterwards the first logged
//! change of each page carries its image. Two facts about a page are enough for that: whether it
//! was changed since it was written, and whether its LSN lies behind the redo pointer. A third is
//! kept for counting: whether a record of the window named it.
//! Left out: pages written between checkpoints, by the background writer or for lack of buffers.
//!
//! Source: `XLogCheckBufferNeedsBackup`, src/backend/access/transam/xloginsert.c, and
//! `MarkBufferDirty`, src/backend/storage/buffer/bufmgr.c (REL_18_STABLE).

use pgheadroom_layout::BlockNumber;

/// A fork of a relation: main, free space map or visibility map of a table or index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ForkId(pub(crate) usize);

const DIRTY: u8 = 1;
const LOGGED_SINCE_REDO: u8 = 2;
const NAMED_IN_WINDOW: u8 = 4;
/// Of a run's windows, the current one.
const NAMED_IN_SLICE: u8 = 8;
const NAMED: u8 = NAMED_IN_WINDOW | NAMED_IN_SLICE;
/// A page that another record changes nothing about.
const LOGGED: u8 = DIRTY | LOGGED_SINCE_REDO | NAMED;

/// Dirtiness of every page, a byte each.
#[derive(Debug, Clone, Default)]
pub struct PageStates {
    forks: Vec<Vec<u8>>,
    dirtied: u64,
}

impl PageStates {
    /// A new, empty fork.
    pub fn add_fork(&mut self) -> ForkId {
        self.forks.push(Vec::new());
        ForkId(self.forks.len() - 1)
    }

    /// All pages are written, and the redo pointer is now.
    pub fn checkpoint(&mut self) {
        for state in self.forks.iter_mut().flatten() {
            *state &= NAMED;
        }
    }

    /// The redo pointer is now; dirty pages stay so until [`PageStates::write`]. Those pages, in
    /// the order in which a checkpoint writes them.
    ///
    /// Source: `BufferSync` and `ckpt_buforder_comparator`, src/backend/storage/buffer/bufmgr.c
    /// (REL_18_STABLE).
    pub fn move_redo(&mut self) -> Vec<(ForkId, BlockNumber)> {
        let mut dirty = Vec::new();
        for (fork, pages) in self.forks.iter_mut().enumerate() {
            for (block, state) in (0..).zip(pages) {
                *state &= NAMED | DIRTY;
                if *state & DIRTY != 0 {
                    dirty.push((ForkId(fork), BlockNumber(block)));
                }
            }
        }
        dirty
    }

    /// The page is written.
    pub fn write(&mut self, fork: ForkId, block: BlockNumber) {
        if let Some(state) = self.forks[fork.0].get_mut(block.0 as usize) {
            *state &= !DIRTY;
        }
    }

    /// How many of a fork's pages were named since the last call.
    pub fn end_slice(&mut self, fork: ForkId) -> usize {
        let mut named = 0;
        for state in &mut self.forks[fork.0] {
            named += usize::from(*state & NAMED_IN_SLICE != 0);
            *state &= !NAMED_IN_SLICE;
        }
        named
    }

    /// No page counts as named any more.
    pub fn start_window(&mut self) {
        for state in self.forks.iter_mut().flatten() {
            *state &= !NAMED;
        }
    }

    /// How often a clean page became dirty (`Shared Dirtied Blocks` of EXPLAIN).
    #[must_use]
    pub const fn dirtied(&self) -> u64 {
        self.dirtied
    }

    /// Pages that were changed since the last checkpoint.
    #[must_use]
    pub fn dirty_pages(&self) -> usize {
        let pages = self.forks.iter().flatten();
        pages.filter(|&&state| state & DIRTY != 0).count()
    }

    /// Pages of a fork that a record has named since the window began.
    #[must_use]
    pub fn named_pages(&self, fork: ForkId) -> usize {
        let pages = self.forks[fork.0].iter();
        pages.filter(|&&state| state & NAMED_IN_WINDOW != 0).count()
    }

    /// Whether the page's LSN is not behind the redo pointer: a logged change carries its image.
    #[must_use]
    #[inline]
    pub fn owes_image(&self, fork: ForkId, block: BlockNumber) -> bool {
        self.state(fork, block) & LOGGED_SINCE_REDO == 0
    }

    /// Whether the page has to be written.
    #[must_use]
    #[inline]
    pub fn is_dirty(&self, fork: ForkId, block: BlockNumber) -> bool {
        self.state(fork, block) & DIRTY != 0
    }

    /// Whether another [`PageStates::log`] would change nothing, for the page is dirty, owes no
    /// image, and counts as named.
    #[inline]
    pub(crate) fn is_logged(&self, fork: ForkId, block: BlockNumber) -> bool {
        self.state(fork, block) == LOGGED
    }

    /// The page changed without a record.
    pub fn change(&mut self, fork: ForkId, block: BlockNumber) {
        let state = self.state_mut(fork, block);
        let was_clean = *state & DIRTY == 0;
        *state |= DIRTY;
        self.dirtied += u64::from(was_clean);
    }

    /// The page changed, and a record of that was written.
    #[inline]
    pub fn log(&mut self, fork: ForkId, block: BlockNumber) {
        let state = self.state_mut(fork, block);
        let was_clean = *state & DIRTY == 0;
        *state |= LOGGED;
        self.dirtied += u64::from(was_clean);
    }

    /// The page was logged whole and written at once, past the buffers.
    pub fn log_written(&mut self, fork: ForkId, block: BlockNumber) {
        *self.state_mut(fork, block) |= LOGGED_SINCE_REDO | NAMED;
    }

    /// The page changed, and a record names it without moving its LSN.
    pub fn name(&mut self, fork: ForkId, block: BlockNumber) {
        self.change(fork, block);
        *self.state_mut(fork, block) |= NAMED;
    }

    /// The fork ends after so many pages. What is behind them was named, and is clean if it ever
    /// comes back.
    pub fn truncate(&mut self, fork: ForkId, pages: u32) {
        for state in self.forks[fork.0].iter_mut().skip(pages as usize) {
            *state &= NAMED;
        }
    }

    #[inline]
    fn state(&self, fork: ForkId, block: BlockNumber) -> u8 {
        let pages = &self.forks[fork.0];
        pages.get(block.0 as usize).copied().unwrap_or(0)
    }

    #[inline]
    fn state_mut(&mut self, fork: ForkId, block: BlockNumber) -> &mut u8 {
        let pages = &mut self.forks[fork.0];
        let index = block.0 as usize;
        if index >= pages.len() {
            grow(pages, index + 1);
        }
        &mut pages[index]
    }
}

#[cold]
fn grow(pages: &mut Vec<u8>, count: usize) {
    pages.resize(count, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page owes one image a checkpoint, and is dirtied once between two.
    #[test]
    fn one_image_for_each_checkpoint() {
        let mut pages = PageStates::default();
        let fork = pages.add_fork();
        let block = BlockNumber(7);
        assert!(pages.owes_image(fork, block));
        pages.change(fork, block);
        assert!(pages.is_dirty(fork, block) && pages.owes_image(fork, block));
        pages.log(fork, block);
        pages.log(fork, block);
        assert!(!pages.owes_image(fork, block));
        assert_eq!(
            (
                pages.dirtied(),
                pages.dirty_pages(),
                pages.named_pages(fork)
            ),
            (1, 1, 1)
        );
        pages.checkpoint();
        assert!(pages.owes_image(fork, block) && !pages.is_dirty(fork, block));
    }

    /// A checkpoint that takes its time: images are owed from its start, pages are clean when
    /// they are written.
    #[test]
    fn checkpoints_write_later() {
        let mut pages = PageStates::default();
        let (fork, block) = (pages.add_fork(), BlockNumber(1));
        pages.log(fork, block);
        assert_eq!(pages.move_redo(), [(fork, block)]);
        assert!(pages.owes_image(fork, block) && pages.is_dirty(fork, block));
        pages.write(fork, block);
        assert!(!pages.is_dirty(fork, block));
        pages.write(fork, BlockNumber(9)); // cut off meanwhile
        assert_eq!(pages.dirty_pages(), 0);
    }

    /// Each slice counts its own pages, the window all of them.
    #[test]
    fn slices_of_a_window() {
        let mut pages = PageStates::default();
        let fork = pages.add_fork();
        pages.log(fork, BlockNumber(0));
        pages.log(fork, BlockNumber(1));
        assert_eq!(pages.end_slice(fork), 2);
        pages.name(fork, BlockNumber(1));
        pages.checkpoint();
        assert_eq!((pages.end_slice(fork), pages.named_pages(fork)), (1, 2));
        assert_eq!(pages.end_slice(fork), 0);
    }

    /// A window counts a page that was named once, whatever checkpoints do, and no other.
    #[test]
    fn named_pages_outlive_checkpoints() {
        let mut pages = PageStates::default();
        let (fork, other) = (pages.add_fork(), pages.add_fork());
        pages.log(fork, BlockNumber(3));
        pages.start_window();
        assert_eq!(pages.named_pages(fork), 0);
        assert!(!pages.owes_image(fork, BlockNumber(3)), "the LSN stays");
        pages.log(fork, BlockNumber(1));
        pages.name(fork, BlockNumber(2));
        pages.change(fork, BlockNumber(4));
        pages.checkpoint();
        pages.log(fork, BlockNumber(1));
        assert_eq!((pages.named_pages(fork), pages.named_pages(other)), (2, 0));
        assert!(pages.owes_image(fork, BlockNumber(2)));
    }
}
