/*
 * clustered_heap.h
 *		What the files of this extension share.
 */
#ifndef CLUSTERED_HEAP_H
#define CLUSTERED_HEAP_H

#include "access/htup.h"
#include "access/nbtree.h"
#include "storage/block.h"
#include "utils/rel.h"

typedef struct KeyKnown KeyKnown;
typedef struct LastLeaves LastLeaves;
typedef struct Walks Walks;

/* What a session remembers of a table that it inserts into; all of it may be wrong. */
typedef struct Known
{
	Oid			heap;
	Oid			index;			/* the one that is marked; InvalidOid: none */
	uint64		changes;		/* of the relation cache, when it was asked */
	bool		goes_on;		/* the row before came behind all others */
	int			looks_saved;	/* rows since the index was asked */
	int			looks;			/* into the index; at first they leave nothing behind */
	MemoryContext context;		/* of what follows, or NULL */
	KeyKnown   *key;			/* key.c; or NULL */
	LastLeaves *last_leaves;	/* leaf.c; or NULL */
	Walks	   *walks;			/* walk.c; or NULL */
} Known;

/* So many rows have to come before it is worth the memory. */
#define LOOKS_BEFORE_REMEMBERING 16

/* cluster_index.c */
extern void cluster_index_init(void);
extern Oid	clustered_index_oid(Relation heap);
extern bool index_gives_order(Relation heap, Relation index);
extern Known *known_of(Relation heap);
extern MemoryContext context_of_known(Known *known);
extern MemoryContext lasting_context_of_known(Known *known);
extern Relation open_known_index(Relation heap, const Known *known, LOCKMODE *lock);

/* key.c */
extern void key_of_index(Known *known, Relation index);
extern bool key_is_by_value(const Known *known);
extern bool key_has_last(const Known *known);
extern bool key_is_number(const Known *known, BTScanInsert key, uint64 *number);
extern uint32 key_group(const Known *known, Relation heap, BTScanInsert key);
extern int	key_compare(const Known *known, Relation index, BTScanInsert key, Page page,
						OffsetNumber offnum);
extern void key_of_row(const Known *known, Relation heap, HeapTuple row, BTScanInsert key);
extern bool key_goes_on(const Known *known, Relation heap, BTScanInsert key);
extern void key_keep_last(Known *known, Relation heap, BTScanInsert key, uint64 changes);
extern void key_forget_last(Known *known);

/* A table of access method heap, and one whose pages are laid out as heap's. */
extern bool is_heap(Relation relation);
extern bool has_heap_pages(Relation relation);

/* maps.c */

/* What the free space map counts in (FSM_CAT_STEP, freespace.c). */
#define MAP_STEP (BLCKSZ / 256)

extern Size map_room(Relation heap, BlockNumber block, Buffer *pinned);
extern bool maps_say_full(Relation heap, BlockNumber block, Size needed);

/* room.c */

/* Room that a row needs on a page. */
typedef struct Need
{
	Size		len;
	Size		reserve;		/* by fillfactor */
	bool		toasted;		/* len is what it is before TOAST */
} Need;

extern uint32 map_raises;

extern Need need_of_row(Relation heap, HeapTuple row);
extern Size room_for(const Need *need);
extern bool block_takes(Relation heap, BlockNumber block, const Need *need);
extern bool full_block_takes(Relation heap, BlockNumber block, const Need *need);
extern bool block_exists(Relation heap, BlockNumber block);
extern Size recorded_room(Relation heap, BlockNumber block, Buffer *pinned);
extern bool block_takes_or_is_told(Relation heap, BlockNumber block, const Need *need);
extern int	recorded_blocks_with_room(Relation heap, BlockNumber *blocks, int count,
									  const Need *need, BlockNumber *roomy, int most,
									  bool *is_whole);
extern BlockNumber block_for_latecomers(Relation heap, BlockNumber above, const Need *need);

/* leaf.c */

/* Where a row belongs by its key. */
typedef struct Place
{
	uint64		changes;		/* when the key was made; with others it holds no longer */
	Relation	index;			/* open, or NULL: nothing has been looked up */
	LOCKMODE	lock;			/* that goes when it is closed */
	BlockNumber neighbour;		/* page of the row before it, or else after */
	bool		at_end;			/* no row stands behind it */
	BlockNumber above;			/* in a run of equal keys: what an entry's page
								 * has to be above of to come to this leaf */
	Buffer		leaf;			/* its leaf of the index, pinned, not locked */
	BlockNumber leaf_block;
	bool		has_highest;
	BlockNumber highest;		/* page that a row of the leaf lies on, if remembered */
} Place;

extern bool place_of_key(Relation heap, Known *known, BTScanInsert key, Place *place);

/* walk.c */
extern bool walk_is_known(Known *known, Relation index, Page page, BlockNumber leaf,
						  BlockNumber *highest);
extern BlockNumber block_of_leaf(Relation heap, Known *known, const Place *place,
								 const Need *need);
extern void walk_told_row(Known *known, const Place *place, BlockNumber block, bool was_empty);
extern void walk_got_row(Known *known, Relation heap);

/* place.c */
typedef struct Batch Batch;

extern Batch *batch_begin(int row_count);
extern bool place_row(Relation heap, HeapTuple row, Batch *batch);
extern bool row_goes_to_end(Relation heap, HeapTuple row);
extern void place_version(Relation heap, HeapTuple row, ItemPointer old);

/* sort.c */
extern void sort_init(void);

/* access_method.c */
extern bool is_clustered_heap(Relation relation);
extern void access_method_init(void);

#endif							/* CLUSTERED_HEAP_H */
