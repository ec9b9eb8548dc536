/*
 * clustered_heap.h
 *		What the files of this extension share.
 */
#ifndef CLUSTERED_HEAP_H
#define CLUSTERED_HEAP_H

#include "access/htup.h"
#include "storage/block.h"
#include "utils/rel.h"

/* cluster_index.c */
extern void cluster_index_init(void);
extern Oid	clustered_index_oid(Relation heap);
extern bool index_gives_order(Relation heap, Relation index);
extern Relation open_cluster_index(Relation heap);

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
extern BlockNumber highest_with_room(Relation heap, BlockNumber *blocks, int count,
									 const Need *need);
extern BlockNumber block_for_latecomers(Relation heap, BlockNumber above, const Need *need);

/* place.c */
typedef struct Batch Batch;

extern Batch *batch_begin(int row_count);
extern bool place_row(Relation heap, Relation index, HeapTuple row, Batch *batch);
extern bool row_goes_to_end(Relation heap, Relation index, HeapTuple row);
extern void place_version(Relation heap, HeapTuple row, ItemPointer old);

/* sort.c */
extern void sort_init(void);

/* access_method.c */
extern bool is_clustered_heap(Relation relation);
extern void access_method_init(void);

#endif							/* CLUSTERED_HEAP_H */
