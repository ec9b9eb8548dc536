//! Where everything of the twin's tables lies, as the text that a server's files are told in too.
//!
//! The format, what it compares and what it leaves out are `pgheadroom_layout::places`; here the
//! twin's own pages are turned into its structs, and nothing is decided.

use std::collections::BTreeMap;

use pgheadroom_layout::BlockNumber;
use pgheadroom_layout::decode::btree::HeapTid;
use pgheadroom_layout::decode::map::VisibilityBits;
use pgheadroom_layout::places::{
    BtreeEntry, BtreeItem, BtreePage, BtreeTreePage, HeapItem, HeapPage, HeapTuple, UsedPage,
    btree_text, fsm_text, heap_texts, vm_text,
};

use crate::btree::{self, Btree, PageState};
use crate::executor::Table;
use crate::fsm::FreeSpaceMap;
use crate::heap::Heap;
use crate::page::{self, LinePointer, Tid, XminHint};
use crate::vm::HEAPBLOCKS_PER_PAGE;

/// By fork: the text of each page. A fork that does not exist is left out, but for main forks.
pub type Places = BTreeMap<String, Vec<String>>;

/// The places of a table and its indexes.
///
/// Forks are named `table:main`, `table:fsm`, `table:vm`, `index:main`, `index:fsm`.
///
/// # Panics
/// When the table has another number of B-trees, hash indexes and GINs than there are names, which
/// come in this order.
#[must_use]
pub fn of_table(table: &Table, name: &str, indexes: &[&str]) -> Places {
    let mut places = Places::new();
    add_heap(&mut places, name, table.heap());
    assert_eq!(
        table.index_pages().len(),
        indexes.len(),
        "indexes and their names"
    );
    let gins = table.gin_texts();
    let (indexes, names) = indexes.split_at(indexes.len() - gins.len());
    for (name, (texts, fsm)) in names.iter().zip(gins) {
        places.insert(format!("{name}:main"), texts);
        add_map(&mut places, format!("{name}:fsm"), fsm_texts(fsm));
    }
    let hashes = table.hash_texts();
    let (trees, names) = indexes.split_at(indexes.len() - hashes.len());
    for (name, texts) in names.iter().zip(hashes) {
        places.insert(format!("{name}:main"), texts);
    }
    for (position, name) in trees.iter().enumerate() {
        let tree = table.index_tree(position);
        places.insert(format!("{name}:main"), btree_texts(tree));
        add_map(&mut places, format!("{name}:fsm"), fsm_texts(tree.fsm()));
    }
    // An unused TOAST table has no pages, and its index only a metapage.
    if let Some(toast) = table.toast().filter(|toast| toast.heap().page_count() > 0) {
        places.extend(of_table(
            toast,
            &format!("{name}.toast"),
            &[&format!("{name}.toast.index")],
        ));
    }
    places
}

fn add_heap(places: &mut Places, name: &str, heap: &Heap) {
    let pages: Vec<HeapPage> = heap.pages().iter().map(heap_page).collect();
    places.insert(format!("{name}:main"), heap_texts(&pages));
    add_map(places, format!("{name}:fsm"), fsm_texts(heap.fsm()));
    let vm = heap.vm();
    let pages = (0..vm.page_count()).map(|number| {
        let first = number * HEAPBLOCKS_PER_PAGE;
        let bits = (first..first + HEAPBLOCKS_PER_PAGE).map(|block| {
            let bits = vm.get(BlockNumber(block));
            VisibilityBits {
                all_visible: bits.all_visible,
                all_frozen: bits.all_frozen,
            }
        });
        vm_text(number, &bits.collect::<Vec<_>>())
    });
    add_map(places, format!("{name}:vm"), pages.collect());
}

fn add_map(places: &mut Places, name: String, texts: Vec<String>) {
    if !texts.is_empty() {
        places.insert(name, texts);
    }
}

fn fsm_texts(map: &FreeSpaceMap) -> Vec<String> {
    let pages = (0..).zip(map.page_slots());
    pages
        .map(|(number, slots)| fsm_text(number, slots))
        .collect()
}

fn heap_page(page: &page::HeapPage) -> HeapPage {
    if page.is_new() {
        return HeapPage::New;
    }
    let items = page.items().into_iter().map(|item| match item {
        LinePointer::Unused => HeapItem::Unused,
        LinePointer::Dead => HeapItem::Dead,
        LinePointer::Redirect(to) => HeapItem::Redirect(to),
        LinePointer::Normal(tuple) => HeapItem::Normal(HeapTuple {
            lp_len: tuple.lp_len,
            xmin: tuple.xmin.0,
            is_frozen: tuple.xmin_hint == XminHint::Frozen,
            xmax: tuple.xmax.0,
            is_multi: tuple.xmax.is_multixact(),
            is_locked_only: tuple.is_locked_only,
            is_hot_updated: tuple.is_hot_updated,
            is_heap_only: tuple.is_heap_only,
            next: heap_tid(tuple.next),
        }),
    });
    HeapPage::Used(UsedPage {
        pd_lower: page.pd_lower(),
        pd_upper: page.pd_upper(),
        has_free_lines: page.has_free_lines(),
        is_full: page.is_full(),
        is_all_visible: page.is_all_visible(),
        prune_xid: page.prune_xid().0,
        items: items.collect(),
    })
}

fn btree_texts(tree: &Btree) -> Vec<String> {
    let number = |block: Option<BlockNumber>| block.map_or(0, |block| block.0);
    let meta = tree.metapage();
    let meta = BtreePage::Meta([
        number(meta.root),
        meta.level,
        number(meta.fast_root),
        meta.fast_level,
        meta.last_cleanup_num_delpages,
    ]);
    let pages = (1..tree.page_count()).map(|block| {
        let page = tree.page(BlockNumber(block));
        btree_text(block, &btree_page(page))
    });
    std::iter::once(btree_text(0, &meta)).chain(pages).collect()
}

fn btree_page(page: &btree::BtreePage) -> BtreePage {
    if let PageState::Deleted { .. } = page.state() {
        let level = page.level();
        return BtreePage::Deleted { level };
    }
    let (prev, next) = page.siblings();
    let items = page.items().enumerate().map(|(position, item)| {
        let kept = u16::from(item.kept_columns());
        let entry = if position < page.first_data() {
            BtreeEntry::HighKey(kept, item.tid().map(heap_tid))
        } else if page.is_leaf() {
            BtreeEntry::Rows(item.tids().into_iter().map(heap_tid).collect())
        } else {
            BtreeEntry::Downlink(item.child(), kept, item.tid().map(heap_tid))
        };
        BtreeItem {
            lp_len: item.bytes(),
            is_dead: item.is_dead(),
            entry,
        }
    });
    BtreePage::Tree(BtreeTreePage {
        level: page.level(),
        is_root: page.is_root(),
        is_half_dead: matches!(page.state(), PageState::HalfDead { .. }),
        prev: prev.map_or(0, |block| block.0),
        next: next.map_or(0, |block| block.0),
        free_bytes: page.exact_free_space(),
        items: items.collect(),
    })
}

fn heap_tid(tid: Tid) -> HeapTid {
    HeapTid {
        block: tid.block,
        offset: tid.offset,
    }
}
