//! The log again under other checkpoints: which images would go, and which would come.
//!
//! A page's first change after a redo point has an image: its position (`pd_lsn`) is then not
//! behind the redo point. Where pages were touched does not depend on checkpoints, so one table of
//! positions serves all of them; only the redo points differ.
//!
//! ```text
//! record --> each course: is a checkpoint due? (time passed, or bytes of its own log)
//!        --> each block: image in the log?  would the course have one?
//! ```
//!
//! Source: `XLogRecordAssemble`, src/backend/access/transam/xloginsert.c; `XLogCheckpointNeeded`,
//! xlog.c; `CheckpointerMain`, src/backend/postmaster/checkpointer.c (REL_15_STABLE to
//! REL_18_STABLE).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use pgheadroom_layout::Lsn;

use crate::cause::Cause;
use crate::facts::{Facts, leaves_alone};
use crate::format::PAGE_BYTES;
use crate::record::{Block, Compression, Record, RelFile};
use crate::rmgr::Rmgr;
use crate::sink::Sink;
use crate::sums::Moment;

/// Blocks that are followed; with more, a half of them by their hash. 75 MB; arbitrary.
pub const BLOCKS_MOST: usize = 1_800_000;
/// Source: `SizeOfXLogRecordBlockImageHeader`, `SizeOfXLogRecordBlockCompressHeader`.
const IMAGE_HEADER_BYTES: i64 = 5;
const COMPRESS_HEADER_BYTES: i64 = 2;

/// When a checkpoint begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trigger {
    /// `checkpoint_timeout`, in microseconds.
    pub timeout_us: Moment,
    /// So many bytes after the begin of the segment with the last redo point.
    ///
    /// Source: `CalculateCheckpointSegments`, xlog.c.
    pub distance_bytes: u64,
}

/// What a course changes of one relation's log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Images that go.
    pub images_gone: u64,
    /// Their bytes.
    pub image_bytes_gone: u64,
    /// Bytes of the log that go: less than those, where a block's data come instead.
    pub bytes_gone: i64,
    /// Images that come, whose bytes are estimated.
    pub images_new: u64,
    /// Their bytes.
    pub image_bytes_new: u64,
    /// Bytes of the log that come.
    pub bytes_new: i64,
}

/// The log under one trigger.
#[derive(Debug, Clone)]
pub struct Course {
    /// When its checkpoints begin.
    pub trigger: Trigger,
    redo: Lsn,
    /// Where the segment of its redo point begins, in its own log.
    segment_begin: i64,
    /// How much further its own log is than the one that is read; negative if not as far.
    ahead: i64,
    due: Lsn,
    /// Checkpoints that have begun, the first one not among them.
    pub checkpoints: u64,
    /// Changes by relation, in the order of [`Replay::relations`].
    pub changes: Vec<Change>,
}

impl Course {
    fn new(trigger: Trigger) -> Self {
        Self {
            trigger,
            redo: Lsn(0),
            segment_begin: 0,
            ahead: 0,
            due: Lsn(u64::MAX),
            checkpoints: 0,
            changes: Vec::new(),
        }
    }

    fn own(&self, lsn: Lsn) -> i64 {
        i64::try_from(lsn.0)
            .unwrap_or(i64::MAX)
            .saturating_add(self.ahead)
    }

    fn is_due(&self, lsn: Lsn) -> bool {
        let distance = i64::try_from(self.trigger.distance_bytes).unwrap_or(i64::MAX);
        lsn >= self.due || self.own(lsn) >= self.segment_begin.saturating_add(distance)
    }

    fn begin(&mut self, lsn: Lsn, segment_bytes: i64, facts: &Facts) {
        self.redo = lsn;
        let own = self.own(lsn);
        self.segment_begin = own - own.rem_euclid(segment_bytes);
        let next = facts.clock.time_at(lsn).and_then(|at| {
            facts
                .clock
                .position_at(at.saturating_add(self.trigger.timeout_us))
        });
        self.due = next.map_or(Lsn(u64::MAX), |next| {
            Lsn(next.0.max(lsn.0.saturating_add(1)))
        });
    }

    /// After a switch the course's own log goes on with a segment, too.
    fn switch(&mut self, end: Lsn, segment_bytes: i64) {
        let own = self.own(end);
        let rest = (segment_bytes - own.rem_euclid(segment_bytes)) % segment_bytes;
        let bytes = u64::try_from(segment_bytes).unwrap_or(1);
        let read = i64::try_from(end.0.next_multiple_of(bytes) - end.0).unwrap_or(0);
        self.ahead += rest - read;
    }
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    touched: Lsn,
    image_bytes: u16,
}

/// Keys are mixed already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

/// Distinct for distinct values. Source: splitmix64 (Steele, Lea and Flood, 2014).
const fn mixed(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ value >> 31
}

/// By bits that no place in the table depends on.
const fn is_followed(key: u64, one_in: u64) -> bool {
    key >> 32 & (one_in - 1) == 0
}

/// How well the rule and the estimates fit the log itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fit {
    /// Blocks that have an image, or would by the log's own redo points.
    pub images: u64,
    /// Of them those of which only one is true.
    pub differing: u64,
    /// Images whose size was estimated beforehand, in bytes.
    pub estimated_bytes: u64,
    /// Sum of the estimates' errors.
    pub error_bytes: u64,
}

/// The courses, and what is known of each block.
pub struct Replay<'a> {
    facts: &'a Facts,
    segment_bytes: i64,
    start: Lsn,
    to: Lsn,
    most: usize,
    shift: u32,
    blocks: HashMap<u64, Seen, BuildHasherDefault<AsIs>>,
    /// Relations, in the order in which they occurred.
    pub relations: Vec<RelFile>,
    numbers: HashMap<RelFile, u32>,
    redo_points: Vec<(Lsn, bool)>,
    passed: usize,
    redo: Lsn,
    is_begun: bool,
    /// One a trigger.
    pub courses: Vec<Course>,
    /// How well it fits.
    pub fit: Fit,
}

impl<'a> Replay<'a> {
    /// Begins at a redo point, where all courses have a checkpoint.
    ///
    /// # Arguments
    /// * `start` - the redo point; records before it are not looked at.
    /// * `to` - where the last record ends.
    /// * `most` - blocks that are followed ([`BLOCKS_MOST`]).
    #[must_use]
    pub fn new(
        facts: &'a Facts,
        segment_bytes: u64,
        (start, to): (Lsn, Lsn),
        triggers: &[Trigger],
        most: usize,
    ) -> Self {
        let mut redo_points = facts.redo_points.clone();
        redo_points.sort_unstable();
        redo_points.dedup_by_key(|(redo, _)| *redo);
        Self {
            facts,
            segment_bytes: i64::try_from(segment_bytes).unwrap_or(i64::MAX),
            start,
            to,
            most: most.max(1),
            shift: 0,
            blocks: HashMap::default(),
            relations: Vec::new(),
            numbers: HashMap::new(),
            redo_points,
            passed: 0,
            redo: Lsn(0),
            is_begun: false,
            courses: triggers.iter().map(|one| Course::new(*one)).collect(),
            fit: Fit::default(),
        }
    }

    /// One of so many blocks is followed.
    #[must_use]
    pub const fn one_in(&self) -> u64 {
        1 << self.shift
    }

    fn begin_cycles(&mut self, lsn: Lsn) {
        let mut shut_down = !self.is_begun;
        while let Some((redo, is_shutdown)) = self.redo_points.get(self.passed) {
            if *redo > lsn {
                break;
            }
            self.redo = *redo;
            shut_down |= *is_shutdown && *redo > self.start;
            self.passed += 1;
        }
        for course in &mut self.courses {
            if shut_down || course.is_due(lsn) {
                course.begin(lsn, self.segment_bytes, self.facts);
                course.checkpoints += u64::from(self.is_begun);
            }
        }
        self.is_begun = true;
    }

    fn relation_number(&mut self, relation: RelFile) -> usize {
        let next = u32::try_from(self.relations.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(relation).or_insert(next);
        if number == next {
            self.relations.push(relation);
            for course in &mut self.courses {
                course.changes.push(Change::default());
            }
        }
        number as usize
    }

    fn block(&mut self, record: &Record<'_>, at: usize) {
        let block = &record.blocks[at];
        let number = self.relation_number(block.relation);
        let key = mixed(
            (number as u64) << 36 | u64::from(block.fork & 0xF) << 32 | u64::from(block.blkno),
        );
        if !is_followed(key, self.one_in()) {
            return;
        }
        let cause = block.image.map(|_| Cause::of_image(record, at));
        let has_image = cause.is_some_and(|cause| cause != Cause::FpiForced);
        if leaves_alone(self.facts, record, block) && !has_image {
            return;
        }
        let before = self.blocks.get(&key).copied();
        let touched = before.map_or(Lsn(0), |seen| seen.touched);
        let is_forced = cause == Some(Cause::FpiForced);
        if !block.is_new && !is_forced {
            let estimate = before
                .map(|seen| u64::from(seen.image_bytes))
                .filter(|bytes| *bytes > 0)
                .unwrap_or_else(|| self.facts.image_bytes(block.relation));
            let wants = touched < self.redo;
            self.fit.images += u64::from(wants || has_image);
            self.fit.differing += u64::from(wants != has_image);
            if has_image && before.is_some() {
                let bytes = u64::from(block.image_bytes());
                self.fit.estimated_bytes += bytes;
                self.fit.error_bytes += bytes.abs_diff(estimate);
            }
            self.decide(record, block, number, (touched, has_image, estimate));
        }
        let image_bytes = match block.image {
            Some(image) => image.bytes,
            None => before.map_or(0, |seen| seen.image_bytes),
        };
        let touched = record.lsn;
        self.blocks.insert(
            key,
            Seen {
                touched,
                image_bytes,
            },
        );
        if self.blocks.len() > self.most {
            self.shift += 1;
            let one_in = self.one_in();
            self.blocks.retain(|key, _| is_followed(*key, one_in));
        }
    }

    /// For each course: does an image go, or come?
    fn decide(
        &mut self,
        record: &Record<'_>,
        block: &Block,
        number: usize,
        (touched, has_image, estimate): (Lsn, bool, u64),
    ) {
        let weight = self.one_in();
        let signed = i64::try_from(weight).unwrap_or(i64::MAX);
        for course in &mut self.courses {
            let wants = touched < course.redo;
            if wants == has_image {
                continue;
            }
            let change = &mut course.changes[number];
            let moved = if has_image {
                let bytes = bytes_of_image(self.facts, record, block);
                change.images_gone += weight;
                change.image_bytes_gone += weight * u64::from(block.image_bytes());
                change.bytes_gone += signed * bytes;
                -bytes
            } else {
                let mut bytes = IMAGE_HEADER_BYTES + i64::try_from(estimate).unwrap_or(0);
                if self.facts.compressed {
                    bytes += COMPRESS_HEADER_BYTES;
                }
                if !self.facts.is_kept(record, block) {
                    bytes -= i64::from(block.data_bytes);
                }
                change.images_new += weight;
                change.image_bytes_new += weight * estimate;
                change.bytes_new += signed * bytes;
                bytes
            };
            course.ahead += signed * with_page_headers(moved);
        }
    }
}

/// Bytes by which a record is shorter without the image of this block.
fn bytes_of_image(facts: &Facts, record: &Record<'_>, block: &Block) -> i64 {
    if Rmgr::of(record.header.rmgr) == Rmgr::Xlog {
        return i64::from(record.header.total_bytes); // for hint bits: there is nothing else in it
    }
    let has_length = block
        .image
        .is_some_and(|image| image.compression != Compression::None && image.hole_bytes > 0);
    let instead = if block.data_bytes > 0 {
        0
    } else {
        i64::try_from(facts.data_bytes(record, block)).unwrap_or(0)
    };
    IMAGE_HEADER_BYTES
        + if has_length { COMPRESS_HEADER_BYTES } else { 0 }
        + i64::from(block.image_bytes())
        - instead
}

fn with_page_headers(bytes: i64) -> i64 {
    let page = PAGE_BYTES as i64;
    bytes * page / (page - crate::format::SHORT_HEADER_BYTES as i64)
}

impl Sink for Replay<'_> {
    fn record(&mut self, record: &Record<'_>, end: Lsn) -> bool {
        if end > self.to {
            return false;
        }
        if record.lsn < self.start {
            return true;
        }
        self.begin_cycles(record.lsn);
        for at in 0..record.blocks.len() {
            self.block(record, at);
        }
        let is_switch = Rmgr::of(record.header.rmgr) == Rmgr::Xlog && record.info() == 0x40;
        if is_switch {
            for course in &mut self.courses {
                course.switch(end, self.segment_bytes);
            }
        }
        true
    }
}
