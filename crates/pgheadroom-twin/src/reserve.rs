//! Memory that runs out ends a run, not the process.
//!
//! Rust aborts when an allocation fails. So while something is played, address space is set aside
//! that nobody uses; the first allocation that fails gives it back, succeeds, and says so. The run
//! hears of it at its next look at the [`Monitor`](crate::run::Monitor), a thousand rows later at
//! most, and ends with an error while there still is room.
//!
//! ```text
//! begin: set aside -> ... -> malloc fails: give back, try again -> advance(): OutOfMemory
//! ```
//!
//! An array grows to twice its size, so twice the largest block is kept; what comes in one piece
//! larger than that is asked for beforehand ([`have`]). Works where [`Allocator`] is the program's
//! allocator. Left out: what the system itself kills for want of memory, of which no allocation
//! tells; that is for whoever asks [`crate::profile::estimate`] before.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What is set aside at least: a thousand rows and a transaction's work are far below. Arbitrary.
const LEAST_BYTES: usize = 64 << 20;
/// Blocks from which on an allocation counts as large.
const LARGE_BYTES: usize = 8 << 20;

/// Runs under way.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);
/// Whether the memory set aside had to be given back, or could not be had.
static SHORT: AtomicBool = AtomicBool::new(false);
/// The largest block that any of the runs got.
static LARGEST: AtomicUsize = AtomicUsize::new(0);
static ASIDE: Mutex<Aside> = Mutex::new(Aside { start: 0, bytes: 0 });

/// There is not so much memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short;

/// A run under way; memory is set aside as long as there is one.
#[derive(Debug)]
pub struct Playing(());

impl Playing {
    /// Sets memory aside.
    ///
    /// # Errors
    /// [`Short`] when there is none, or another run is about to end for want of it.
    pub fn begin() -> Result<Self, Short> {
        if ACTIVE.fetch_add(1, Ordering::SeqCst) == 0 {
            SHORT.store(false, Ordering::SeqCst);
            LARGEST.store(0, Ordering::SeqCst);
        }
        let playing = Self(()); // counts itself off should the next line fail
        have(LEAST_BYTES)?;
        Ok(playing)
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        if ACTIVE.fetch_sub(1, Ordering::SeqCst) == 1 {
            locked(Aside::give_back);
        }
    }
}

/// Whether memory has run out since the runs began.
#[inline]
pub fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed)
}

/// Sets aside at least so many bytes, for what is about to be allocated without a look at the
/// monitor.
///
/// # Errors
/// [`Short`] when there are not so many.
pub fn have(bytes: usize) -> Result<(), Short> {
    if is_short() || !locked(|aside| aside.grow(bytes)) {
        return Err(Short);
    }
    Ok(())
}

/// Whether so many bytes could be had at this moment, without keeping them.
///
/// # Errors
/// [`Short`] when not.
pub fn probe(bytes: usize) -> Result<(), Short> {
    let mut probed = Aside { start: 0, bytes: 0 };
    let is_there = probed.grow(bytes);
    probed.give_back();
    if is_there { Ok(()) } else { Err(Short) }
}

/// Address space that nothing is written to.
struct Aside {
    start: usize,
    bytes: usize,
}

fn locked<T>(work: impl FnOnce(&mut Aside) -> T) -> T {
    work(&mut ASIDE.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(target_os = "linux")]
impl Aside {
    /// Has so many bytes; whether that was possible.
    fn grow(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes {
            return true;
        }
        // SAFETY: a new private mapping that nobody else knows, or the one of an earlier call,
        // which may move since nothing refers to it.
        let found = unsafe {
            if self.bytes == 0 {
                libc::mmap(
                    std::ptr::null_mut(),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )
            } else {
                let start = std::ptr::with_exposed_provenance_mut(self.start);
                libc::mremap(start, self.bytes, bytes, libc::MREMAP_MAYMOVE)
            }
        };
        if found == libc::MAP_FAILED {
            return false;
        }
        (self.start, self.bytes) = (found.expose_provenance(), bytes);
        true
    }

    fn give_back(&mut self) {
        if self.bytes > 0 {
            let start = std::ptr::with_exposed_provenance_mut(self.start);
            // SAFETY: the mapping of `grow`, to which nothing refers.
            unsafe { libc::munmap(start, self.bytes) };
            (self.start, self.bytes) = (0, 0);
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Aside {
    fn grow(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.max(bytes);
        true
    }

    fn give_back(&mut self) {
        self.bytes = 0;
    }
}

/// The system's allocator, which gives back what was set aside before it fails.
#[derive(Debug, Clone, Copy)]
pub struct Allocator;

// SAFETY: every block is the system allocator's; what happens beside changes none of them.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        got(layout.size(), || unsafe { System.alloc(layout) })
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        got(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as the caller promises; a block that could not grow is still there.
        got(new_size, || unsafe {
            System.realloc(block, layout, new_size)
        })
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn got(bytes: usize, mut allocate: impl FnMut() -> *mut u8) -> *mut u8 {
    let block = allocate();
    if block.is_null() && ACTIVE.load(Ordering::Relaxed) > 0 {
        SHORT.store(true, Ordering::SeqCst);
        locked(Aside::give_back);
        return allocate();
    }
    if bytes >= LARGE_BYTES {
        note_large(bytes);
    }
    block
}

/// Keeps enough aside for a block of this size to grow. Allocates nothing.
#[cold]
fn note_large(bytes: usize) {
    let is_larger = LARGEST.fetch_max(bytes, Ordering::SeqCst) < bytes;
    if ACTIVE.load(Ordering::Relaxed) == 0 || !is_larger || is_short() {
        return;
    }
    let wanted = bytes.saturating_mul(2).saturating_add(LEAST_BYTES);
    if !locked(|aside| aside.grow(wanted)) {
        SHORT.store(true, Ordering::SeqCst);
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// More than any address space has is not there, whatever was set aside before.
    #[test]
    fn too_much_is_not_there() {
        let playing = Playing::begin().expect("64 MiB");
        assert_eq!(probe(1 << 20), Ok(()));
        assert_eq!(probe(1 << 60), Err(Short));
        assert_eq!(have(2 * LEAST_BYTES), Ok(()));
        assert_eq!(have(1 << 60), Err(Short));
        assert!(locked(|aside| aside.bytes) >= 2 * LEAST_BYTES);
        drop(playing);
    }

    /// What is set aside grows, never shrinks, and is given back whole.
    #[test]
    fn what_is_set_aside_is_given_back() {
        let mut aside = Aside { start: 0, bytes: 0 };
        assert!(aside.grow(LEAST_BYTES));
        let first = aside.start;
        assert!(aside.grow(1), "what is there is enough");
        assert_eq!(aside.start, first);
        aside.give_back();
        assert_eq!(aside.bytes, 0);
    }
}
