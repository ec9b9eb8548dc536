//! A dynamic shared memory area, as far as its size goes: what a VACUUM with parallel workers
//! remembers dead line pointers in.
//!
//! ```text
//! area: segments, each twice as large as two before it, up to a limit; its size is their sum
//! segment: superblocks of 16 pages, each for objects of one size class; pages of spans
//! ```
//!
//! Objects of a class take free places of its superblocks before there is a new one. No superblock
//! is given back: of a tree that only grows, the last node of each level alone is replaced.
//!
//! Source: src/backend/utils/mmgr/dsa.c (REL_18_STABLE), of a server with 64 bits.

/// Bytes of the smallest segment. Source: `DSA_MIN_SEGMENT_SIZE`, src/include/utils/dsa.h.
const MIN_SEGMENT: u64 = 256 << 10;
/// Bytes of the first one, where there is room. Source: `DSA_DEFAULT_INIT_SEGMENT_SIZE`.
const INIT_SEGMENT: u64 = 1 << 20;
/// Bytes of the largest. Source: `DSA_MAX_SEGMENT_SIZE`.
const MAX_SEGMENT: u64 = 1 << 40;
/// Segments of each size. Source: `DSA_NUM_SEGMENTS_AT_EACH_SIZE`.
const SEGMENTS_OF_A_SIZE: usize = 2;
/// Source: `FPM_PAGE_SIZE`, src/include/utils/freepage.h.
const PAGE: u64 = 4096;
/// Source: `DSA_PAGES_PER_SUPERBLOCK`.
const SUPERBLOCK_PAGES: u64 = 16;
/// Lists of segments by their run of free pages. Source: `DSA_NUM_SEGMENT_BINS`.
const BINS: usize = 16;
/// `sizeof(dsa_area_control)`, which the first segment begins with.
const AREA_CONTROL: u64 = 6192;
/// `sizeof(dsa_segment_header)`, which others begin with.
const SEGMENT_HEADER: u64 = 56;
/// `sizeof(FreePageManager)`, of each segment.
const FREE_PAGE_MANAGER: u64 = 1096;
/// `sizeof(dsa_pointer)`: of each page the span that it belongs to.
const POINTER: u64 = 8;
/// `sizeof(dsa_area_span)`.
const SPAN: u64 = 56;

/// Sizes of objects. Source: `dsa_size_classes`.
const SIZE_CLASSES: [u64; 36] = [
    8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640,
    768, 896, 1024, 1280, 1560, 1816, 2048, 2616, 3120, 3640, 4096, 5456, 6552, 7280, 8192,
];

/// A segment: its free pages lie in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    free_pages: u64,
}

/// What an area has allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dsa {
    /// Bytes of all segments.
    total: u64,
    init_segment: u64,
    max_segment: u64,
    segments: Vec<Segment>,
    /// Segments by the run that they had when they were last looked at; the newest first.
    bins: [Vec<usize>; BINS],
    /// Free places of each class.
    free: [u64; SIZE_CLASSES.len()],
    /// The same of spans, which describe superblocks.
    free_spans: u64,
}

impl Dsa {
    /// An empty one: no segment is larger than an eighth of so many bytes, but for the smallest.
    ///
    /// Source: `TidStoreCreateShared`, src/backend/access/common/tidstore.c (REL_18_STABLE);
    /// `create_internal`.
    pub fn new(max_bytes: u64) -> Self {
        let mut max_segment = MAX_SEGMENT;
        while 8 * max_segment > max_bytes && max_segment > MIN_SEGMENT {
            max_segment >>= 1;
        }
        let max_segment = max_segment.max(MIN_SEGMENT);
        let init_segment = INIT_SEGMENT.min(max_segment);
        let mut area = Self {
            total: 0,
            init_segment,
            max_segment,
            segments: Vec::new(),
            bins: std::array::from_fn(|_| Vec::new()),
            free: [0; SIZE_CLASSES.len()],
            free_spans: 0,
        };
        area.add_segment(init_segment, AREA_CONTROL);
        area
    }

    /// Bytes. Source: `dsa_get_total_size`.
    pub const fn allocated(&self) -> u64 {
        self.total
    }

    /// Takes an object of so many bytes.
    ///
    /// # Panics
    /// Of more than 8192 bytes.
    ///
    /// Source: `dsa_allocate_extended`, `alloc_object` and `ensure_active_superblock`.
    pub fn allocate(&mut self, bytes: u64) {
        let class = class_of(bytes);
        if self.free[class] == 0 {
            if self.free_spans == 0 {
                self.take_pages(1);
                self.free_spans = PAGE / SPAN - 1; // the first describes the page itself
            }
            self.free_spans -= 1;
            self.take_pages(SUPERBLOCK_PAGES);
            self.free[class] = SUPERBLOCK_PAGES * PAGE / SIZE_CLASSES[class];
        }
        self.free[class] -= 1;
    }

    /// Gives one back. Source: `dsa_free`. Differs: see the module.
    pub fn free(&mut self, bytes: u64) {
        self.free[class_of(bytes)] += 1;
    }

    /// Takes a run of pages, out of a new segment where none has one.
    ///
    /// Source: `get_best_segment` and `make_new_segment`.
    fn take_pages(&mut self, pages: u64) {
        let segment = self.best_segment(pages).unwrap_or_else(|| {
            let doublings = self.segments.len() / SEGMENTS_OF_A_SIZE;
            let bytes = self.init_segment << doublings.min(40);
            self.add_segment(bytes.min(self.max_segment), SEGMENT_HEADER)
        });
        self.segments[segment].free_pages -= pages;
    }

    /// The first segment with such a run, of the list with the shortest runs.
    fn best_segment(&mut self, pages: u64) -> Option<usize> {
        for bin in bin_of(pages)..BINS {
            let threshold = 1 << (bin - 1);
            for segment in self.bins[bin].clone() {
                let found = self.segments[segment].free_pages;
                if found < threshold {
                    self.bins[bin].retain(|one| *one != segment);
                    self.put_into_bin(segment);
                }
                if found >= pages {
                    return Some(segment);
                }
            }
        }
        None
    }

    fn add_segment(&mut self, bytes: u64, header: u64) -> usize {
        let pages = bytes / PAGE;
        let metadata = header + FREE_PAGE_MANAGER + pages * POINTER;
        let segment = self.segments.len();
        self.segments.push(Segment {
            free_pages: pages - metadata.div_ceil(PAGE),
        });
        self.put_into_bin(segment);
        self.total += bytes;
        segment
    }

    fn put_into_bin(&mut self, segment: usize) {
        let bin = bin_of(self.segments[segment].free_pages);
        self.bins[bin].insert(0, segment);
    }
}

/// Source: `contiguous_pages_to_segment_bin`.
fn bin_of(pages: u64) -> usize {
    let bits = (u64::BITS - pages.leading_zeros()) as usize;
    bits.min(BINS - 1)
}

fn class_of(bytes: u64) -> usize {
    SIZE_CLASSES.partition_point(|&size| size < bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two segments of each size up to an eighth of the limit; one page of spans is enough for 72
    /// superblocks.
    #[test]
    fn segments_grow() {
        let mut area = Dsa::new(64 << 20);
        let mut sizes = vec![area.allocated()];
        for _ in 0..400 {
            area.allocate(8192);
            if sizes.last() != Some(&area.allocated()) {
                sizes.push(area.allocated());
            }
        }
        assert_eq!(
            sizes.iter().map(|size| size >> 20).collect::<Vec<_>>(),
            [1, 2, 4]
        );
        let small = Dsa::new(64 << 10);
        assert_eq!(small.allocated(), 256 << 10);
    }

    /// What was given back is taken first.
    #[test]
    fn places_are_taken_again() {
        let mut area = Dsa::new(64 << 20);
        area.allocate(40);
        let once = area.clone();
        for _ in 0..10_000 {
            area.free(40);
            area.allocate(34); // of the same class
        }
        assert_eq!(area, once);
    }
}
