//! What each compression would make of the images in the log, and the processor time that takes.
//!
//! Of very many images every n-th is taken; the sums of all without their holes are known from
//! their headers, and the sample's ratios are applied to them.

use std::fs;
use std::thread;
use std::time::Instant;

use pgheadroom_layout::Lsn;

use crate::format::PAGE_BYTES;
use crate::image::{image_bytes_under, unpack};
use crate::record::{Compression, Record};
use crate::sink::Sink;

/// The methods, in the order of [`Packed::methods`].
pub const METHODS: [(Compression, &str); 4] = [
    (Compression::None, "off"),
    (Compression::Pglz, "pglz"),
    (Compression::Lz4, "lz4"),
    (Compression::Zstd, "zstd"),
];

/// Images that are unpacked before each method is tried on them. Arbitrary: fits the cache.
const BATCH: usize = 64;

/// One method's sums over the sample.
#[derive(Debug, Clone, Copy, Default)]
pub struct Method {
    /// Bytes of the sampled images under it.
    pub bytes: u64,
    /// Of them those that say how long their hole is, which takes two bytes more.
    pub with_length: u64,
    /// Processor time, in nanoseconds; packing alone.
    pub cpu_ns: u64,
}

/// The sums.
#[derive(Debug, Default)]
pub struct Packed {
    from: Lsn,
    to: Lsn,
    every: u64,
    batch: Vec<Vec<u8>>,
    /// Images, all.
    pub images: u64,
    /// Their bytes in the log.
    pub logged_bytes: u64,
    /// Their bytes without compression and without holes.
    pub unpacked_bytes: u64,
    /// Of them those that say how long their hole is.
    pub with_length: u64,
    /// Images of the sample.
    pub sampled: u64,
    /// Their bytes without compression and without holes.
    pub sampled_bytes: u64,
    /// Images of the sample that do not unpack.
    pub broken: u64,
    /// As [`METHODS`].
    pub methods: [Method; METHODS.len()],
}

impl Packed {
    /// Nothing yet; every n-th image of records that begin at `from` or later and end at `to`.
    #[must_use]
    pub fn new(from: Lsn, to: Lsn, every: u64) -> Self {
        Self {
            from,
            to,
            every: every.max(1),
            ..Self::default()
        }
    }

    /// Tries the methods on what was gathered.
    pub fn flush(&mut self) {
        for (sums, (method, _)) in self.methods.iter_mut().zip(METHODS) {
            let started = Stopwatch::start();
            for page in &self.batch {
                let bytes = image_bytes_under(method, page);
                sums.bytes += bytes as u64;
                let is_packed = bytes < page.len();
                sums.with_length += u64::from(is_packed && page.len() < PAGE_BYTES);
            }
            sums.cpu_ns += started.passed_ns();
        }
        self.batch.clear();
    }
}

impl Sink for Packed {
    fn record(&mut self, record: &Record<'_>, end: Lsn) -> bool {
        if end > self.to {
            return false;
        }
        if record.lsn < self.from {
            return true;
        }
        for (place, block) in record.blocks.iter().enumerate() {
            let Some(image) = block.image else { continue };
            self.logged_bytes += u64::from(image.bytes);
            self.unpacked_bytes += image.unpacked_bytes() as u64;
            self.with_length +=
                u64::from(image.compression != Compression::None && image.hole_bytes > 0);
            self.images += 1;
            if !self.images.is_multiple_of(self.every) {
                continue;
            }
            match unpack(record, place) {
                Ok(page) => {
                    self.sampled += 1;
                    self.sampled_bytes += page.len() as u64;
                    self.batch.push(page);
                }
                Err(_) => self.broken += 1,
            }
        }
        if self.batch.len() >= BATCH {
            self.flush();
        }
        true
    }
}

/// Time that this thread had a processor, where the system tells; else time that passed.
struct Stopwatch {
    wall: Instant,
    cpu_ns: Option<u64>,
}

impl Stopwatch {
    fn start() -> Self {
        Self {
            wall: Instant::now(),
            cpu_ns: on_cpu_ns(),
        }
    }

    fn passed_ns(&self) -> u64 {
        match (self.cpu_ns, on_cpu_ns()) {
            (Some(from), Some(to)) => to.saturating_sub(from),
            _ => u64::try_from(self.wall.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

/// Linux: the first number of a thread's schedstat, which yielding brings up to date.
fn on_cpu_ns() -> Option<u64> {
    thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
