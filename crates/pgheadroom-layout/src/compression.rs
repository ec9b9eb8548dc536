//! How a server compresses images of pages and long values.
//!
//! ```text
//! pglz   PostgreSQL's own; gives up unless it saves a quarter
//! lz4    the library's default; zstd the library's, at its default level
//! ```
//!
//! lz4 and zstd are the C libraries themselves, of releases of ours: another release may make a
//! few bytes more or less of the same input.
//!
//! Source: `XLogCompressBackupBlock`, src/backend/access/transam/xloginsert.c, and
//! `pglz_compress_datum` and `lz4_compress_datum`, src/backend/access/common/toast_compression.c
//! (REL_15_STABLE, REL_18_STABLE).

use crate::pglz;

/// Source: `ToastCompressionId`, src/include/access/toast_compression.h: above the 30 bits of a
/// compressed value's length.
const TOAST_ID_SHIFT: u32 = 30;

/// What compresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)] // PostgreSQL's words
pub enum Method {
    #[default]
    Pglz,
    Lz4,
    Zstd,
}

impl Method {
    /// The compressed bytes; none where pglz gives up. Those of lz4 and zstd may be more than the
    /// source: who stores them looks for himself whether that saves anything.
    #[must_use]
    pub fn compress(self, source: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Pglz => pglz::compress(source),
            Self::Lz4 => lz4::block::compress(source, None, false).ok(),
            Self::Zstd => zstd::bulk::compress(source, zstd::DEFAULT_COMPRESSION_LEVEL).ok(),
        }
    }

    /// How many bytes of output are too many for so many of input.
    #[must_use]
    pub const fn most_bytes(self, source_bytes: usize) -> usize {
        match self {
            Self::Pglz => pglz::most_bytes(source_bytes),
            Self::Lz4 | Self::Zstd => source_bytes,
        }
    }

    /// The method as a compressed value of a column has it, beside its length.
    ///
    /// # Panics
    /// For zstd, which no value is compressed by.
    #[must_use]
    pub fn toast_bits(self) -> u32 {
        match self {
            Self::Pglz => 0,
            Self::Lz4 => 1 << TOAST_ID_SHIFT,
            Self::Zstd => panic!("values are compressed by pglz or lz4"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes() -> Vec<u8> {
        let mut state = 0x2545_F491_u32;
        let mut digit = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            b"0123456789abcdef"[(state >> 28) as usize]
        };
        std::iter::repeat_with(&mut digit).take(6000).collect()
    }

    /// Digits without order: two in a byte for zstd, nothing for the others, of which lz4 says so
    /// by its size and pglz by no answer.
    #[test]
    fn what_each_makes_of_digits() {
        let source = hashes();
        let bytes = |method: Method| method.compress(&source).map(|bytes| bytes.len());
        assert_eq!(bytes(Method::Pglz), None);
        let lz4 = bytes(Method::Lz4).unwrap();
        assert!(lz4 > 5900, "{lz4}");
        let zstd = bytes(Method::Zstd).unwrap();
        assert!((3000..3400).contains(&zstd), "{zstd}");
    }

    /// What is compressed comes back by the libraries' own ways.
    #[test]
    fn comes_back() {
        let source = hashes().repeat(3);
        let lz4 = Method::Lz4.compress(&source).unwrap();
        let zstd = Method::Zstd.compress(&source).unwrap();
        assert!(lz4.len() < 6200 && zstd.len() < 3500);
        let length = i32::try_from(source.len()).unwrap();
        assert_eq!(lz4::block::decompress(&lz4, Some(length)).unwrap(), source);
        assert_eq!(zstd::bulk::decompress(&zstd, source.len()).unwrap(), source);
    }
}
