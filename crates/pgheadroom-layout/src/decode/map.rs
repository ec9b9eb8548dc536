//! Pages of the free space map and of the visibility map.
//!
//! Source: src/include/storage/fsm_internals.h; src/backend/access/heap/visibilitymap.c
//! (REL_15_STABLE to REL_18_STABLE).

use crate::decode::{DecodeError, PageBytes, PageHeader};

/// Where a map page's contents begin.
const CONTENTS: usize = 24;
/// Source: `NodesPerPage`, src/include/storage/fsm_internals.h.
const NODES_PER_PAGE: usize = 8192 - CONTENTS - 4;
/// Source: `NonLeafNodesPerPage`, fsm_internals.h.
const NON_LEAF_NODES_PER_PAGE: usize = 8192 / 2 - 1;
/// Slots of a page of the free space map. Source: `LeafNodesPerPage`, fsm_internals.h.
pub const SLOTS_PER_FSM_PAGE: usize = NODES_PER_PAGE - NON_LEAF_NODES_PER_PAGE;

const _: () = assert!(SLOTS_PER_FSM_PAGE == 4069);

/// A page of the free space map; an uninitialised one reads as zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsmPage {
    /// Where the next search begins. It changes without making the page dirty, so that a file may
    /// hold an old value.
    pub fp_next_slot: i32,
    /// The tree: inner nodes, then slots.
    pub nodes: Vec<u8>,
}

impl FsmPage {
    /// Reads a page.
    ///
    /// # Errors
    /// [`DecodeError`] when the header is none.
    pub fn decode(blkno: u32, bytes: &[u8]) -> Result<Self, DecodeError> {
        let page = PageBytes::new(blkno, bytes)?;
        PageHeader::read(&page)?;
        #[allow(clippy::cast_possible_wrap)] // int in PostgreSQL
        let fp_next_slot = page.u32(CONTENTS) as i32;
        let nodes = page.slice(CONTENTS + 4, NODES_PER_PAGE).to_vec();
        Ok(Self {
            fp_next_slot,
            nodes,
        })
    }

    /// The slots: one category for each heap page, or for each page of the level below.
    #[must_use]
    pub fn slots(&self) -> &[u8] {
        &self.nodes[NON_LEAF_NODES_PER_PAGE..]
    }

    /// The largest value of the page.
    #[must_use]
    pub fn root(&self) -> u8 {
        self.nodes[0]
    }
}

/// Bits of a heap page in the visibility map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VisibilityBits {
    /// `VISIBILITYMAP_ALL_VISIBLE`.
    pub all_visible: bool,
    /// `VISIBILITYMAP_ALL_FROZEN`.
    pub all_frozen: bool,
}

/// The bits on a page of the visibility map, for 32672 heap pages in order.
///
/// # Errors
/// [`DecodeError`] when the header is none.
///
/// Source: `HEAPBLK_TO_MAPBYTE` and `HEAPBLK_TO_OFFSET`, visibilitymap.c.
pub fn decode_vm_page(blkno: u32, bytes: &[u8]) -> Result<Vec<VisibilityBits>, DecodeError> {
    let page = PageBytes::new(blkno, bytes)?;
    PageHeader::read(&page)?;
    let map = page.slice(CONTENTS, 8192 - CONTENTS);
    let bits = map.iter().flat_map(|byte| {
        [0, 2, 4, 6].map(|shift| VisibilityBits {
            all_visible: byte >> shift & 1 != 0,
            all_frozen: byte >> shift & 2 != 0,
        })
    });
    Ok(bits.collect())
}
