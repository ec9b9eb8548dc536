//! A table's extension lock, by which sessions add pages one after another.
//!
//! ```text
//! now ->      |--H holds--|                       H: the lock was free, and it adds its page
//!       X asks|~~~~~~~~~~~|..|--X holds--|        X: H has asked before, so it adds 1 + 1 (16)
//!          Y asks|~~~~~~~~~~~~~~~~~~~~~~~|..|--|  Y: H and X have, so 1 + 2
//!                          .. woken, without a processor: the lock is its own already
//! ```
//!
//! A statement is carried out at one moment, so a request is settled when it is made: when it will
//! have the lock, when it lets it go, and by how many pages the table grows. Others find the pages
//! when their time has come. To 15 whoever has waited looks into the map again, and only who finds
//! nothing there adds pages, 20 for each request. Left out: locks of indexes, whose waits add no
//! pages.

use std::collections::VecDeque;
use std::ops::Range;

use pgheadroom_layout::page::{BLCKSZ, MAX_HEAP_TUPLE_SIZE, SIZE_OF_PAGE_HEADER};
use pgheadroom_layout::version::BulkExtension;
use pgheadroom_layout::{BlockNumber, LayoutError};

use crate::fsm::Modified;
use crate::heap::Heap;
use crate::pgbench::Prng;

/// How long a backend has the lock that adds one page, in times of a statement: 9 to 12 us of 30
/// to 50 us on 18.4 with 8 and 16 clients on two cores, by `extend_time` of `pg_stat_io` and
/// `active_time` of `pg_stat_database`.
const HOLDS: f64 = 0.25;
/// The same for each further page: 7 of them take twice as long as one.
const HOLDS_PAGE: f64 = 0.15;
/// From 16 on, further pages that take longer: more are reserved at once (`posix_fallocate`).
///
/// Source: `mdzeroextend`, src/backend/storage/smgr/md.c (`REL_16_STABLE`).
const WRITTEN_PAGES: u32 = 7;
/// Of one that finds what others have done: to 15 a page, and the map that it wanted to make.
const LOOKS: f64 = 0.05;
/// To make the map, a file of three pages: a row that did took 320 to 1,100 us longer than one for
/// which a page was added, in the median of 40 tables of 18.4, 16.14 and 15.18.
const MAKES_MAP: f64 = 12.0;
/// From 16 on, pages that one adds at most for others.
const MAX_KNOWN_PAGES: usize = 63;
/// To 15, pages that one who has waited adds for each request, and at most.
///
/// Source: `RelationAddExtraBlocks`, src/backend/access/heap/hio.c (`REL_15_STABLE`).
pub(super) const EXTRA_PAGES: u32 = 20;
const MAX_EXTRA_PAGES: u32 = 512;

/// How backends come by a processor, and lose it.
#[derive(Debug, Clone, Copy)]
pub struct Processors {
    /// Until a backend that waits for one has it, in the mean, in times of a statement.
    pub runs_again: f64,
    /// How often a backend loses its own, for each time of a statement that it works.
    pub loses: f64,
}

/// When the active session's statement takes place, and what its waits for extension locks are.
#[derive(Debug, Clone)]
pub struct Extensions {
    prng: Prng,
    /// When the turn began, and where its statement is.
    moment: f64,
    now: f64,
    /// How much longer the statement takes.
    waited: f64,
    /// Whether the statement has waited for others to make the map.
    has_waited_for_map: bool,
    processors: Processors,
    /// How long work takes, in the times above: a COMMIT that waits for a disk makes none longer.
    of_work: f64,
    session: usize,
    /// By session: whether its first statement is over. That takes some 20 times as long as
    /// another one, since it fills the backend's caches, and the lock next to nothing of it: those
    /// of clients that begin together do not meet there.
    has_begun: Vec<bool>,
}

impl Extensions {
    /// Sessions that do nothing yet; `of_work` is how long work takes that is no COMMIT, in times
    /// of a statement whose COMMIT waits for no disk.
    #[must_use]
    pub fn new(seed: u64, processors: Processors, of_work: f64) -> Self {
        Self {
            prng: Prng::from_seed(seed),
            moment: 0.0,
            now: 0.0,
            waited: 0.0,
            has_waited_for_map: false,
            processors,
            of_work,
            session: 0,
            has_begun: Vec::new(),
        }
    }

    /// The active session goes on now.
    #[inline]
    pub(crate) const fn begin_turn(&mut self, now: f64) {
        self.moment = now;
        self.now = now;
        self.has_waited_for_map = false;
    }

    /// It is this session that is active.
    #[inline]
    pub(crate) const fn of(&mut self, session: usize) -> &mut Self {
        self.session = session;
        self
    }

    /// The session's statement has been carried out, or a part of it: how much longer it takes.
    #[inline]
    pub(crate) fn end_turn(&mut self) -> f64 {
        if !self.has_begun() {
            self.begin();
        }
        std::mem::replace(&mut self.waited, 0.0)
    }

    #[cold]
    fn begin(&mut self) {
        if self.session >= self.has_begun.len() {
            self.has_begun.resize(self.session + 1, false);
        }
        self.has_begun[self.session] = true;
    }

    /// Whether the session's requests meet others'.
    #[inline]
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.get(self.session).is_some_and(|&begun| begun)
    }

    /// When the statement has the lock, which is free from then on if others asked before, and when
    /// it lets it go after so much work.
    fn hold(&mut self, behind: Option<f64>, time: f64) -> (f64, f64) {
        let granted = behind.map_or(self.now, |free| free + self.sleep());
        let (mut release, mut left) = (granted, time * self.of_work);
        loop {
            let runs = -self.uniform().ln() * self.of_work / self.processors.loses;
            if runs >= left {
                break;
            }
            release += runs + self.sleep();
            left -= runs;
        }
        release += left;
        self.until(release);
        (granted, release)
    }

    /// The statement is there.
    fn until(&mut self, time: f64) {
        self.waited += (time - self.now).max(0.0);
        self.now = self.now.max(time);
    }

    /// Until when others have come so far that the statement sees it. Who has waited for the map
    /// stands behind all that did: none of them has a page before.
    const fn seen_at(&self) -> f64 {
        if self.has_waited_for_map {
            self.moment
        } else {
            self.now
        }
    }

    /// How long a backend waits for a processor.
    fn sleep(&mut self) -> f64 {
        -self.processors.runs_again * self.uniform().ln()
    }

    #[allow(clippy::cast_precision_loss)] // a part of a million
    fn uniform(&mut self) -> f64 {
        self.prng.random(1, 1_000_000) as f64 / 1_000_000.0
    }
}

/// A session that has asked for the lock, and has not let it go as far as is known.
#[derive(Debug, Clone)]
struct Request {
    session: usize,
    /// Whether it asks anew, to make the map, which has the same lock.
    is_of_map: bool,
    granted: f64,
    release: f64,
    /// The table's pages before.
    pages_before: u32,
    /// Pages that the free space map is told of, when that is, and how many of them are given
    /// away already.
    known: Vec<u32>,
    told_at: Option<f64>,
    taken: usize,
    /// Until when those that ask are counted who add a page more to these: when the session sees
    /// how many there are, which has waited for the map before.
    counts_until: f64,
}

impl Request {
    /// Which pages the map is told of now, and how many of them are given away.
    fn told(&mut self) -> (Vec<u32>, usize) {
        self.told_at = None;
        (std::mem::take(&mut self.known), self.taken)
    }
}

/// The extension lock of a table, or of its TOAST table.
#[derive(Debug, Clone, Default)]
pub(super) struct ExtensionLock {
    /// In the order in which they get it.
    requests: VecDeque<Request>,
    /// When the map is there that somebody makes.
    map_there_at: f64,
}

impl ExtensionLock {
    /// Requests that are not over for this statement.
    fn asked(&self, now: f64) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(move |one| one.release > now)
    }

    /// How many others a session sees that asks for the lock: those that have it, and wait for it.
    ///
    /// Source: `LockWaiterCount`, src/backend/storage/lmgr/lock.c (`REL_15_STABLE`,
    /// `REL_18_STABLE`): `nRequested`, which counts who holds it too.
    #[allow(clippy::cast_possible_truncation)] // sessions
    pub fn requests_seen(&self, extensions: Option<&mut Extensions>) -> u32 {
        let extensions = extensions.filter(|extensions| extensions.has_begun());
        let Some(extensions) = extensions else {
            return 0;
        };
        let asked = || {
            let sessions = self.asked(extensions.seen_at()).map(|one| one.session);
            sessions.filter(|&session| session != extensions.session)
        };
        let is_first = |&(number, session): &(usize, usize)| {
            asked().position(|one| one == session) == Some(number)
        };
        asked().enumerate().filter(is_first).count() as u32
    }

    /// The table's pages that are there for this statement.
    pub fn pages_there(&self, all: u32, extensions: Option<&mut Extensions>) -> u32 {
        let first = extensions.and_then(|extensions| self.asked(extensions.now).next());
        first.map_or(all, |one| one.pages_before)
    }

    /// Nobody asks any more, since the table is another one.
    pub fn forget(&mut self) {
        self.requests.clear();
    }

    /// A session asks that adds one page and those of `known`;
    /// how many pages more are added by others who see that.
    pub fn ask(
        &mut self,
        known: Range<u32>,
        pages_before: u32,
        to_15: bool,
        of: &mut Extensions,
    ) -> u32 {
        let more = if of.has_waited_for_map {
            0 // it has been seen before
        } else {
            self.count_in(known.end, of)
        };
        let further = known.end - known.start;
        let written = if to_15 {
            further
        } else {
            further.min(WRITTEN_PAGES)
        };
        let sees_at = of.now;
        let behind = self.requests.back().map(|last| last.release);
        let behind = behind.filter(|&release| release > of.now);
        let (granted, release) = of.hold(behind, HOLDS + HOLDS_PAGE * f64::from(written));
        let told_at = if to_15 { granted } else { release };
        self.requests.push_back(Request {
            session: of.session,
            is_of_map: false,
            granted,
            release,
            pages_before,
            told_at: (further > 0).then_some(told_at),
            known: known.collect(),
            taken: 0,
            counts_until: if to_15 { 0.0 } else { sees_at },
        });
        more
    }

    /// Somebody asks now: how many pages are added for that by those who see it, the first of which
    /// has this number.
    #[allow(clippy::cast_possible_truncation)] // sessions
    pub fn count_in(&mut self, next_page: u32, of: &Extensions) -> u32 {
        let mut more = 0;
        for one in &mut self.requests {
            let sees = one.session != of.session && one.counts_until > of.moment;
            if sees && one.known.len() < MAX_KNOWN_PAGES {
                one.known.push(next_page + more);
                one.told_at = one.told_at.or(Some(one.release));
                more += 1;
            }
        }
        more
    }

    /// Whether there may be no map for this statement although there is one.
    #[inline]
    pub fn may_lack_map(&self) -> bool {
        self.map_there_at > 0.0
    }

    /// The session wants to note in the map that a page is full. It asks for the lock to make the
    /// map if there is none yet, and finds it made if others have asked before; whether it did.
    pub fn wait_for_map(&mut self, pages_before: u32, is_made: bool, of: &mut Extensions) -> bool {
        if is_made && self.map_there_at <= of.now {
            // For this statement, which may have waited for it before, or for all.
            if self.map_there_at <= of.moment {
                self.map_there_at = 0.0;
            }
            return false;
        }
        let behind = self.requests.back().map(|last| last.release);
        let behind = behind.filter(|&release| release > of.now);
        of.has_waited_for_map = behind.is_some();
        let (granted, release) = of.hold(behind, if is_made { LOOKS } else { MAKES_MAP });
        if !is_made {
            self.map_there_at = release;
        }
        self.requests.push_back(Request {
            session: of.session,
            is_of_map: true,
            granted,
            release,
            pages_before,
            known: Vec::new(),
            told_at: None,
            taken: 0,
            counts_until: 0.0,
        });
        true
    }

    /// From 16 on: there is no map yet, so a session that wants to tell it of pages asks for the
    /// lock again, behind all who have asked meanwhile.
    ///
    /// Source: `fsm_extend`, src/backend/storage/freespace/freespace.c, and
    /// `ExtendBufferedRelShared`, src/backend/storage/buffer/bufmgr.c (`REL_18_STABLE`): "We use
    /// the same extension lock for all forks".
    fn ask_for_map(&mut self, number: usize, now: f64, of: &mut Extensions) {
        let session = self.requests[number].session;
        let (known, taken) = self.requests[number].told();
        let last = self.requests.back().expect("that request");
        let pages_before = last
            .pages_before
            .max(known.last().map_or(0, |&last| last + 1));
        let free = last.release;
        let granted = if free > now { free + of.sleep() } else { now };
        let release = granted + HOLDS * of.of_work;
        self.requests.push_back(Request {
            session,
            is_of_map: true,
            granted,
            release,
            pages_before,
            known,
            told_at: Some(release),
            taken,
            counts_until: 0.0,
        });
    }

    /// To 15: a session asks while another one waits that will add pages, for it too; which page it
    /// finds then, and how many more there are at the end of these pages.
    pub fn join(&mut self, pages: u32, of: &mut Extensions) -> Option<(BlockNumber, u32)> {
        let moment = of.moment;
        let adds = |one: &Request| one.told_at.is_some() && one.granted > moment;
        let number = self.requests.iter().position(adds)?;
        let adder = &mut self.requests[number];
        let found = BlockNumber(*adder.known.get(adder.taken)?);
        adder.taken += 1;
        let count = u32::try_from(adder.known.len()).unwrap_or(MAX_EXTRA_PAGES);
        let more = EXTRA_PAGES.min(MAX_EXTRA_PAGES.saturating_sub(count));
        adder.known.extend(pages..pages + more);
        for one in self.requests.range_mut(number..) {
            one.release += HOLDS_PAGE * f64::from(more) * of.of_work;
        }
        let behind = self.requests.back().map(|last| last.release);
        let (granted, release) = of.hold(behind, LOOKS);
        let pages = pages + more;
        self.requests.push_back(Request {
            session: of.session,
            is_of_map: false,
            granted,
            release,
            pages_before: pages,
            known: Vec::new(),
            told_at: None,
            taken: 0,
            counts_until: 0.0,
        });
        Some((found, more))
    }
}

impl Heap {
    /// What sessions have added by now is in the map.
    #[inline]
    pub(crate) fn tell_map(&mut self, log: &mut impl Placing) {
        if !self.extension_lock.requests.is_empty() {
            self.tell_pages(log);
        }
    }

    #[cold]
    fn tell_pages(&mut self, log: &mut impl Placing) {
        let times = log.extensions().map(|one| (one.seen_at(), one.moment));
        let (now, moment) = times.unwrap_or((f64::INFINITY, f64::INFINITY));
        let to_15 = self.behaviour.bulk_extension == BulkExtension::PerWaiter;
        for number in 0..self.extension_lock.requests.len() {
            let request = &self.extension_lock.requests[number];
            let Some(told_at) = request.told_at.filter(|&at| at <= now) else {
                continue;
            };
            let makes_map = !to_15 && !request.is_of_map && self.fsm.page_count() == 0;
            if let Some(extensions) = log.extensions().filter(|_| makes_map) {
                self.extension_lock.ask_for_map(number, told_at, extensions);
                continue;
            }
            let (known, taken) = self.extension_lock.requests[number].told();
            self.make_known(&known, log);
            for _ in 0..taken {
                self.fsm.get(MAX_HEAP_TUPLE_SIZE, log); // the next one finds another page
            }
        }
        let requests = &mut self.extension_lock.requests;
        while requests.front().is_some_and(|one| one.release <= moment) {
            requests.pop_front();
        }
    }

    /// A session is about to note in the map that a page is full.
    #[inline]
    pub(super) fn need_map(&mut self, log: &mut impl Placing) -> Result<(), LayoutError> {
        if self.fsm.page_count() == 0 || self.extension_lock.may_lack_map() {
            self.wait_for_map(log)?;
        }
        Ok(())
    }

    #[cold]
    fn wait_for_map(&mut self, log: &mut impl Placing) -> Result<(), LayoutError> {
        let (pages, is_made) = (self.page_count(), self.fsm.page_count() > 0);
        let Some(extensions) = log.extensions().filter(|one| one.has_begun()) else {
            return Ok(());
        };
        let lock = &mut self.extension_lock;
        if lock.wait_for_map(pages, is_made, extensions) {
            let more = lock.count_in(pages, extensions);
            self.add_pages(more)?;
        }
        Ok(())
    }

    /// New pages are told to the free space map.
    pub(super) fn make_known(&mut self, pages: &[u32], log: &mut impl Modified) {
        let (Some(&first), Some(&last)) = (pages.first(), pages.last()) else {
            return;
        };
        let last_page_searchable = match self.behaviour.bulk_extension {
            BulkExtension::PerWaiter => true,
            BulkExtension::ByRequest {
                last_page_searchable,
            } => last_page_searchable,
        };
        for &block in pages {
            let free_bytes = BLCKSZ - SIZE_OF_PAGE_HEADER;
            self.fsm.record(BlockNumber(block), free_bytes, log);
        }
        let end = last + u32::from(last_page_searchable);
        self.fsm
            .vacuum(BlockNumber(first), Some(BlockNumber(end)), log);
    }
}

/// Who places a tuple: it is told of changed pages of the free space map, and knows when it is.
pub trait Placing: Modified {
    /// When that is, if others may want the extension lock meanwhile.
    fn extensions(&mut self) -> Option<&mut Extensions> {
        None
    }
}

impl<F: FnMut(BlockNumber)> Placing for F {}

#[cfg(test)]
mod tests;
