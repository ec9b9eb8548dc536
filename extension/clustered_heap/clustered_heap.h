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

/* What a session remembers of a table that it inserts into; all of it may be wrong. */
typedef struct Known
{
	Oid			heap;
	Oid			index;			/* the one that is marked; InvalidOid: none */
	uint64		changes;		/* of the relation cache, when it was asked */
	bool		goes_on;		/* the row before came behind all others */
	BlockNumber leaf;			/* of the index, where the row before belongs */
	bool		leaf_again;		/* where the one before that did, or next to it */

	/* key.c; none of it is there while empty_key is NULL */
	MemoryContext context;
	BTScanInsert empty_key;		/* the index's, with NULLs for values */
	bool		by_value;		/* all of its columns are */
	AttrNumber	columns[INDEX_MAX_KEYS];	/* of the table */
	bool		has_last;
	int			looks_saved;	/* since the index was asked */
	bool		last_is_null[INDEX_MAX_KEYS];
	Datum		last[INDEX_MAX_KEYS];
	/* Values that are passed by reference. With longer ones no key is kept. */
	char		last_bytes[256] pg_attribute_aligned(MAXIMUM_ALIGNOF);
} Known;

/* cluster_index.c */
extern void cluster_index_init(void);
extern Oid	clustered_index_oid(Relation heap);
extern bool index_gives_order(Relation heap, Relation index);
extern Known *known_of(Relation heap);
extern Relation open_known_index(Relation heap, const Known *known);

/* key.c */
extern void key_of_index(Known *known, Relation index);
extern void key_of_row(const Known *known, Relation heap, HeapTuple row, BTScanInsert key);
extern bool key_goes_on(const Known *known, Relation heap, BTScanInsert key);
extern void key_keep_last(Known *known, Relation heap, BTScanInsert key, uint64 changes);
extern void key_forget_last(Known *known);

/* A table of access method heap, and one whose pages are laid out as heap's. */
extern bool is_heap(Relation relation);
extern bool has_heap_pages(Relation relation);

/* room.c */

/* Room that a row needs on a page. */
typedef struct Need
{
	Size		len;
	Size		reserve;		/* by fillfactor */
	bool		toasted;		/* len is what it is before TOAST */
} Need;

extern Need need_of_row(Relation heap, HeapTuple row);
extern bool block_takes(Relation heap, BlockNumber block, const Need *need);
extern bool block_exists(Relation heap, BlockNumber block);
extern BlockNumber highest_recorded_with_room(Relation heap, BlockNumber *blocks, int count,
											  const Need *need);
extern BlockNumber block_for_latecomers(Relation heap, BlockNumber above, const Need *need);

/* place.c */
typedef struct Batch Batch;

extern Batch *batch_begin(int row_count);
extern bool place_row(Relation heap, HeapTuple row, Batch *batch);
extern bool row_goes_to_end(Relation heap, HeapTuple row);
extern void rows_come_unseen(Relation heap);
extern void place_version(Relation heap, HeapTuple row, ItemPointer old);

/* sort.c */
extern void sort_init(void);

/* access_method.c */
extern bool is_clustered_heap(Relation relation);
extern void access_method_init(void);

#endif							/* CLUSTERED_HEAP_H */
