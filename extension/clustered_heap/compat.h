/*
 * compat.h
 *		What differs between PostgreSQL 15 and 19, and nothing else.
 *
 * Every other file is written for all versions alike: no other file asks for
 * PG_VERSION_NUM.
 */
#ifndef CLUSTERED_HEAP_COMPAT_H
#define CLUSTERED_HEAP_COMPAT_H

#include "access/genam.h"
#include "access/heapam.h"
#include "access/nbtree.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "optimizer/planner.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "clustered_heap is for PostgreSQL 15 to 19"
#endif

/* 18 added the instrumentation of a scan, 19 its flags. */
static inline IndexScanDesc
compat_index_beginscan(Relation heap, Relation index, Snapshot snapshot)
{
#if PG_VERSION_NUM >= 190000
	return index_beginscan(heap, index, snapshot, NULL, 0, 0, SO_NONE);
#elif PG_VERSION_NUM >= 180000
	return index_beginscan(heap, index, snapshot, NULL, 0, 0);
#else
	return index_beginscan(heap, index, snapshot, 0, 0);
#endif
}

/*
 * The leaf page where the key belongs, pinned and locked for reading, or
 * InvalidBuffer where the index is empty. 16 added the table, 17 took away the
 * snapshot, 19 added whether a stack of the descent is wanted.
 */
static inline Buffer
compat_bt_search(Relation index, Relation heap, BTScanInsert key)
{
	Buffer		leaf;

#if PG_VERSION_NUM >= 190000
	(void) _bt_search(index, heap, key, &leaf, BT_READ, false);
#elif PG_VERSION_NUM >= 170000
	_bt_freestack(_bt_search(index, heap, key, &leaf, BT_READ));
#elif PG_VERSION_NUM >= 160000
	_bt_freestack(_bt_search(index, heap, key, &leaf, BT_READ, NULL));
#else
	_bt_freestack(_bt_search(index, key, &leaf, BT_READ, NULL));
#endif
	return leaf;
}

/* Prepares comparing the values of an index's column; 18 asks for no strategy. */
static inline void
compat_prepare_sort(Relation index, bool is_down, SortSupport sort)
{
#if PG_VERSION_NUM >= 180000
	PrepareSortSupportFromIndexRel(index, is_down, sort);
#else
	PrepareSortSupportFromIndexRel(index,
								   is_down ? BTGreaterStrategyNumber : BTLessStrategyNumber,
								   sort);
#endif
}

/* Whether this session has that lock on a relation of its database; 17 asks for stronger ones too. */
static inline bool
compat_relation_is_locked(Oid relid, LOCKMODE mode)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
#if PG_VERSION_NUM >= 170000
	return LockHeldByMe(&tag, mode, false);
#else
	return LockHeldByMe(&tag, mode);
#endif
}

/*
 * Prunes the page if it is full and that is quick to have; the caller has a
 * pin on it and no lock. 19 may set the visibility map there, but only for
 * statements that read.
 */
static inline void
compat_heap_page_prune_opt(Relation heap, Buffer buffer)
{
#if PG_VERSION_NUM >= 190000
	Buffer		vmbuffer = InvalidBuffer;

	heap_page_prune_opt(heap, buffer, &vmbuffer, false);
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
#else
	heap_page_prune_opt(heap, buffer);
#endif
}

/*
 * Whether a page that the visibility map names is as VACUUM told the free space
 * map. 19 sets the one while statements read, and does not tell the other.
 */
#define compat_maps_agree (PG_VERSION_NUM < 190000)

/*
 * Adds a page of zeros at the end of the table, which whoever puts the first
 * row there initialises (RelationGetBufferForTuple, hio.c). 16 took the lock
 * into the function that extends.
 */
static inline BlockNumber
compat_add_page(Relation heap)
{
	Buffer		buffer;
	BlockNumber block;

#if PG_VERSION_NUM >= 160000
	buffer = ExtendBufferedRel(BMR_REL(heap), MAIN_FORKNUM, NULL, 0);
#else
	bool		shared = !RELATION_IS_LOCAL(heap);

	if (shared)
		LockRelationForExtension(heap, ExclusiveLock);
	buffer = ReadBuffer(heap, P_NEW);
	if (shared)
		UnlockRelationForExtension(heap, ExclusiveLock);
#endif
	block = BufferGetBlockNumber(buffer);
	ReleaseBuffer(buffer);
	return block;
}

/* Whether a page is in that buffer still, which is pinned then; 16 has locators for nodes. */
static inline bool
compat_read_recent_buffer(Relation relation, ForkNumber fork, BlockNumber block, Buffer buffer)
{
#if PG_VERSION_NUM >= 160000
	return BufferIsValid(buffer) &&
		ReadRecentBuffer(relation->rd_locator, fork, block, buffer);
#else
	return BufferIsValid(buffer) &&
		ReadRecentBuffer(relation->rd_node, fork, block, buffer);
#endif
}

/* Options of an insert became unsigned in 19. */
#if PG_VERSION_NUM >= 190000
typedef uint32 InsertOptions;
#else
typedef int InsertOptions;
#endif

/*
 * The arguments of tuple_update: 16 made a word of whether indexes are to be
 * updated, 19 added options.
 */
#if PG_VERSION_NUM >= 190000
#define TUPLE_UPDATE_PARAMETERS \
	Relation heap, ItemPointer otid, TupleTableSlot *slot, CommandId cid, \
	uint32 options, Snapshot snapshot, Snapshot crosscheck, bool wait, \
	TM_FailureData *tmfd, LockTupleMode *lockmode, TU_UpdateIndexes *update_indexes
#define TUPLE_UPDATE_ARGUMENTS \
	heap, otid, slot, cid, options, snapshot, crosscheck, wait, tmfd, lockmode, \
	update_indexes
#else
#if PG_VERSION_NUM >= 160000
#define TUPLE_UPDATE_PARAMETERS \
	Relation heap, ItemPointer otid, TupleTableSlot *slot, CommandId cid, \
	Snapshot snapshot, Snapshot crosscheck, bool wait, TM_FailureData *tmfd, \
	LockTupleMode *lockmode, TU_UpdateIndexes *update_indexes
#else
#define TUPLE_UPDATE_PARAMETERS \
	Relation heap, ItemPointer otid, TupleTableSlot *slot, CommandId cid, \
	Snapshot snapshot, Snapshot crosscheck, bool wait, TM_FailureData *tmfd, \
	LockTupleMode *lockmode, bool *update_indexes
#endif
#define TUPLE_UPDATE_ARGUMENTS \
	heap, otid, slot, cid, snapshot, crosscheck, wait, tmfd, lockmode, \
	update_indexes
#endif

/* The arguments of planner_hook; 19 added EXPLAIN's state. */
#if PG_VERSION_NUM >= 190000
#define PLANNER_PARAMETERS \
	Query *parse, const char *query_string, int cursorOptions, \
	ParamListInfo boundParams, ExplainState *es
#define PLANNER_ARGUMENTS parse, query_string, cursorOptions, boundParams, es
#else
#define PLANNER_PARAMETERS \
	Query *parse, const char *query_string, int cursorOptions, \
	ParamListInfo boundParams
#define PLANNER_ARGUMENTS parse, query_string, cursorOptions, boundParams
#endif

#endif							/* CLUSTERED_HEAP_COMPAT_H */
