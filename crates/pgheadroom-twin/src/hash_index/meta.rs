//! The metapage of a hash index, and the bitmap of its overflow pages.
//!
//! ```text
//! bucket number --spares before its split point--> block
//! overflow page --bits, in the order in which pages were added--> block
//! ```

use std::ops::Range;

use pgheadroom_layout::decode::hash::Metapage;
use pgheadroom_layout::hash_index::{
    BITMAP_BYTES, BITMAP_SHIFT, SIZE_OF_HASH_META_PAGE, SIZE_OF_HASH_PAGE_OPAQUE, SPLIT_POINTS,
    buckets, ffactor, spare_index, total_buckets,
};
use pgheadroom_layout::page::{BLCKSZ, SIZE_OF_PAGE_HEADER};

const MAP_BITS: u32 = 1 << BITMAP_SHIFT;
const WORD_BITS: u32 = u32::BITS;

/// Bytes between the metapage's data and its end.
pub(super) const META_HOLE_BYTES: u32 =
    BLCKSZ - SIZE_OF_PAGE_HEADER - SIZE_OF_HASH_META_PAGE - SIZE_OF_HASH_PAGE_OPAQUE;
/// The same of a page of the bitmap.
pub(super) const MAP_HOLE_BYTES: u32 =
    BLCKSZ - SIZE_OF_PAGE_HEADER - BITMAP_BYTES - SIZE_OF_HASH_PAGE_OPAQUE;

/// What the metapage says, and the bitmap's pages.
///
/// Source: `HashMetaPageData`, src/include/access/hash.h (REL_18_STABLE).
#[derive(Debug)]
pub(super) struct Meta {
    /// Entries in the index.
    pub entries: u64,
    ffactor: u32,
    max_bucket: u32,
    high_mask: u32,
    low_mask: u32,
    /// The split point of the last bucket.
    ovflpoint: u32,
    first_free: u32,
    /// Overflow pages and pages of the bitmap up to each split point.
    spares: [u32; SPLIT_POINTS],
    maps: Vec<Map>,
}

#[derive(Debug)]
struct Map {
    block: u32,
    words: Vec<u32>,
}

/// Where a new overflow page comes to.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewOverflowPage {
    pub block: u32,
    /// The page of the bitmap in which it was found.
    pub map: Option<u32>,
    /// A page of the bitmap that is made for it.
    pub new_map: Option<u32>,
}

/// What a new bucket changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expansion {
    pub old: u32,
    pub new: u32,
    pub new_masks: bool,
    pub new_split_point: bool,
}

impl Meta {
    /// Source: `_hash_init` and `_hash_init_metabuffer`,
    /// src/backend/access/hash/hashpage.c (REL_18_STABLE).
    pub fn new(fillfactor: u32, entries: u64) -> Self {
        let ffactor = ffactor(fillfactor);
        let buckets = buckets(entries, ffactor);
        let high_mask = (buckets + 1).next_power_of_two() - 1;
        let point = spare_index(buckets);
        let mut spares = [0; SPLIT_POINTS];
        spares[point as usize] = 1;
        Self {
            entries: 0,
            ffactor,
            max_bucket: buckets - 1,
            high_mask,
            low_mask: high_mask >> 1,
            ovflpoint: point,
            first_free: 0,
            spares,
            maps: vec![Map::new(buckets + 1)],
        }
    }

    pub const fn bucket_count(&self) -> u32 {
        self.max_bucket + 1
    }

    /// Whether there are entries enough for a further bucket.
    pub fn wants_bucket(&self) -> bool {
        self.entries > u64::from(self.ffactor) * u64::from(self.max_bucket + 1)
    }

    /// Source: `_hash_hashkey2bucket`, src/backend/access/hash/hashutil.c (REL_18_STABLE).
    pub const fn bucket_of(&self, code: u32) -> u32 {
        let bucket = code & self.high_mask;
        if bucket > self.max_bucket {
            bucket & self.low_mask
        } else {
            bucket
        }
    }

    /// Source: `BUCKET_TO_BLKNO`, src/include/access/hash.h.
    pub fn block_of(&self, bucket: u32) -> u32 {
        let before = match bucket {
            0 => 0,
            _ => self.spares[spare_index(bucket + 1) as usize - 1],
        };
        bucket + before + 1
    }

    /// Buckets for which room is made with the next one: none, where there is room.
    pub fn buckets_to_add(&self) -> u32 {
        let new = self.max_bucket + 1;
        let point = spare_index(new + 1);
        if point > self.ovflpoint {
            total_buckets(point) - new
        } else {
            0
        }
    }

    /// The blocks of buckets that are still to come, which are new: room was made for all of a
    /// split point, and of it the last page was written.
    ///
    /// Source: `_hash_alloc_buckets`, src/backend/access/hash/hashpage.c (REL_18_STABLE).
    pub fn new_blocks(&self) -> Range<u32> {
        let last = total_buckets(self.ovflpoint) - 1;
        self.block_of(last.min(self.max_bucket + 1))..self.block_of(last)
    }

    /// A further bucket.
    ///
    /// Source: `_hash_expandtable`, src/backend/access/hash/hashpage.c (REL_18_STABLE).
    pub fn add_bucket(&mut self) -> Expansion {
        let new = self.max_bucket + 1;
        let old = new & self.low_mask;
        let point = spare_index(new + 1);
        self.max_bucket = new;
        let new_masks = new > self.high_mask;
        if new_masks {
            self.low_mask = self.high_mask;
            self.high_mask = new | self.low_mask;
        }
        let new_split_point = point > self.ovflpoint;
        if new_split_point {
            self.spares[point as usize] = self.spares[self.ovflpoint as usize];
            self.ovflpoint = point;
        }
        Expansion {
            old,
            new,
            new_masks,
            new_split_point,
        }
    }

    /// Takes a free overflow page, or the one behind the last.
    ///
    /// Source: `_hash_addovflpage`, src/backend/access/hash/hashovfl.c (REL_18_STABLE).
    pub fn take_overflow(&mut self) -> NewOverflowPage {
        let last = self.spares[self.ovflpoint as usize] - 1;
        let begin = self.first_free & !(WORD_BITS - 1);
        let mut words = (begin..=last).step_by(WORD_BITS as usize);
        let free = words.find_map(|bit| {
            let word = self.word(bit);
            (*word != u32::MAX).then(|| bit + word.trailing_ones())
        });
        if let Some(bit) = free {
            *self.word_mut(bit) |= 1 << (bit % WORD_BITS);
            self.first_free = bit + 1;
            return NewOverflowPage {
                block: self.block_of_bit(bit),
                map: Some(self.maps[(bit >> BITMAP_SHIFT) as usize].block),
                new_map: None,
            };
        }
        let mut bit = last + 1;
        let mut new_map = None;
        if bit.is_multiple_of(MAP_BITS) {
            let block = self.block_of_bit(bit);
            self.maps.push(Map::new(block));
            self.spares[self.ovflpoint as usize] += 1;
            new_map = Some(block);
            bit += 1;
        }
        let block = self.block_of_bit(bit);
        self.spares[self.ovflpoint as usize] += 1;
        self.first_free = bit + 1;
        NewOverflowPage {
            block,
            map: None,
            new_map,
        }
    }

    /// An overflow page is free: the page of the bitmap that says so, and whether it is the first.
    ///
    /// Source: `_hash_freeovflpage`, src/backend/access/hash/hashovfl.c (REL_18_STABLE).
    pub fn free_overflow(&mut self, block: u32) -> (u32, bool) {
        let bit = self.bit_of_block(block);
        *self.word_mut(bit) &= !(1 << (bit % WORD_BITS));
        let is_first = bit < self.first_free;
        if is_first {
            self.first_free = bit;
        }
        (self.maps[(bit >> BITMAP_SHIFT) as usize].block, is_first)
    }

    /// What its page says.
    pub fn page(&self) -> Metapage {
        Metapage {
            ntuples: self.entries,
            ffactor: u16::try_from(self.ffactor).expect("entries of a page"),
            maxbucket: self.max_bucket,
            highmask: self.high_mask,
            lowmask: self.low_mask,
            ovflpoint: self.ovflpoint,
            firstfree: self.first_free,
        }
    }

    /// Of a page of the bitmap which of its bits are free.
    pub fn free_bits_of(&self, block: u32) -> Option<Vec<u32>> {
        let map = self.maps.iter().find(|map| map.block == block)?;
        let is_free =
            |bit: &u32| map.words[(bit / WORD_BITS) as usize] & 1 << (bit % WORD_BITS) == 0;
        Some((0..MAP_BITS).filter(is_free).collect())
    }

    fn word(&self, bit: u32) -> &u32 {
        &self.maps[(bit >> BITMAP_SHIFT) as usize].words[((bit % MAP_BITS) / WORD_BITS) as usize]
    }

    fn word_mut(&mut self, bit: u32) -> &mut u32 {
        &mut self.maps[(bit >> BITMAP_SHIFT) as usize].words
            [((bit % MAP_BITS) / WORD_BITS) as usize]
    }

    /// Source: `bitno_to_blkno`, src/backend/access/hash/hashovfl.c (REL_18_STABLE).
    fn block_of_bit(&self, bit: u32) -> u32 {
        let number = bit + 1;
        let mut points = 1..self.ovflpoint;
        let point = points.find(|point| number <= self.spares[*point as usize]);
        total_buckets(point.unwrap_or(self.ovflpoint.max(1))) + number
    }

    /// Source: `_hash_ovflblkno_to_bitno`, src/backend/access/hash/hashovfl.c (REL_18_STABLE).
    fn bit_of_block(&self, block: u32) -> u32 {
        let mut points = 1..=self.ovflpoint;
        let found = points.find_map(|point| {
            let number = block.checked_sub(total_buckets(point))?;
            let before = self.spares[point as usize - 1];
            (before < number && number <= self.spares[point as usize]).then(|| number - 1)
        });
        found.expect("an overflow page")
    }
}

impl Map {
    /// All in use, as pages are that do not exist yet.
    fn new(block: u32) -> Self {
        Self {
            block,
            words: vec![u32::MAX; (MAP_BITS / WORD_BITS) as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is taken and given back, a block is one overflow page's, and no bucket's.
    #[test]
    fn blocks_are_of_one() {
        let mut meta = Meta::new(75, 0);
        let mut taken = std::collections::BTreeSet::new();
        for step in 0..15_000_u32 {
            if step % 7 == 0 {
                meta.add_bucket();
            }
            if step % 3 == 2 {
                let block = *taken.iter().nth(step as usize % taken.len()).unwrap();
                taken.remove(&block);
                meta.free_overflow(block);
            } else {
                let place = meta.take_overflow();
                assert!(taken.insert(place.block), "{place:?} at {step}");
            }
            if step % 997 == 0 {
                let buckets = (0..meta.bucket_count()).map(|bucket| meta.block_of(bucket));
                for block in buckets.chain(meta.maps.iter().map(|map| map.block)) {
                    assert!(!taken.contains(&block), "{block} at {step}");
                }
            }
        }
    }
}
