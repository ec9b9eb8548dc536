/*
 * access_method.c
 *		The table access method clustered_heap: heap, but for where a new row
 *		goes.
 *
 * The routine is a copy of heap's. What stands on disk, in the write-ahead log
 * and in the free space map is heap's own, so ALTER TABLE ... SET ACCESS METHOD
 * has nothing to convert, though it rewrites the table. Beside cluster_place()
 * it places the rows of COPY, and versions of rows that leave their page.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "catalog/pg_am.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "storage/ipc.h"
#include "utils/inval.h"
#include "utils/rel.h"

#include "clustered_heap.h"
#include "compat.h"

PG_FUNCTION_INFO_V1(clustered_heap_handler);

static const TableAmRoutine *heap_routine = NULL;
static TableAmRoutine routine;

/*
 * A table that heap's functions read as heap. They do so by heap_getnext, which
 * wants the routine itself and no copy of it. A rebuild of the relation cache's
 * entry puts ours back, so the callback, which comes after the rebuild, sets
 * heap's again. Functions of an index's expressions may build others meanwhile.
 */
typedef struct ReadAsHeap
{
	Relation	heap;
	struct ReadAsHeap *outer;
} ReadAsHeap;

static ReadAsHeap *read_as_heap = NULL;

static void
keep_reading_as_heap(Datum arg, Oid relid)
{
	/* A session that dies gives its tables back, and they stay in the list. */
	if (proc_exit_inprogress)
		return;
	for (ReadAsHeap *each = read_as_heap; each != NULL; each = each->outer)
		if (!OidIsValid(relid) || RelationGetRelid(each->heap) == relid)
			each->heap->rd_tableam = heap_routine;
}

bool
is_clustered_heap(Relation relation)
{
	return heap_routine != NULL && relation->rd_tableam == &routine;
}

/* Whether a page was chosen for the row that is about to be inserted. */
static bool
place_slot(Relation heap, TupleTableSlot *slot)
{
	bool		should_free;
	HeapTuple	row = ExecFetchSlotHeapTuple(slot, true, &should_free);
	bool		placed = place_row(heap, row, NULL);

	if (should_free)
		heap_freetuple(row);
	return placed;
}

/* A page that a bulk insert has in hand would go before the hint (hio.c). */
static void
clustered_tuple_insert(Relation heap, TupleTableSlot *slot, CommandId cid,
					   InsertOptions options, BulkInsertState bistate)
{
	if (place_slot(heap, slot))
		bistate = NULL;
	heap_routine->tuple_insert(heap, slot, cid, options, bistate);
}

static void
clustered_tuple_insert_speculative(Relation heap, TupleTableSlot *slot,
								   CommandId cid, InsertOptions options,
								   BulkInsertState bistate, uint32 token)
{
	if (place_slot(heap, slot))
		bistate = NULL;
	heap_routine->tuple_insert_speculative(heap, slot, cid, options, bistate, token);
}

static bool
all_go_to_end(Relation heap, TupleTableSlot **slots, int count)
{
	for (int i = 0; i < count; i++)
	{
		bool		should_free;
		HeapTuple	row = ExecFetchSlotHeapTuple(slots[i], true, &should_free);
		bool		to_end = row_goes_to_end(heap, row);

		if (should_free)
			heap_freetuple(row);
		if (!to_end)
			return false;
	}
	return true;
}

/*
 * COPY's batches. Where all of its rows come behind those that are there, heap
 * inserts them as it does, page by page; else one by one, each in its place.
 */
static void
clustered_multi_insert(Relation heap, TupleTableSlot **slots, int count,
					   CommandId cid, InsertOptions options,
					   BulkInsertState bistate)
{
	Batch	   *batch;

	/* COPY FREEZE is for tables that are being filled. */
	if ((options & HEAP_INSERT_FROZEN) != 0 || all_go_to_end(heap, slots, count))
	{
		heap_routine->multi_insert(heap, slots, count, cid, options, bistate);
		return;
	}
	batch = batch_begin(count);
	for (int i = 0; i < count; i++)
	{
		bool		should_free;
		HeapTuple	row = ExecFetchSlotHeapTuple(slots[i], true, &should_free);
		bool		placed = place_row(heap, row, batch);

		if (should_free)
			heap_freetuple(row);
		heap_routine->tuple_insert(heap, slots[i], cid, options, placed ? NULL : bistate);
	}
	pfree(batch);
}

static TM_Result
clustered_tuple_update(TUPLE_UPDATE_PARAMETERS)
{
	bool		should_free;
	HeapTuple	row = ExecFetchSlotHeapTuple(slot, true, &should_free);

	place_version(heap, row, otid);
	if (should_free)
		heap_freetuple(row);
	return heap_routine->tuple_update(TUPLE_UPDATE_ARGUMENTS);
}

static double
clustered_index_build_range_scan(Relation heap, Relation index,
								 struct IndexInfo *info, bool allow_sync,
								 bool anyvisible, bool progress,
								 BlockNumber start, BlockNumber count,
								 IndexBuildCallback callback, void *state,
								 TableScanDesc scan)
{
	ReadAsHeap	reading = {heap, read_as_heap};
	double		rows = 0;

	PG_TRY();
	{
		read_as_heap = &reading;
		heap->rd_tableam = heap_routine;
		rows = heap_routine->index_build_range_scan(heap, index, info, allow_sync,
													anyvisible, progress, start, count,
													callback, state, scan);
	}
	PG_FINALLY();
	{
		read_as_heap = reading.outer;
		heap->rd_tableam = &routine;
	}
	PG_END_TRY();
	return rows;
}

static void
clustered_index_validate_scan(Relation heap, Relation index,
							  struct IndexInfo *info, Snapshot snapshot,
							  struct ValidateIndexState *state)
{
	ReadAsHeap	reading = {heap, read_as_heap};

	PG_TRY();
	{
		read_as_heap = &reading;
		heap->rd_tableam = heap_routine;
		heap_routine->index_validate_scan(heap, index, info, snapshot, state);
	}
	PG_FINALLY();
	{
		read_as_heap = reading.outer;
		heap->rd_tableam = &routine;
	}
	PG_END_TRY();
}

/* Heap's function names the table's own access method. */
static Oid
clustered_relation_toast_am(Relation heap)
{
	return HEAP_TABLE_AM_OID;
}

Datum
clustered_heap_handler(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(&routine);
}

void
access_method_init(void)
{
	heap_routine = GetHeapamTableAmRoutine();
	routine = *heap_routine;
	routine.tuple_insert = clustered_tuple_insert;
	routine.tuple_insert_speculative = clustered_tuple_insert_speculative;
	routine.multi_insert = clustered_multi_insert;
	routine.tuple_update = clustered_tuple_update;
	routine.index_build_range_scan = clustered_index_build_range_scan;
	routine.index_validate_scan = clustered_index_validate_scan;
	routine.relation_toast_am = clustered_relation_toast_am;
	CacheRegisterRelcacheCallback(keep_reading_as_heap, (Datum) 0);
}
