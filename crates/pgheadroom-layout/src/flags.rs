//! Flags in the headers of pages and tuples, for whoever reads pages and whoever makes them.
//!
//! Source: src/include/access/htup_details.h, itup.h, nbtree.h (REL_15_STABLE to REL_18_STABLE);
//! each has PostgreSQL's name.

/// `t_infomask`: the row has NULLs.
pub const HEAP_HASNULL: u16 = 0x0001;
/// `t_infomask`: the row has values of variable length.
pub const HEAP_HASVARWIDTH: u16 = 0x0002;
/// `t_infomask`: locked for a foreign key.
pub const HEAP_XMAX_KEYSHR_LOCK: u16 = 0x0010;
/// `t_infomask`: locked exclusively.
pub const HEAP_XMAX_EXCL_LOCK: u16 = 0x0040;
/// `t_infomask`: xmax has locked the row and no more.
pub const HEAP_XMAX_LOCK_ONLY: u16 = 0x0080;
/// `t_infomask`: xmin has committed.
pub const HEAP_XMIN_COMMITTED: u16 = 0x0100;
/// `t_infomask`: xmin is invalid or aborted.
pub const HEAP_XMIN_INVALID: u16 = 0x0200;
/// `t_infomask`: frozen.
pub const HEAP_XMIN_FROZEN: u16 = HEAP_XMIN_COMMITTED | HEAP_XMIN_INVALID;
/// `t_infomask`: xmax has committed.
pub const HEAP_XMAX_COMMITTED: u16 = 0x0400;
/// `t_infomask`: xmax is invalid or aborted.
pub const HEAP_XMAX_INVALID: u16 = 0x0800;
/// `t_infomask`: xmax is a multixact.
pub const HEAP_XMAX_IS_MULTI: u16 = 0x1000;
/// `t_infomask`: an UPDATE has made the version.
pub const HEAP_UPDATED: u16 = 0x2000;
/// `t_infomask2`: the number of columns.
pub const HEAP_NATTS_MASK: u16 = 0x07FF;
/// `t_infomask2`: key columns were changed, or the row is deleted.
pub const HEAP_KEYS_UPDATED: u16 = 0x2000;
/// `t_infomask2`: its next version is heap-only.
pub const HEAP_HOT_UPDATED: u16 = 0x4000;
/// `t_infomask2`: no index points to it.
pub const HEAP_ONLY_TUPLE: u16 = 0x8000;

/// `btpo_flags`: a leaf.
pub const BTP_LEAF: u16 = 1;
/// `btpo_flags`: the root.
pub const BTP_ROOT: u16 = 2;
/// `t_info` of an index tuple: its TID is something else.
pub const INDEX_ALT_TID_MASK: u16 = 0x2000;
/// `t_info` of an index tuple: it has values of variable length.
pub const INDEX_VAR_MASK: u16 = 0x4000;
/// `t_info` of an index tuple: it has NULLs.
pub const INDEX_NULL_MASK: u16 = 0x8000;
/// In the offset of a pivot's TID: a heap TID is its last column.
pub const BT_PIVOT_HEAP_TID_ATTR: u16 = 0x1000;
/// In the offset of a tuple's TID: it is a posting list.
pub const BT_IS_POSTING: u16 = 0x2000;
