//! `pgheadroom_layout::decode` and `places` for Python: pages of relation files.

use pgheadroom_layout::decode::btree::{self, ItemKind};
use pgheadroom_layout::decode::gin::GinPage;
use pgheadroom_layout::decode::hash::HashPage;
use pgheadroom_layout::decode::heap::{self, HeapItem};
use pgheadroom_layout::decode::map::{FsmPage, decode_vm_page};
use pgheadroom_layout::decode::{self, DecodeError, pages_of};
use pgheadroom_layout::places;
use pyo3::prelude::*;

use crate::error::CoreError;

/// A page's header.
#[pyclass(frozen, get_all, module = "pgheadroom._core")]
#[derive(Clone)]
pub struct PageHeader {
    pd_lsn: u64,
    pd_checksum: u16,
    pd_flags: u16,
    pd_lower: u16,
    pd_upper: u16,
    pd_special: u16,
    pd_prune_xid: u32,
}

impl From<decode::PageHeader> for PageHeader {
    fn from(header: decode::PageHeader) -> Self {
        Self {
            pd_lsn: header.pd_lsn,
            pd_checksum: header.pd_checksum,
            pd_flags: header.pd_flags,
            pd_lower: header.pd_lower,
            pd_upper: header.pd_upper,
            pd_special: header.pd_special,
            pd_prune_xid: header.pd_prune_xid,
        }
    }
}

/// A line pointer of a heap page, and its tuple's header if it has one.
#[pyclass(frozen, get_all, module = "pgheadroom._core")]
#[derive(Clone)]
pub struct HeapLinePointer {
    lp_flags: u8,
    redirect: Option<u16>,
    lp_len: Option<u16>,
    xmin: Option<u32>,
    xmax: Option<u32>,
    ctid: Option<(u32, u16)>,
    infomask2: Option<u16>,
    infomask: Option<u16>,
    hoff: Option<u8>,
}

impl HeapLinePointer {
    fn bare(lp_flags: u8, redirect: Option<u16>) -> Self {
        Self {
            lp_flags,
            redirect,
            lp_len: None,
            xmin: None,
            xmax: None,
            ctid: None,
            infomask2: None,
            infomask: None,
            hoff: None,
        }
    }
}

impl From<&HeapItem> for HeapLinePointer {
    fn from(item: &HeapItem) -> Self {
        match item {
            HeapItem::Unused => Self::bare(0, None),
            HeapItem::Redirect(to) => Self::bare(2, Some(to.0)),
            HeapItem::Dead => Self::bare(3, None),
            HeapItem::Normal(tuple) => Self {
                lp_len: Some(tuple.lp_len),
                xmin: Some(tuple.xmin),
                xmax: Some(tuple.xmax),
                ctid: Some((tuple.ctid_block.0, tuple.ctid_offset.0)),
                infomask2: Some(tuple.infomask2),
                infomask: Some(tuple.infomask),
                hoff: Some(tuple.hoff),
                ..Self::bare(1, None)
            },
        }
    }
}

/// An item of a B-tree page, without its key.
#[pyclass(frozen, get_all, module = "pgheadroom._core")]
#[derive(Clone)]
pub struct BtreeItem {
    kind: &'static str,
    lp_len: u16,
    is_dead: bool,
    child: Option<u32>,
    natts: Option<u16>,
    tids: Vec<(u32, u16)>,
}

/// A page of a B-tree.
#[pyclass(frozen, get_all, module = "pgheadroom._core")]
#[derive(Clone)]
pub struct BtreePage {
    header: PageHeader,
    prev: u32,
    next: u32,
    level: u32,
    flags: u16,
    items: Vec<BtreeItem>,
}

impl From<DecodeError> for CoreError {
    fn from(error: DecodeError) -> Self {
        Self::source(error.to_string())
    }
}

/// Header and line pointers of a heap page; no header if it was never initialised.
#[pyfunction]
#[pyo3(signature = (page, blkno=0))]
pub fn decode_heap_page(
    page: &[u8],
    blkno: u32,
) -> Result<(Option<PageHeader>, Vec<HeapLinePointer>), CoreError> {
    let page = heap::HeapPage::decode(blkno, page)?;
    let items = page.items.iter().map(HeapLinePointer::from).collect();
    Ok((page.header.map(PageHeader::from), items))
}

/// A B-tree page; None for the metapage and for a page of zeros.
#[pyfunction]
#[pyo3(signature = (page, blkno=0))]
pub fn decode_btree_page(page: &[u8], blkno: u32) -> Result<Option<BtreePage>, CoreError> {
    let btree::BtreePage::Tree(page) = btree::BtreePage::decode(blkno, page)? else {
        return Ok(None);
    };
    let tid = |tid: &btree::HeapTid| (tid.block.0, tid.offset.0);
    let items = page.items.iter().map(|item| {
        let (kind, pivot, tids) = match &item.kind {
            ItemKind::HighKey(pivot) => ("high key", Some(pivot), Vec::new()),
            ItemKind::Downlink(pivot) => ("downlink", Some(pivot), Vec::new()),
            ItemKind::Plain(one) => ("tuple", None, vec![tid(one)]),
            ItemKind::Posting(tids) => ("posting", None, tids.iter().map(tid).collect()),
        };
        BtreeItem {
            kind,
            lp_len: item.lp_len,
            is_dead: item.is_dead,
            child: pivot.map(|pivot| pivot.child.0),
            natts: pivot.and_then(|pivot| pivot.natts),
            tids: match pivot.and_then(|pivot| pivot.tid) {
                Some(kept) => vec![tid(&kept)],
                None => tids,
            },
        }
    });
    Ok(Some(BtreePage {
        header: page.header.into(),
        prev: page.prev,
        next: page.next,
        level: page.level,
        flags: page.flags,
        items: items.collect(),
    }))
}

/// The nodes of a free space map's page, and where its next search begins.
#[pyfunction]
#[pyo3(signature = (page, blkno=0))]
pub fn decode_fsm_page(page: &[u8], blkno: u32) -> Result<(Vec<u32>, i32), CoreError> {
    let page = FsmPage::decode(blkno, page)?;
    let nodes = page.nodes.iter().copied().map(u32::from).collect();
    Ok((nodes, page.fp_next_slot))
}

/// The bits of heap pages on a page of the visibility map: (all visible, all frozen).
#[pyfunction]
#[pyo3(signature = (page, blkno=0))]
pub fn decode_visibility_page(page: &[u8], blkno: u32) -> Result<Vec<(bool, bool)>, CoreError> {
    let bits = decode_vm_page(blkno, page)?;
    let pairs = bits.iter().map(|bits| (bits.all_visible, bits.all_frozen));
    Ok(pairs.collect())
}

/// The places of a relation's fork, one text a page, as the twin tells them too.
#[pyfunction]
#[pyo3(signature = (kind, file, *, key_columns=1))]
pub fn relation_places(
    kind: &str,
    file: &[u8],
    key_columns: u16,
) -> Result<Vec<String>, CoreError> {
    let pages = pages_of(file)?;
    let texts: Result<Vec<String>, DecodeError> = match kind {
        "heap" => {
            let decoded = pages.map(|(number, page)| {
                heap::HeapPage::decode(number, page).map(|page| places::HeapPage::from(&page))
            });
            let decoded: Vec<_> = decoded.collect::<Result<_, _>>()?;
            return Ok(places::heap_texts(&decoded));
        }
        "btree" => pages
            .map(|(number, page)| {
                let page = btree::BtreePage::decode(number, page)?;
                let page = places::BtreePage::of_decoded(&page, key_columns);
                Ok(places::btree_text(number, &page))
            })
            .collect(),
        "gin" => pages
            .map(|(number, page)| {
                GinPage::decode(number, page).map(|page| places::gin_text(number, &page))
            })
            .collect(),
        "hash" => pages
            .map(|(number, page)| {
                HashPage::decode(number, page).map(|page| places::hash_text(number, &page))
            })
            .collect(),
        "fsm" => pages
            .map(|(number, page)| {
                FsmPage::decode(number, page).map(|page| places::fsm_text(number, page.slots()))
            })
            .collect(),
        "vm" => pages
            .map(|(number, page)| {
                decode_vm_page(number, page).map(|bits| places::vm_text(number, &bits))
            })
            .collect(),
        other => {
            let message = format!("kind {other:?}: expected heap, btree, gin, hash, fsm or vm");
            return Err(CoreError::input(message));
        }
    };
    Ok(texts?)
}

/// A digest of a text of places: 16 hexadecimal digits.
#[pyfunction]
pub fn places_digest(text: &str) -> String {
    format!("{:016x}", places::digest(text))
}
