//! Where memory lies: asking for it before it is needed, and in larger pages.

use std::mem::MaybeUninit;

/// Brings the cache line of a value closer, where the processor has an instruction for that;
/// changes nothing else.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction reads nothing and faults never, and every x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Bytes of a huge page, as all Linux machines that matter here have them.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Asks the system for huge pages where nothing was written so far; where it has none, nothing
/// changes but time.
///
/// Source: `MADV_HUGEPAGE`, madvise(2).
pub(crate) fn prefer_huge_pages<T>(room: &mut [MaybeUninit<T>]) {
    #[cfg(target_os = "linux")]
    {
        let range = room.as_mut_ptr_range();
        let start = range.start.addr().next_multiple_of(HUGE_PAGE_BYTES);
        let end = range.end.addr() / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        if start < end {
            let start_of = std::ptr::without_provenance_mut(start);
            // SAFETY: the call changes neither what memory holds nor where programs see it.
            unsafe { libc::madvise(start_of, end - start, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = room;
}

/// Pieces of memory, to be put into huge pages: a large table's lookups otherwise miss the cache of
/// address translations each time, which costs as much as the memory itself.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// Numbers of huge pages.
    pages: Vec<usize>,
}

impl Pieces {
    /// Adds what lies in this slice.
    pub fn add<T>(&mut self, slice: &[T]) {
        let start = slice.as_ptr().addr();
        let end = start + size_of_val(slice);
        if start == end {
            return;
        }
        let pages = start / HUGE_PAGE_BYTES..=(end - 1) / HUGE_PAGE_BYTES;
        for page in pages {
            if self.pages.last() != Some(&page) {
                self.pages.push(page);
            }
        }
    }

    /// Bytes that they take, in huge pages.
    pub fn bytes(&mut self) -> usize {
        self.pages.sort_unstable();
        self.pages.dedup();
        self.pages.len() * HUGE_PAGE_BYTES
    }

    /// Asks the system to put them into huge pages; where it does not, nothing changes but time.
    ///
    /// Source: `MADV_COLLAPSE`, madvise(2), Linux 6.1 and later.
    pub fn gather(&self) {
        #[cfg(target_os = "linux")]
        for &page in &self.pages {
            let start = std::ptr::without_provenance_mut(page * HUGE_PAGE_BYTES);
            // SAFETY: the call moves memory without changing what it holds or where programs see
            // it, and fails where the range is not all mapped.
            unsafe { libc::madvise(start, HUGE_PAGE_BYTES, libc::MADV_COLLAPSE) };
        }
    }
}
