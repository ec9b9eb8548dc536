//! Memory that files are read into.
//!
//! The kernel copies pages to it by an instruction (`rep movsb`) that some processors are slow at
//! where the place is not the begin of a cache line: one of 2021 (Zen 3) took 0.33 s for 508 MB,
//! and 0.08 s where it is. What an allocator gives in pieces as large as these is 16 bytes off.

use crate::format::PAGE_BYTES;

/// Read at once. Of 508 MB half a MB at a time took 3 % less than 128 kB where a core has a
/// second-level cache of 1 MB; where it has half of that, 64 to 512 kB measured alike.
pub(crate) const CHUNK_BYTES: usize = 64 * PAGE_BYTES;
/// Of a stream so many bytes of the page behind are there too. A cache line: what is read next
/// begins behind them.
pub(crate) const AHEAD_BYTES: usize = 64;
const READ_BYTES: usize = CHUNK_BYTES + AHEAD_BYTES;
/// Where a chunk begins: at a memory page.
const CHUNK_ALIGN: usize = 4096;

/// Memory that files are read into, again and again.
pub struct Chunk {
    bytes: Vec<u8>,
    from: usize,
}

impl Chunk {
    /// Zeros.
    #[must_use]
    pub fn new() -> Self {
        let bytes = vec![0; READ_BYTES + PAGE_BYTES + CHUNK_ALIGN];
        let from = bytes.as_ptr().align_offset(CHUNK_ALIGN).min(CHUNK_ALIGN);
        Self { bytes, from }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.from..][..READ_BYTES]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.from..][..READ_BYTES]
    }

    /// A page of which so many bytes lie at a place, and no more: filled up with zeros.
    pub(crate) fn filled_up(&mut self, at: usize, there: usize) -> &[u8] {
        let (bytes, page) = self.bytes[self.from..].split_at_mut(READ_BYTES);
        page[..there].copy_from_slice(&bytes[at..at + there]);
        page[there..PAGE_BYTES].fill(0);
        &page[..PAGE_BYTES]
    }
}

impl Default for Chunk {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wherever the allocator puts it, and after it was moved.
    #[test]
    fn a_chunk_begins_at_a_memory_page() {
        let chunks: Vec<Chunk> = (0..9).map(|_| Chunk::new()).collect();
        for chunk in &chunks {
            assert_eq!(chunk.bytes().as_ptr().align_offset(CHUNK_ALIGN), 0);
            assert_eq!(chunk.bytes().len(), READ_BYTES);
        }
    }
}
