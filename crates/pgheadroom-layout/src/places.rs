//! Where everything of a relation lies, as text that two players can compare.
//!
//! ```text
//! bytes of a server's file -> decode::* --+
//!                                         +-> places::*Page -> one text a page -> digest
//! the twin's own pages -------------------+
//! ```
//!
//! What is in the text has to be equal; what is left out may differ without meaning: hint bits,
//! checksums, LSNs, keys of index entries, where between line pointers and end an item's bytes
//! lie, where a free space map's next search begins (it changes without a write). Transactions
//! are numbered in the order of the relation's own, since other sessions use numbers as well.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::decode::btree::{BtreePage as DecodedBtreePage, HeapTid, ItemKind, TreePage};
use crate::decode::gin::{GinPage, Linked, Posting};
use crate::decode::hash::HashPage;
use crate::decode::heap::{HeapItem as DecodedItem, HeapPage as DecodedHeapPage};
use crate::decode::map::{FsmPage, VisibilityBits};
use crate::decode::{PD_ALL_VISIBLE, PD_HAS_FREE_LINES, PD_PAGE_FULL};
use crate::{BlockNumber, OffsetNumber};

/// A heap page, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeapPage {
    /// Never initialised.
    New,
    /// With a header.
    Used(UsedPage),
}

/// A heap page with a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedPage {
    /// End of the line pointers.
    pub pd_lower: u32,
    /// Start of the tuples.
    pub pd_upper: u32,
    /// `PD_HAS_FREE_LINES`.
    pub has_free_lines: bool,
    /// `PD_PAGE_FULL`.
    pub is_full: bool,
    /// `PD_ALL_VISIBLE`.
    pub is_all_visible: bool,
    /// `pd_prune_xid`; 0 is none.
    pub prune_xid: u32,
    /// Its line pointers.
    pub items: Vec<HeapItem>,
}

/// A line pointer of a heap page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeapItem {
    /// Free.
    Unused,
    /// Leads to another one.
    Redirect(OffsetNumber),
    /// Without tuple.
    Dead,
    /// With a tuple.
    Normal(HeapTuple),
}

/// A tuple, as far as it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapTuple {
    /// Its length.
    pub lp_len: u16,
    /// Its inserter.
    pub xmin: u32,
    /// Whether it is frozen.
    pub is_frozen: bool,
    /// Who replaced, removed or locked it, rolled back or not; 0 is nobody.
    pub xmax: u32,
    /// Whether `xmax` is a multixact, whose number is then not compared.
    pub is_multi: bool,
    /// Whether `xmax` only locked it.
    pub is_locked_only: bool,
    /// Whether its successor is a heap-only tuple.
    pub is_hot_updated: bool,
    /// Whether no index entry points here.
    pub is_heap_only: bool,
    /// Where its successor is.
    pub next: HeapTid,
}

/// A page of a B-tree, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BtreePage {
    /// A page of zeros.
    New,
    /// The metapage: root, its level, fast root, its level, deleted pages not freed.
    Meta([u32; 5]),
    /// No longer linked.
    Deleted {
        /// Its level.
        level: u32,
    },
    /// Part of the tree.
    Tree(BtreeTreePage),
}

/// A page of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BtreeTreePage {
    /// Level above the leaves.
    pub level: u32,
    /// Whether it is the root.
    pub is_root: bool,
    /// Whether it has no downlink any more.
    pub is_half_dead: bool,
    /// Left sibling; 0 is none.
    pub prev: u32,
    /// Right sibling; 0 is none.
    pub next: u32,
    /// Bytes between line pointers and items.
    pub free_bytes: u32,
    /// Its items.
    pub items: Vec<BtreeItem>,
}

/// An item of a B-tree page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BtreeItem {
    /// Its length.
    pub lp_len: u32,
    /// Whether it is marked dead.
    pub is_dead: bool,
    /// What it holds.
    pub entry: BtreeEntry,
}

/// What a B-tree item holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BtreeEntry {
    /// The upper bound of the page: columns that it kept, and its TID.
    HighKey(u16, Option<HeapTid>),
    /// A page below, with the same.
    Downlink(BlockNumber, u16, Option<HeapTid>),
    /// TIDs of rows: one, or a posting list.
    Rows(Vec<HeapTid>),
}

/// A digest of a text: FNV-1a, 64 bits. Against mistakes, not against malice.
///
/// Source: Fowler, Noll, Vo, FNV hash (draft-eastlake-fnv).
#[must_use]
pub fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The texts of a table's pages.
#[must_use]
pub fn heap_texts(pages: &[HeapPage]) -> Vec<String> {
    let mut xids = BTreeSet::new();
    for page in pages {
        let HeapPage::Used(page) = page else { continue };
        xids.insert(page.prune_xid);
        for item in &page.items {
            if let HeapItem::Normal(tuple) = item {
                xids.insert(tuple.xmin);
                if !tuple.is_multi {
                    xids.insert(tuple.xmax);
                }
            }
        }
    }
    xids.remove(&0);
    let ranks: Vec<u32> = xids.into_iter().collect();
    let texts = pages.iter().enumerate();
    texts
        .map(|(number, page)| heap_text(number, page, &ranks))
        .collect()
}

fn heap_text(number: usize, page: &HeapPage, ranks: &[u32]) -> String {
    let HeapPage::Used(page) = page else {
        return format!("page {number} new\n");
    };
    let xid = |xid: u32| match ranks.binary_search(&xid) {
        Ok(rank) => rank.to_string(),
        Err(_) => "-".to_string(),
    };
    let flags = flag_names(&[
        (page.has_free_lines, "free-lines"),
        (page.is_full, "full"),
        (page.is_all_visible, "all-visible"),
    ]);
    let mut text = format!(
        "page {number} lower={} upper={} flags={flags} prune={}\n",
        page.pd_lower,
        page.pd_upper,
        xid(page.prune_xid)
    );
    for (position, item) in page.items.iter().enumerate() {
        let offset = position + 1;
        let line = match item {
            HeapItem::Unused => "unused".to_string(),
            HeapItem::Dead => "dead".to_string(),
            HeapItem::Redirect(to) => format!("redirect {}", to.0),
            HeapItem::Normal(tuple) => {
                let xmax = if tuple.is_multi {
                    "multi".to_string()
                } else {
                    xid(tuple.xmax)
                };
                let is_self = tuple.next.block.0 as usize == number
                    && usize::from(tuple.next.offset.0) == offset;
                let next = if is_self {
                    "self".to_string()
                } else {
                    tid(tuple.next)
                };
                let flags = flag_names(&[
                    (tuple.is_frozen, "frozen"),
                    (tuple.is_locked_only, "lock-only"),
                    (tuple.is_hot_updated, "hot-updated"),
                    (tuple.is_heap_only, "heap-only"),
                ]);
                let (len, xmin) = (tuple.lp_len, xid(tuple.xmin));
                format!("normal len={len} xmin={xmin} xmax={xmax} ctid={next} {flags}")
            }
        };
        let _ = writeln!(text, " {offset} {line}");
    }
    text
}

/// The text of a B-tree's page.
#[must_use]
pub fn btree_text(number: u32, page: &BtreePage) -> String {
    let page = match page {
        BtreePage::New => return format!("page {number} new\n"),
        BtreePage::Deleted { level } => return format!("page {number} deleted level={level}\n"),
        BtreePage::Meta([root, level, fast_root, fast_level, delpages]) => {
            return format!(
                "page {number} meta root={root} level={level} fastroot={fast_root} \
                 fastlevel={fast_level} delpages={delpages}\n"
            );
        }
        BtreePage::Tree(page) => page,
    };
    let flags = flag_names(&[(page.is_root, "root"), (page.is_half_dead, "half-dead")]);
    let mut text = format!(
        "page {number} level={} flags={flags} prev={} next={} free={}\n",
        page.level, page.prev, page.next, page.free_bytes
    );
    for (position, item) in page.items.iter().enumerate() {
        let kept = |natts: u16, kept: Option<HeapTid>| {
            format!("natts={natts} tid={}", kept.map_or("-".to_string(), tid))
        };
        let entry = match &item.entry {
            BtreeEntry::HighKey(natts, tid) => format!("high {}", kept(*natts, *tid)),
            BtreeEntry::Downlink(child, natts, tid) => {
                format!("down {} {}", child.0, kept(*natts, *tid))
            }
            BtreeEntry::Rows(tids) => tids.iter().copied().map(tid).collect(),
        };
        let dead = if item.is_dead { " dead" } else { "" };
        let _ = writeln!(text, " {} len={} {entry}{dead}", position + 1, item.lp_len);
    }
    text
}

/// The text of a free space map's page: its slots that are not 0.
#[must_use]
pub fn fsm_text(number: u32, slots: &[u8]) -> String {
    let mut text = format!("page {number}");
    for (slot, value) in slots.iter().enumerate() {
        if *value != 0 {
            let _ = write!(text, " {slot}:{value}");
        }
    }
    text.push('\n');
    text
}

/// The text of a hash index's page.
#[must_use]
pub fn hash_text(number: u32, page: &HashPage) -> String {
    let page = match page {
        HashPage::Unused => return format!("page {number} unused\n"),
        HashPage::Meta(meta) => return format!("page {number} {meta:?}\n"),
        HashPage::Bitmap(free) => return format!("page {number} bitmap free={free:?}\n"),
        HashPage::Bucket(page) => page,
    };
    let block = |block: Option<u32>| block.map_or("-".to_string(), |block| block.to_string());
    let mut text = format!(
        "page {number} bucket={} prev={} next={}\n",
        page.bucket,
        block(page.previous),
        block(page.next)
    );
    for (code, row) in &page.entries {
        let _ = writeln!(text, " {code:08x}{}", tid(*row));
    }
    text
}

/// The text of a GIN index's page.
#[must_use]
pub fn gin_text(number: u32, page: &GinPage) -> String {
    let rows = |tids: &[HeapTid]| tids.iter().copied().map(tid).collect::<String>();
    let (kind, next, items): (String, Option<u32>, Vec<String>) = match page {
        GinPage::New => return format!("page {number} new\n"),
        GinPage::Deleted => return format!("page {number} deleted\n"),
        GinPage::Meta(meta) => return format!("page {number} {meta:?}\n"),
        GinPage::EntryLeaf(Linked { next, items }) => {
            let of = |posting: &Posting| match posting {
                Posting::List(tids) => rows(tids),
                Posting::Tree(root) => format!("tree {root}"),
            };
            let items = items.iter();
            let items = items.map(|item| format!("len={} {}", item.bytes, of(&item.posting)));
            ("entries".to_owned(), *next, items.collect())
        }
        GinPage::EntryInner(Linked { next, items }) => {
            let items = items.iter();
            let items = items.map(|(bytes, child)| format!("len={bytes} down {child}"));
            ("inner".to_owned(), *next, items.collect())
        }
        GinPage::DataLeaf(Linked { next, items }, bound) => {
            let items = items.iter();
            let items = items.map(|list| format!("len={} {}", list.bytes, rows(&list.tids)));
            (
                format!("posting bound={}", tid(*bound)),
                *next,
                items.collect(),
            )
        }
        GinPage::DataInner(Linked { next, items }, bound) => {
            let items = items.iter();
            let items = items.map(|(child, key)| format!("down {child} {}", tid(*key)));
            let kind = format!("posting inner bound={}", tid(*bound));
            (kind, *next, items.collect())
        }
        GinPage::List(Linked { next, items }, ends) => {
            let items = items.iter();
            let items = items.map(|(bytes, row)| format!("len={bytes} {}", tid(*row)));
            (format!("pending rows={ends}"), *next, items.collect())
        }
    };
    let next = next.map_or("-".to_owned(), |block| block.to_string());
    let mut text = format!("page {number} {kind} next={next}\n");
    for item in items {
        let _ = writeln!(text, " {item}");
    }
    text
}

/// The text of a visibility map's page, by the bits of its heap pages: runs of equal bits.
#[must_use]
pub fn vm_text(number: u32, bits: &[VisibilityBits]) -> String {
    let name = |bits: VisibilityBits| match (bits.all_visible, bits.all_frozen) {
        (false, false) => "none",
        (true, false) => "visible",
        (true, true) => "frozen",
        (false, true) => "frozen-only",
    };
    let mut text = format!("page {number}");
    let mut start = 0;
    for run in bits.chunk_by(|one, other| one == other) {
        if run[0] != VisibilityBits::default() {
            let _ = write!(text, " {start}-{}:{}", start + run.len() - 1, name(run[0]));
        }
        start += run.len();
    }
    text.push('\n');
    text
}

fn tid(tid: HeapTid) -> String {
    format!("({},{})", tid.block.0, tid.offset.0)
}

fn flag_names(flags: &[(bool, &str)]) -> String {
    let set = flags.iter().filter(|(is_set, _)| *is_set);
    let names: Vec<&str> = set.map(|(_, name)| *name).collect();
    if names.is_empty() {
        "-".to_string()
    } else {
        names.join(",")
    }
}

impl From<&DecodedHeapPage> for HeapPage {
    fn from(page: &DecodedHeapPage) -> Self {
        let Some(header) = page.header else {
            return Self::New;
        };
        let items = page.items.iter().map(|item| match item {
            DecodedItem::Unused => HeapItem::Unused,
            DecodedItem::Dead => HeapItem::Dead,
            DecodedItem::Redirect(to) => HeapItem::Redirect(*to),
            DecodedItem::Normal(tuple) => HeapItem::Normal(HeapTuple {
                lp_len: tuple.lp_len,
                xmin: tuple.xmin,
                is_frozen: tuple.is_frozen(),
                xmax: tuple.xmax,
                is_multi: tuple.is_multi(),
                // Without xmax PostgreSQL sets the bits of nobody's lock to nothing.
                is_locked_only: tuple.xmax != 0 && tuple.is_locked_only(),
                is_hot_updated: tuple.is_hot_updated(),
                is_heap_only: tuple.is_heap_only(),
                next: HeapTid {
                    block: tuple.ctid_block,
                    offset: tuple.ctid_offset,
                },
            }),
        });
        Self::Used(UsedPage {
            pd_lower: header.pd_lower.into(),
            pd_upper: header.pd_upper.into(),
            has_free_lines: header.pd_flags & PD_HAS_FREE_LINES != 0,
            is_full: header.pd_flags & PD_PAGE_FULL != 0,
            is_all_visible: header.pd_flags & PD_ALL_VISIBLE != 0,
            prune_xid: header.pd_prune_xid,
            items: items.collect(),
        })
    }
}

impl BtreePage {
    /// What is compared of a decoded page; `key_columns` is what an untruncated pivot kept.
    #[must_use]
    pub fn of_decoded(page: &DecodedBtreePage, key_columns: u16) -> Self {
        match page {
            DecodedBtreePage::New => Self::New,
            DecodedBtreePage::Meta(meta) => Self::Meta([
                meta.root,
                meta.level,
                meta.fast_root,
                meta.fast_level,
                meta.last_cleanup_num_delpages,
            ]),
            DecodedBtreePage::Tree(page) if page.is_deleted() => {
                Self::Deleted { level: page.level }
            }
            DecodedBtreePage::Tree(page) => Self::Tree(tree_page(page, key_columns)),
        }
    }
}

fn tree_page(page: &TreePage, key_columns: u16) -> BtreeTreePage {
    let items = page.items.iter().map(|item| BtreeItem {
        lp_len: item.lp_len.into(),
        is_dead: item.is_dead,
        entry: match &item.kind {
            ItemKind::HighKey(pivot) => {
                BtreeEntry::HighKey(pivot.natts.unwrap_or(key_columns), pivot.tid)
            }
            ItemKind::Downlink(pivot) => {
                let natts = pivot.natts.unwrap_or(key_columns);
                BtreeEntry::Downlink(pivot.child, natts, pivot.tid)
            }
            ItemKind::Plain(tid) => BtreeEntry::Rows(vec![*tid]),
            ItemKind::Posting(tids) => BtreeEntry::Rows(tids.clone()),
        },
    });
    BtreeTreePage {
        level: page.level,
        is_root: page.is_root(),
        is_half_dead: page.is_half_dead(),
        prev: page.prev,
        next: page.next,
        free_bytes: page.header.exact_free_space().into(),
        items: items.collect(),
    }
}

/// The text of a decoded free space map's page.
#[must_use]
pub fn decoded_fsm_text(number: u32, page: &FsmPage) -> String {
    fsm_text(number, page.slots())
}
