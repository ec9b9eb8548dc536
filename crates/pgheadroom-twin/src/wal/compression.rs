//! Images that are to be compressed: counted plain, and anew once their pages have been compressed.

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::wal_record::Image;

use crate::checkpoint::ForkId;
use crate::wal::{RecordType, Wal};

/// An image as it was counted.
#[derive(Debug, Clone)]
pub(crate) struct Uncompressed {
    pub fork: ForkId,
    pub block: BlockNumber,
    pub hole_bytes: u32,
    /// Whose sums it is in, by place; none while its record is being put together.
    counted: Option<(usize, RecordType)>,
    in_update: bool,
}

/// Images so close to the border of what is stored compressed that a server may store them the
/// other way: bytes by which figures may be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Doubt {
    /// Of images' headers, which are no part of the images.
    pub header_bytes: u64,
    /// Of images: with pglz a quarter of each.
    pub image_bytes: u64,
}

impl Wal {
    /// What is in doubt about a table's images.
    #[must_use]
    pub fn doubt_of(&self, table: usize) -> Doubt {
        self.doubts[table + 1]
    }

    /// This image may be stored the other way, which is so many bytes of it more or less.
    pub(crate) fn doubt(&mut self, image: &Uncompressed, image_bytes: u32) {
        let (owner, _) = image.counted.expect("images are in a record");
        let plain = Image::plain(image.hole_bytes);
        let other = Image::compressed(plain.stored_bytes(), image.hole_bytes > 0);
        let doubt = &mut self.doubts[owner];
        doubt.header_bytes += u64::from(other.record_bytes() - plain.record_bytes());
        doubt.image_bytes += u64::from(image_bytes);
    }

    /// Images are compressed from now on: whoever has the pages does so before they change much
    /// ([`Wal::take_uncompressed`]).
    pub(crate) fn compress_images(&mut self) {
        self.uncompressed = Some(Vec::new());
    }

    pub(super) fn note_image(&mut self, fork: ForkId, block: BlockNumber, hole_bytes: u32) {
        if let Some(images) = &mut self.uncompressed {
            images.push(Uncompressed {
                fork,
                block,
                hole_bytes,
                counted: None,
                in_update: self.updates,
            });
        }
    }

    /// The images noted since the last record are in this one.
    pub(super) fn count_images(&mut self, owner: usize, record: RecordType) {
        for image in self.uncompressed.iter_mut().flatten().rev() {
            if image.counted.is_some() {
                break;
            }
            image.counted = Some((owner, record));
        }
    }

    /// The record that would have had the images noted since the last one is not written.
    pub(super) fn forget_uncounted(&mut self) {
        if let Some(images) = &mut self.uncompressed {
            while images.pop_if(|image| image.counted.is_none()).is_some() {}
        }
    }

    /// Whether images are compressed.
    pub(crate) const fn compresses_images(&self) -> bool {
        self.uncompressed.is_some()
    }

    /// Whether images wait to be compressed.
    #[inline]
    pub(crate) fn has_uncompressed(&self) -> bool {
        self.uncompressed
            .as_ref()
            .is_some_and(|all| !all.is_empty())
    }

    /// The images that wait.
    pub(crate) fn take_uncompressed(&mut self) -> Vec<Uncompressed> {
        self.uncompressed
            .as_mut()
            .map_or_else(Vec::new, std::mem::take)
    }

    /// An image whose page cannot be had yet.
    pub(crate) fn wait_for_pages(&mut self, image: Uncompressed) {
        self.uncompressed
            .as_mut()
            .expect("it is compressed")
            .push(image);
    }

    /// An image was compressed to so many bytes.
    ///
    /// # Panics
    /// When that is more than it had, or no record has it.
    pub(crate) fn compressed(&mut self, image: &Uncompressed, stored_bytes: u32) {
        let (owner, record) = image.counted.expect("images are in a record");
        let plain = Image::plain(image.hole_bytes);
        let stored = Image::compressed(stored_bytes, image.hole_bytes > 0);
        let of_image = u64::from(plain.stored_bytes() - stored_bytes);
        let of_record = u64::from(plain.record_bytes() - stored.record_bytes());
        let sum = &mut self.sums[owner][record.index()];
        sum.wal_fpi_bytes -= of_image;
        sum.wal_bytes -= of_record;
        if image.in_update {
            self.update_bytes[owner] += of_image - of_record;
        }
    }
}
