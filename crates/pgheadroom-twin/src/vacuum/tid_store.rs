//! The memory of a TID store, by which VACUUM decides that it has collected enough.
//!
//! ```text
//! blocks -> a radix tree of the block's bytes: nodes of 4, 16, 32, 64, 256 children, from slabs
//!           up to 3 offsets lie in the child's pointer itself; more are a bitmap, from the bump
//! ```
//!
//! Where parallel workers read it, all of it is in an area of shared memory (`dsa`).
//!
//! Only what is allocated is kept here, not what is stored. Blocks come in ascending order, so that
//! of each level of the tree the last node alone grows.

use crate::vacuum::dsa::Dsa;

/// Children of a node at most, by class, in memory of one process.
///
/// Source: `RT_FANOUT_4`, `RT_FANOUT_16_LO`, `RT_FANOUT_16_HI`, `RT_FANOUT_48` and
/// `RT_FANOUT_256`, src/include/lib/radixtree.h (REL_18_STABLE), of a server with 64 bits.
const FANOUTS: [u16; CLASSES] = [4, 16, 32, 64, 256];
/// The same with `RT_SHMEM`, in which nodes fit into classes of an area.
const SHARED_FANOUTS: [u16; CLASSES] = [4, 15, 32, 62, 256];
/// How many classes of nodes there are.
const CLASSES: usize = 5;

/// Bytes of a node of a class: a header and its keys' bytes, then 8 bytes a child.
///
/// Source: `RT_SIZE_CLASS_INFO`, src/include/lib/radixtree.h (REL_18_STABLE).
const fn node_bytes(class: usize, fanout: u16) -> u64 {
    const HEADERS: [u64; CLASSES] = [8, 40, 40, 16 + 256, 8 + 32];
    HEADERS[class] + 8 * fanout as u64
}

/// Levels of a tree over block numbers.
const LEVELS: usize = 4;
/// Bits of a level. Source: `RT_SPAN`.
const SPAN: u32 = 8;

/// The last node of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Node {
    children: u16,
    class: usize,
}

/// Where nodes and bitmaps are.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Memory {
    /// Of one process.
    Contexts { slabs: [Slab; CLASSES], bump: Bump },
    /// Shared with parallel workers.
    Area(Box<Dsa>),
}

/// What a TID store has allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TidStore {
    memory: Memory,
    fanouts: [u16; CLASSES],
    /// The last node of each level, from the leaves up; `height` of them are there.
    last: [Node; LEVELS],
    height: usize,
    last_block: Option<u32>,
}

impl TidStore {
    /// An empty one, for so many bytes, of one process or shared.
    ///
    /// Source: `TidStoreCreateLocal` and `TidStoreCreateShared`,
    /// src/backend/access/common/tidstore.c; `RT_CREATE`, src/include/lib/radixtree.h
    /// (REL_18_STABLE).
    pub fn new(max_bytes: u64, is_shared: bool) -> Self {
        /// `sizeof(RT_RADIX_TREE_CONTROL)`, of which a process has its own elsewhere.
        const CONTROL: u64 = 64;
        let (memory, fanouts) = if is_shared {
            let mut area = Dsa::new(max_bytes);
            area.allocate(CONTROL);
            (Memory::Area(Box::new(area)), SHARED_FANOUTS)
        } else {
            let contexts = Memory::Contexts {
                slabs: std::array::from_fn(|class| Slab::new(node_bytes(class, FANOUTS[class]))),
                bump: Bump::new(max_bytes),
            };
            (contexts, FANOUTS)
        };
        let mut store = Self {
            memory,
            fanouts,
            last: [Node::default(); LEVELS],
            height: 1,
            last_block: None,
        };
        store.allocate_node(0);
        store
    }

    /// Bytes. Source: `TidStoreMemoryUsage`, src/backend/access/common/tidstore.c (REL_18_STABLE).
    pub fn allocated(&self) -> u64 {
        match &self.memory {
            Memory::Contexts { slabs, bump } => {
                slabs.iter().map(Slab::allocated).sum::<u64>() + bump.allocated
            }
            Memory::Area(area) => area.allocated(),
        }
    }

    /// Notes the offsets of a block behind the last one, in ascending order: how many, and the
    /// last of them.
    ///
    /// Source: `TidStoreSetBlockOffsets`, src/backend/access/common/tidstore.c; `RT_SET`,
    /// src/include/lib/radixtree.h (REL_18_STABLE).
    pub fn set(&mut self, block: u32, offsets: usize, last_offset: u16) {
        const OFFSETS_IN_POINTER: usize = 3;
        const HEADER: u64 = 8;
        const WORD_BITS: u16 = 64;
        self.insert(block);
        if offsets > OFFSETS_IN_POINTER {
            let words = u64::from(last_offset / WORD_BITS) + 1;
            let bytes = HEADER + words * 8;
            match &mut self.memory {
                Memory::Contexts { bump, .. } => bump.allocate(bytes),
                Memory::Area(area) => area.allocate(bytes),
            }
        }
    }

    /// The tree gets a key. Source: `RT_SET`, `RT_EXTEND_UP`, `RT_EXTEND_DOWN`.
    fn insert(&mut self, block: u32) {
        // One level for each byte up to the highest that is not 0.
        let height = (block.checked_ilog2().unwrap_or(0) / SPAN) as usize + 1;
        let Some(last) = self.last_block.replace(block) else {
            // The root becomes the top of the first key's path.
            for level in 0..height {
                self.last[level] = Node {
                    children: 1,
                    class: 0,
                };
                if level > 0 {
                    self.allocate_node(0);
                }
            }
            self.height = height;
            return;
        };
        for level in self.height..height {
            self.allocate_node(0);
            self.last[level] = Node {
                children: 1,
                class: 0,
            };
        }
        self.height = self.height.max(height);
        let top = ((last ^ block).checked_ilog2().unwrap_or(0) / SPAN) as usize;
        self.add_child(top);
        for level in 0..top {
            self.allocate_node(0);
            self.last[level] = Node {
                children: 1,
                class: 0,
            };
        }
    }

    /// A level's last node gets a child, and grows if it is full.
    ///
    /// Source: `RT_NODE_INSERT` and `RT_GROW_NODE_4` to `RT_GROW_NODE_48`.
    fn add_child(&mut self, level: usize) {
        let Node { children, class } = self.last[level];
        self.last[level].children += 1;
        if children == self.fanouts[class] {
            self.allocate_node(class + 1);
            self.free_node(class);
            self.last[level].class += 1;
        }
    }

    fn allocate_node(&mut self, class: usize) {
        match &mut self.memory {
            Memory::Contexts { slabs, .. } => slabs[class].allocate(),
            Memory::Area(area) => area.allocate(node_bytes(class, self.fanouts[class])),
        }
    }

    fn free_node(&mut self, class: usize) {
        match &mut self.memory {
            Memory::Contexts { slabs, .. } => slabs[class].nodes -= 1,
            Memory::Area(area) => area.free(node_bytes(class, self.fanouts[class])),
        }
    }
}

/// The nodes of a class, in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slab {
    nodes: u64,
    blocks: u64,
    block_bytes: u64,
    nodes_per_block: u64,
}

impl Slab {
    /// Source: `RT_SLAB_BLOCK_SIZE`, src/include/lib/radixtree.h; `SlabContextCreate`,
    /// src/backend/utils/mmgr/slab.c (REL_18_STABLE).
    fn new(node_bytes: u64) -> Self {
        const SLAB_DEFAULT_BLOCK_SIZE: u64 = 8192;
        const BLOCK_HEADER: u64 = 48;
        const CHUNK_HEADER: u64 = 8;
        let wanted = (node_bytes * 32).next_power_of_two();
        let block_bytes = wanted.max(SLAB_DEFAULT_BLOCK_SIZE);
        Self {
            nodes: 0,
            blocks: 0,
            block_bytes,
            nodes_per_block: (block_bytes - BLOCK_HEADER) / (node_bytes + CHUNK_HEADER),
        }
    }

    const fn allocated(&self) -> u64 {
        self.blocks * self.block_bytes
    }

    /// Source: `SlabAlloc`, src/backend/utils/mmgr/slab.c (REL_18_STABLE), which fills the blocks
    /// that are there first, and keeps up to ten empty ones: since one node at a time is replaced,
    /// there are no more.
    const fn allocate(&mut self) {
        if self.nodes == self.blocks * self.nodes_per_block {
            self.blocks += 1;
        }
        self.nodes += 1;
    }
}

/// A context that only adds. Source: src/backend/utils/mmgr/bump.c (REL_18_STABLE).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bump {
    allocated: u64,
    free: u64,
    next_block: u64,
    max_block: u64,
}

impl Bump {
    /// Bytes of the first block. Source: `ALLOCSET_DEFAULT_INITSIZE`.
    const FIRST_BLOCK: u64 = 8192;
    /// `sizeof(BumpContext)`, which the first block begins with.
    const CONTEXT: u64 = 112;
    /// `Bump_BLOCKHDRSZ`.
    const BLOCK_HEADER: u64 = 32;

    /// Source: `TidStoreCreateLocal`: blocks of a sixteenth of the limit at most, which is halved
    /// from `ALLOCSET_DEFAULT_MAXSIZE` on.
    fn new(max_bytes: u64) -> Self {
        let mut max_block = 8 << 20;
        while 16 * max_block > max_bytes && max_block > Self::FIRST_BLOCK {
            max_block >>= 1;
        }
        Self {
            allocated: Self::FIRST_BLOCK,
            free: Self::FIRST_BLOCK - Self::CONTEXT - Self::BLOCK_HEADER,
            next_block: Self::FIRST_BLOCK,
            max_block,
        }
    }

    /// Takes so many bytes, a multiple of 8.
    fn allocate(&mut self, bytes: u64) {
        if self.free < bytes {
            let block = self.next_block;
            self.allocated += block;
            self.next_block = (2 * block).min(self.max_block);
            self.free = block - Self::BLOCK_HEADER;
        }
        self.free -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// A tree's nodes by class, counted from all keys at once.
    fn nodes(blocks: &[u32]) -> [u64; CLASSES] {
        let height = blocks.last().map_or(1, |&last| {
            (1..=4_u32)
                .find(|level| u64::from(last) < 1 << (SPAN * level))
                .unwrap()
        });
        let mut counts = [0; CLASSES];
        for level in 0..height {
            let mut children: BTreeMap<u64, std::collections::BTreeSet<u64>> = BTreeMap::new();
            for &block in blocks {
                let of_level = u64::from(block) >> (SPAN * level);
                children
                    .entry(of_level >> SPAN)
                    .or_default()
                    .insert(of_level);
            }
            for of_node in children.values() {
                let fits = |fanout: &u16| of_node.len() <= usize::from(*fanout);
                counts[FANOUTS.iter().position(fits).unwrap()] += 1;
            }
        }
        counts
    }

    proptest! {
        /// The nodes are those of the tree that has the keys, whatever they are; where each grew
        /// one class by one, a slab has blocks for one more at most.
        #[test]
        fn nodes_are_those_of_the_tree(mut gaps in prop::collection::vec(
            prop_oneof![Just(1_u32), 1..5_u32, 1..400_u32, 1..2_000_000_u32], 1..900,
        )) {
            gaps[0] -= 1;
            let mut blocks = Vec::new();
            let mut store = TidStore::new(64 << 10, false);
            for gap in gaps {
                let Some(block) = blocks.last().copied().unwrap_or(0_u32).checked_add(gap) else {
                    break;
                };
                blocks.push(block);
                store.set(block, 1, 1);
            }
            let counts = nodes(&blocks);
            let mut allocated = Bump::FIRST_BLOCK;
            let Memory::Contexts { slabs, .. } = &store.memory else {
                panic!("of one process");
            };
            for (class, count) in counts.into_iter().enumerate() {
                let slab = slabs[class];
                prop_assert_eq!(slab.nodes, count, "class {}", class);
                let per_block = slab.nodes_per_block;
                prop_assert!(slab.blocks >= count.div_ceil(per_block));
                prop_assert!(slab.blocks <= (count + 1).div_ceil(per_block));
                allocated += slab.allocated();
            }
            prop_assert_eq!(store.allocated(), allocated);
        }
    }

    /// `dead_tuple_bytes` of `pg_stat_progress_vacuum` while VACUUM (PARALLEL 0) passes over an
    /// index: 18.4, `maintenance_work_mem` 64 MB; dead line pointers on so many pages, of which
    /// every `gap`-th has some.
    #[test]
    fn bytes_are_those_of_a_server() {
        for (pages, gap, offsets, last_offset, bytes) in [
            (0, 1, 1, 1, 16_384),
            (33, 1, 1, 1, 73_728),
            (1000, 1, 1, 1, 204_800),
            (400, 50, 1, 1, 212_992),
            (2500, 1, 5, 12, 262_144),
            (1327, 1, 113, 225, 262_144),
        ] {
            let mut store = TidStore::new(64 << 20, false);
            (0..pages).for_each(|page| store.set(page * gap, offsets, last_offset));
            assert_eq!(store.allocated(), bytes, "{pages} pages, each {gap}");
        }
    }

    /// The same of VACUUM (PARALLEL 1), whose area grows by segments of 256 kB at least: 19rc1,
    /// with 1 GB 18.4, by `maintenance_work_mem`.
    #[test]
    fn shared_bytes_are_those_of_a_server() {
        const TABLES: [(u32, u32, usize, u16); 8] = [
            (33, 1, 1, 1),
            (1000, 1, 1, 1),
            (400, 50, 1, 1),
            (2500, 1, 5, 12),
            (1327, 1, 113, 225),
            (20_000, 1, 1, 1),
            (3000, 7, 60, 200),
            (12_000, 1, 20, 130),
        ];
        for (memory_mb, segments) in [
            (1, [2, 2, 2, 3, 2, 3, 3, 5]),
            (2, [2, 2, 2, 3, 2, 3, 3, 5]),
            (4, [2, 2, 2, 2, 2, 4, 2, 4]),
            (64, [4; 8]),
            (1024, [4; 8]),
        ] {
            for ((pages, gap, offsets, last_offset), segments) in TABLES.into_iter().zip(segments) {
                let mut store = TidStore::new(memory_mb << 20, true);
                (0..pages).for_each(|page| store.set(page * gap, offsets, last_offset));
                let case = format!("{memory_mb} MB, {pages} pages, each {gap}");
                assert_eq!(store.allocated(), segments * (256 << 10), "{case}");
            }
        }
        // Where 1 MB is full: 204,820 line pointers of the last table.
        let mut store = TidStore::new(1 << 20, true);
        let full = (0..).find(|&page| {
            store.set(page, 20, 130);
            store.allocated() > 1 << 20
        });
        assert_eq!(full, Some(204_820 / 20 - 1));
    }
}
