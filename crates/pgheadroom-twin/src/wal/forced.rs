//! Images that a record has whenever its page was logged last.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::wal_record::Page;

use crate::checkpoint::ForkId;
use crate::wal::Wal;

impl Wal {
    /// A page that the next record carries whole, whatever the settings (`REGBUF_FORCE_IMAGE`).
    pub(crate) fn force_image(&mut self, fork: ForkId, block: BlockNumber, hole: u32) -> Page {
        self.pages.log(fork, block);
        self.named = self.owners[fork.0];
        self.image(fork, block, hole)
    }

    /// A page that was emptied with its LSN before the next record registers it changed: it owes an
    /// image whenever it was logged last.
    pub(crate) fn change_reset(&mut self, fork: ForkId, block: BlockNumber, hole: u32) -> Page {
        if self.settings.full_page_writes {
            self.force_image(fork, block, hole)
        } else {
            self.change(fork, block, hole)
        }
    }
}
