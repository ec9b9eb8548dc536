//! The memory of a TID store, by which VACUUM decides that it has collected enough.
//!
//! ```text
//! blocks -> a radix tree of the block's bytes: nodes of 4, 16, 32, 64, 256 children, from slabs
//!           up to 3 offsets lie in the child's pointer itself; more are a bitmap, from the bump
//! ```
//!
//! Only what is allocated is kept here, not what is stored. Blocks come in ascending order, so that
//! of each level of the tree the last node alone grows.

/// A class of nodes: what a node of it may hold, and the slab that they come from.
struct SizeClass {
    /// Children at most.
    fanout: u16,
    /// Bytes of a block of the slab.
    block_bytes: u64,
    /// Nodes in a block.
    nodes_per_block: u64,
}

impl SizeClass {
    /// Source: `RT_SIZE_CLASS_INFO` and `RT_SLAB_BLOCK_SIZE`, src/include/lib/radixtree.h;
    /// `SlabContextCreate`, src/backend/utils/mmgr/slab.c (REL_18_STABLE).
    const fn new(fanout: u16, node_bytes: u64) -> Self {
        const SLAB_DEFAULT_BLOCK_SIZE: u64 = 8192;
        const BLOCK_HEADER: u64 = 48;
        const CHUNK_HEADER: u64 = 8;
        let wanted = (node_bytes * 32).next_power_of_two();
        let block_bytes = if wanted > SLAB_DEFAULT_BLOCK_SIZE {
            wanted
        } else {
            SLAB_DEFAULT_BLOCK_SIZE
        };
        Self {
            fanout,
            block_bytes,
            nodes_per_block: (block_bytes - BLOCK_HEADER) / (node_bytes + CHUNK_HEADER),
        }
    }
}

/// Of a server with 64 bits: a node's header and its keys' bytes, then 8 bytes a child.
const SIZE_CLASSES: [SizeClass; 5] = [
    SizeClass::new(4, 8 + 4 * 8),
    SizeClass::new(16, 40 + 16 * 8),
    SizeClass::new(32, 40 + 32 * 8),
    SizeClass::new(64, 16 + 256 + 64 * 8),
    SizeClass::new(256, 8 + 32 + 256 * 8),
];
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

/// The nodes of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Slab {
    nodes: u64,
    blocks: u64,
}

/// What a TID store has allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TidStore {
    allocated: u64,
    slabs: [Slab; SIZE_CLASSES.len()],
    /// The last node of each level, from the leaves up; `height` of them are there.
    last: [Node; LEVELS],
    height: usize,
    last_block: Option<u32>,
    bump: Bump,
}

impl TidStore {
    /// An empty one, for so many bytes.
    ///
    /// Source: `TidStoreCreateLocal`, src/backend/access/common/tidstore.c; `RT_CREATE`,
    /// src/include/lib/radixtree.h (REL_18_STABLE).
    pub fn new(max_bytes: u64) -> Self {
        let mut store = Self {
            allocated: Bump::FIRST_BLOCK,
            slabs: [Slab::default(); SIZE_CLASSES.len()],
            last: [Node::default(); LEVELS],
            height: 1,
            last_block: None,
            bump: Bump::new(max_bytes),
        };
        store.allocate_node(0);
        store
    }

    /// Bytes. Source: `TidStoreMemoryUsage`, src/backend/access/common/tidstore.c (REL_18_STABLE).
    pub const fn allocated(&self) -> u64 {
        self.allocated
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
            self.allocated += self.bump.allocate(HEADER + words * 8);
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
        if children == SIZE_CLASSES[class].fanout {
            self.allocate_node(class + 1);
            self.slabs[class].nodes -= 1;
            self.last[level].class += 1;
        }
    }

    /// Source: `SlabAlloc`, src/backend/utils/mmgr/slab.c (REL_18_STABLE), which fills the blocks
    /// that are there first, and keeps up to ten empty ones: since one node at a time is replaced,
    /// there are no more.
    fn allocate_node(&mut self, class: usize) {
        let SizeClass {
            block_bytes,
            nodes_per_block,
            ..
        } = SIZE_CLASSES[class];
        let slab = &mut self.slabs[class];
        if slab.nodes == slab.blocks * nodes_per_block {
            slab.blocks += 1;
            self.allocated += block_bytes;
        }
        slab.nodes += 1;
    }
}

/// A context that only adds. Source: src/backend/utils/mmgr/bump.c (REL_18_STABLE).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bump {
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
            free: Self::FIRST_BLOCK - Self::CONTEXT - Self::BLOCK_HEADER,
            next_block: Self::FIRST_BLOCK,
            max_block,
        }
    }

    /// Takes so many bytes, a multiple of 8; what had to be allocated for them.
    fn allocate(&mut self, bytes: u64) -> u64 {
        let mut allocated = 0;
        if self.free < bytes {
            allocated = self.next_block;
            self.next_block = (2 * self.next_block).min(self.max_block);
            self.free = allocated - Self::BLOCK_HEADER;
        }
        self.free -= bytes;
        allocated
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// A tree's nodes by class, counted from all keys at once.
    fn nodes(blocks: &[u32]) -> [u64; SIZE_CLASSES.len()] {
        let height = blocks.last().map_or(1, |&last| {
            (1..=4_u32)
                .find(|level| u64::from(last) < 1 << (SPAN * level))
                .unwrap()
        });
        let mut counts = [0; SIZE_CLASSES.len()];
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
                let fits = |class: &SizeClass| of_node.len() <= usize::from(class.fanout);
                counts[SIZE_CLASSES.iter().position(fits).unwrap()] += 1;
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
            let mut store = TidStore::new(64 << 10);
            for gap in gaps {
                let Some(block) = blocks.last().copied().unwrap_or(0_u32).checked_add(gap) else {
                    break;
                };
                blocks.push(block);
                store.set(block, 1, 1);
            }
            let counts = nodes(&blocks);
            let mut allocated = Bump::FIRST_BLOCK;
            for (class, count) in counts.into_iter().enumerate() {
                let slab = store.slabs[class];
                prop_assert_eq!(slab.nodes, count, "class {}", class);
                let per_block = SIZE_CLASSES[class].nodes_per_block;
                prop_assert!(slab.blocks >= count.div_ceil(per_block));
                prop_assert!(slab.blocks <= (count + 1).div_ceil(per_block));
                allocated += slab.blocks * SIZE_CLASSES[class].block_bytes;
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
            let mut store = TidStore::new(64 << 20);
            (0..pages).for_each(|page| store.set(page * gap, offsets, last_offset));
            assert_eq!(store.allocated(), bytes, "{pages} pages, each {gap}");
        }
    }
}
