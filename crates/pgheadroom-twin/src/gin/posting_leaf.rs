//! A leaf of a posting tree: its packed lists, and what insertions and VACUUM make of them.

use pgheadroom_layout::gin::{
    GIN_DATA_PAGE_MAX_DATA_SIZE, SEGMENT_MAX_SIZE, SEGMENT_MIN_SIZE, SEGMENT_TARGET_SIZE,
    SIZE_OF_ITEM_POINTER, packed,
};
use pgheadroom_layout::page::BLCKSZ;

use crate::gin::page::{Content, List, Page, codes};
use crate::page::Tid;

/// Rows that a list of 384 bytes has at least. Source: `MinTuplesPerSegment`.
const MIN_TUPLES_PER_SEGMENT: u32 = (SEGMENT_MAX_SIZE - 2) / 6;
/// Bytes of a record's changes before the first one: their number.
const CHANGES_HEAD_BYTES: u32 = 2;
/// Bytes of a change: which list, and what becomes of it.
const CHANGE_BYTES: u32 = 2;

/// What became of rows that came to a leaf.
#[derive(Debug)]
pub(super) enum Placed {
    /// They were there.
    Nothing,
    /// They are on it; bytes of the changes in a record.
    Here(u32),
    /// It becomes two pages.
    OnTwo(Content, Content),
}

/// What becomes of a list. Source: `GIN_SEGMENT_*`, src/include/access/ginxlog.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Unmodified,
    Delete,
    Insert,
    Replace,
    /// So many rows come to it.
    AddItems(usize),
}

/// A list in work. Source: `leafSegmentInfo`, src/backend/access/gin/gindatapage.c.
#[derive(Debug)]
struct Segment {
    action: Action,
    tids: Vec<Tid>,
    /// Its bytes, where it is packed.
    bytes: Option<u32>,
}

/// A leaf in work. Source: `disassembledLeaf`, src/backend/access/gin/gindatapage.c.
#[derive(Debug)]
struct Disassembled {
    segments: Vec<Segment>,
    /// The last list of the left page, when there are two.
    last_left: Option<usize>,
    left_bytes: u32,
    right_bytes: u32,
}

/// Rows of both, each once.
///
/// Source: `ginMergeItemPointers`, src/backend/access/gin/ginpostinglist.c (REL_18_STABLE).
pub(super) fn merged(one: &[Tid], other: &[Tid]) -> Vec<Tid> {
    let mut all = [one, other].concat();
    all.sort_unstable();
    all.dedup();
    all
}

impl Page {
    /// Puts as many of these rows as belong and fit here on this page, or on two; how many, and
    /// what became of it.
    ///
    /// Source: `dataBeginPlaceToPageLeaf`, src/backend/access/gin/gindatapage.c (REL_18_STABLE).
    pub(super) fn place_on_leaf(&mut self, tids: &[Tid], is_build: bool) -> (usize, Placed) {
        let free = self.hole_bytes();
        let is_last = self.next.is_none();
        let Content::DataLeaf { lists, bound } = &mut self.content else {
            unreachable!("a leaf of a posting tree");
        };
        let bound = *bound;
        let mut most = if is_last {
            tids.len()
        } else {
            tids.partition_point(|tid| *tid <= bound)
        };
        let last_old = lists.last().and_then(|list| list.tids.last()).copied();
        let appends = last_old.is_none_or(|last| tids[0] >= last);
        let room = if appends {
            free + GIN_DATA_PAGE_MAX_DATA_SIZE
        } else {
            let segments = free / SEGMENT_MAX_SIZE + GIN_DATA_PAGE_MAX_DATA_SIZE / SEGMENT_MAX_SIZE;
            segments * MIN_TUPLES_PER_SEGMENT
        };
        most = most.min(room as usize);
        let mut leaf = Disassembled::of(std::mem::take(lists));
        if !leaf.add(&tids[..most]) {
            *lists = leaf.assembled();
            return (most, Placed::Nothing);
        }
        if let Some(remaining) = leaf.repack() {
            most = tids[..most].partition_point(|tid| *tid < remaining);
        }
        let Some(mut last_left) = leaf.last_left else {
            let changes = leaf.change_bytes();
            *lists = leaf.assembled();
            return (most, Placed::Here(changes));
        };
        if !is_build {
            last_left = leaf.balance(last_left, appends);
        }
        let right = leaf.segments.split_off(last_left + 1);
        let mut lists_before = leaf.segments.iter().rev();
        let left_bound = lists_before.find_map(|segment| segment.tids.last());
        let left = Content::DataLeaf {
            bound: *left_bound.expect("a list with rows"),
            lists: leaf.assembled(),
        };
        let right = Content::DataLeaf {
            lists: assembled(right),
            bound,
        };
        (most, Placed::OnTwo(left, right))
    }

    /// Removes dead rows; bytes of the changes in a record, if there are some.
    ///
    /// Source: `ginVacuumPostingTreeLeaf`, src/backend/access/gin/gindatapage.c (REL_18_STABLE).
    pub(super) fn vacuum_leaf(&mut self, is_dead: &dyn Fn(Tid) -> bool) -> Option<u32> {
        let Content::DataLeaf { lists, .. } = &mut self.content else {
            unreachable!("a leaf of a posting tree");
        };
        let mut leaf = Disassembled::of(std::mem::take(lists));
        let mut is_changed = false;
        for segment in &mut leaf.segments {
            let before = segment.tids.len();
            segment.tids.retain(|tid| !is_dead(*tid));
            if segment.tids.len() == before {
                continue;
            }
            is_changed = true;
            if segment.tids.is_empty() {
                segment.action = Action::Delete;
                segment.bytes = None;
            } else {
                segment.action = Action::Replace;
                let most = segment.bytes.expect("a packed list");
                segment.bytes = Some(packed(codes(&segment.tids), most).1);
            }
        }
        let changes = is_changed.then(|| leaf.change_bytes());
        *lists = leaf.assembled();
        changes
    }
}

fn assembled(segments: Vec<Segment>) -> Vec<List> {
    let kept = segments.into_iter();
    let kept = kept.filter(|segment| segment.action != Action::Delete);
    kept.map(|segment| List {
        tids: segment.tids,
        bytes: segment.bytes.expect("a packed list"),
    })
    .collect()
}

impl Disassembled {
    /// Source: `disassembleLeaf`.
    fn of(lists: Vec<List>) -> Self {
        let segments = lists.into_iter().map(|list| Segment {
            action: Action::Unmodified,
            tids: list.tids,
            bytes: Some(list.bytes),
        });
        Self {
            segments: segments.collect(),
            last_left: None,
            left_bytes: 0,
            right_bytes: 0,
        }
    }

    fn assembled(self) -> Vec<List> {
        assembled(self.segments)
    }

    /// Gives rows to the lists; whether some are new.
    ///
    /// Source: `addItemsToLeaf`.
    fn add(&mut self, tids: &[Tid]) -> bool {
        let new = |tids: &[Tid]| Segment {
            action: Action::Insert,
            tids: tids.to_vec(),
            bytes: None,
        };
        if self.segments.is_empty() {
            self.segments.push(new(tids));
            return true;
        }
        let mut left = tids;
        let mut is_changed = false;
        for at in 0..self.segments.len() {
            let next = self.segments.get(at + 1).map(|next| next.tids[0]);
            let count = next.map_or(left.len(), |next| left.partition_point(|tid| *tid < next));
            if count == 0 {
                continue;
            }
            let (these, rest) = left.split_at(count);
            let segment = &mut self.segments[at];
            let last = segment.tids[segment.tids.len() - 1];
            if next.is_none()
                && last < these[0]
                && segment
                    .bytes
                    .is_some_and(|bytes| bytes >= SEGMENT_TARGET_SIZE)
            {
                self.segments.push(new(these));
                return true;
            }
            let all = merged(&segment.tids, these);
            if all.len() != segment.tids.len() {
                let are_new = all.len() == segment.tids.len() + count;
                segment.action = if are_new && segment.action == Action::Unmodified {
                    Action::AddItems(count)
                } else {
                    Action::Replace
                };
                segment.tids = all;
                segment.bytes = None;
                is_changed = true;
            }
            left = rest;
            if left.is_empty() {
                break;
            }
        }
        is_changed
    }

    /// Packs the lists that changed, and says where a second page begins; the first row that two
    /// pages have no room for.
    ///
    /// Source: `leafRepackItems`.
    fn repack(&mut self) -> Option<Tid> {
        let mut used = 0;
        let mut remaining = None;
        let mut at = 0;
        while at < self.segments.len() {
            let is_kept = self.segments[at].action != Action::Delete;
            if is_kept {
                self.pack(at);
                if self.is_merged_with_next(at) {
                    if self.segments[at].action == Action::Insert {
                        self.segments.remove(at);
                        continue;
                    }
                    self.segments[at].action = Action::Delete;
                    self.segments[at].bytes = None;
                }
            }
            let Some(bytes) = self.segments[at].bytes else {
                at += 1;
                continue;
            };
            if used + bytes > GIN_DATA_PAGE_MAX_DATA_SIZE {
                if self.last_left.is_some() {
                    remaining = Some(self.segments[at].tids[0]);
                    self.segments.truncate(at);
                    break;
                }
                self.last_left = Some(at - 1);
                self.left_bytes = used;
                used = 0;
            }
            used += bytes;
            at += 1;
        }
        if self.last_left.is_some() {
            self.right_bytes = used;
        } else {
            self.left_bytes = used;
        }
        remaining
    }

    /// Packs a list if it is not; one that is too long becomes two.
    fn pack(&mut self, at: usize) {
        let segment = &mut self.segments[at];
        if segment.bytes.is_some() {
            return;
        }
        let count = segment.tids.len();
        if count <= SEGMENT_MAX_SIZE as usize {
            let (fits, bytes) = packed(codes(&segment.tids), SEGMENT_MAX_SIZE);
            if fits == count {
                segment.bytes = Some(bytes);
                return;
            }
        }
        let (fits, bytes) = packed(codes(&segment.tids), SEGMENT_TARGET_SIZE);
        segment.bytes = Some(bytes);
        if segment.action != Action::Insert {
            segment.action = Action::Replace;
        }
        let tids = segment.tids.split_off(fits);
        let rest = Segment {
            action: Action::Insert,
            tids,
            bytes: None,
        };
        self.segments.insert(at + 1, rest);
    }

    /// Gives the rows of a very small list to the next one.
    fn is_merged_with_next(&mut self, at: usize) -> bool {
        let bytes = self.segments[at].bytes;
        if bytes.is_none_or(|bytes| bytes >= SEGMENT_MIN_SIZE) || at + 1 == self.segments.len() {
            return false;
        }
        let mut tids = std::mem::take(&mut self.segments[at].tids);
        let next = &mut self.segments[at + 1];
        tids.append(&mut next.tids);
        *next = Segment {
            action: Action::Replace,
            tids,
            bytes: None,
        };
        true
    }

    /// Moves lists from the left page to the right one: to halves, or, where rows are appended, to
    /// three quarters on the left; its last list then.
    ///
    /// Source: `dataBeginPlaceToPageLeaf`.
    fn balance(&mut self, mut last_left: usize, appends: bool) -> usize {
        while last_left > 0 {
            if let Some(bytes) = self.segments[last_left].bytes {
                let (left, right) = (self.left_bytes - bytes, self.right_bytes + bytes);
                if left < right || (appends && left < BLCKSZ * 3 / 4) {
                    break;
                }
                (self.left_bytes, self.right_bytes) = (left, right);
            }
            last_left -= 1;
        }
        last_left
    }

    /// Bytes of the changes in a record.
    ///
    /// Source: `computeLeafRecompressWALData`.
    fn change_bytes(&self) -> u32 {
        let changes = self.segments.iter().map(|segment| {
            let whole = segment.bytes.unwrap_or(0);
            let data = match segment.action {
                Action::Unmodified => return 0,
                Action::Delete => 0,
                Action::Insert | Action::Replace => whole,
                Action::AddItems(count) => {
                    let rows = u32::try_from(count).expect("rows of a list") * SIZE_OF_ITEM_POINTER;
                    if rows > whole { whole } else { 2 + rows }
                }
            };
            CHANGE_BYTES + data
        });
        CHANGES_HEAD_BYTES + changes.sum::<u32>()
    }
}
