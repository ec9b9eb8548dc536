/*
 * clustered_heap.h
 *		What the files of this extension share.
 */
#ifndef CLUSTERED_HEAP_H
#define CLUSTERED_HEAP_H

#include "utils/rel.h"

/* cluster_index.c */
extern Oid	clustered_index_oid(Relation heap);
extern bool index_gives_order(Relation heap, Relation index);

/* sort.c */
extern void sort_init(void);

/* A table whose rows and pages are those of plain heap. */
extern bool is_plain_heap(Relation relation);

#endif							/* CLUSTERED_HEAP_H */
