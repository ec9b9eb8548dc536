/*
 * quality.c
 *		cluster_quality(): how well a table's rows lie in an index's order.
 *
 * Two passes under one snapshot. The table is read from its first page to its
 * last: how many rows it has, and how many pages they would fill if they were
 * written anew. Then the index is read from its first key to its last: on how
 * many different pages of the table the rows of one leaf lie, and those of
 * 1,000 keys in a row. pg_stats.correlation does not tell: it is near 0 for a
 * table of a thousand streams, each of which is in perfect order.
 */
#include "postgres.h"

#include <math.h>

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "clustered_heap.h"
#include "compat.h"

PG_FUNCTION_INFO_V1(cluster_quality);

#define RANGE_ROWS 1000

/* Rows that follow each other in the index, and the pages they lie on. */
typedef struct RowGroup
{
	BlockNumber *blocks;		/* of the rows so far, not yet distinct */
	int			row_count;
	int			capacity;
} RowGroup;

/* Groups that are complete, summed up. */
typedef struct GroupSums
{
	int64		group_count;
	int64		row_count;
	int64		page_count;		/* different pages of each, added up */
	int			pages_max;
} GroupSums;

/* Covariance of two sequences, by Welford's recurrence: one pass, no overflow. */
typedef struct Covariance
{
	double		n;
	double		mean_x;
	double		mean_y;
	double		xx;
	double		yy;
	double		xy;
} Covariance;

/* What one pass over the table tells. */
typedef struct HeapSums
{
	int64		row_count;
	int64		pages_ideal;
} HeapSums;

static int
compare_blocks(const void *left, const void *right)
{
	BlockNumber a = *(const BlockNumber *) left;
	BlockNumber b = *(const BlockNumber *) right;

	return (a > b) - (a < b);
}

static void
group_add(RowGroup *group, BlockNumber block)
{
	if (group->row_count == group->capacity)
	{
		group->capacity = Max(2 * group->capacity, RANGE_ROWS);
		if (group->blocks == NULL)
			group->blocks = palloc_array(BlockNumber, group->capacity);
		else
			group->blocks = repalloc_array(group->blocks, BlockNumber, group->capacity);
	}
	group->blocks[group->row_count++] = block;
}

/* Adds the group to the sums, and empties it. */
static void
group_close(RowGroup *group, GroupSums *sums)
{
	int			pages = 0;

	if (group->row_count == 0)
		return;
	qsort(group->blocks, group->row_count, sizeof(BlockNumber), compare_blocks);
	for (int i = 0; i < group->row_count; i++)
		if (i == 0 || group->blocks[i] != group->blocks[i - 1])
			pages++;
	sums->group_count++;
	sums->row_count += group->row_count;
	sums->page_count += pages;
	sums->pages_max = Max(sums->pages_max, pages);
	group->row_count = 0;
}

static void
covariance_add(Covariance *sums, double x, double y)
{
	double		dx = x - sums->mean_x;
	double		dy = y - sums->mean_y;

	sums->n += 1;
	sums->mean_x += dx / sums->n;
	sums->mean_y += dy / sums->n;
	sums->xx += dx * (x - sums->mean_x);
	sums->yy += dy * (y - sums->mean_y);
	sums->xy += dx * (y - sums->mean_y);
}

/*
 * Counts the visible rows, and the pages that they fill when they are written
 * one after the other into an empty table of this fillfactor: by the rule of
 * raw_heap_insert, rewriteheap.c, which CLUSTER writes by.
 */
static HeapSums
read_heap(Relation heap, Snapshot snapshot)
{
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	/* From its first page, and not from where another scan is. */
	TableScanDesc scan = table_beginscan_strat(heap, snapshot, 0, NULL, true, false);
	Size		reserve = RelationGetTargetPageFreeSpace(heap, HEAP_DEFAULT_FILLFACTOR);
	Size		page_bytes = BLCKSZ - SizeOfPageHeaderData;
	Size		used = 0;
	HeapSums	sums = {0, 0};

	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		should_free;
		HeapTuple	tuple = ExecFetchSlotHeapTuple(slot, false, &should_free);
		Size		len = MAXALIGN(tuple->t_len);

		CHECK_FOR_INTERRUPTS();
		if (should_free)
			heap_freetuple(tuple);
		/* Each row needs its line pointer too. */
		if (sums.pages_ideal == 0 ||
			used + sizeof(ItemIdData) + len + reserve > page_bytes)
		{
			sums.pages_ideal++;
			used = 0;
		}
		used += sizeof(ItemIdData) + len;
		sums.row_count++;
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	return sums;
}

/*
 * Reads the visible rows in the index's order.
 *
 * The leaf that a row's entry is on is the one that the scan stands on. (The
 * public interface does not tell; amcheck and others read it there too.)
 */
static void
read_index(Relation heap, Relation index, Snapshot snapshot,
		   GroupSums *leaves, GroupSums *ranges, Covariance *order)
{
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	IndexScanDesc scan = compat_index_beginscan(heap, index, snapshot);
	BTScanOpaque position = (BTScanOpaque) scan->opaque;
	RowGroup	leaf = {NULL, 0, 0};
	RowGroup	range = {NULL, 0, 0};
	BlockNumber leaf_block = InvalidBlockNumber;
	Buffer		vmbuffer = InvalidBuffer;
	ItemPointer tid;
	double		place = 0;

	/*
	 * Without this nbtree lets go of the leaf, and VACUUM may meanwhile free
	 * the line pointers that its entries name, for rows that the snapshot does
	 * not see, and call their pages visible to all.
	 */
	scan->xs_want_itup = true;
	index_rescan(scan, NULL, 0, NULL, 0);
	while ((tid = index_getnext_tid(scan, ForwardScanDirection)) != NULL)
	{
		BlockNumber block = ItemPointerGetBlockNumber(tid);

		CHECK_FOR_INTERRUPTS();
		/* As an index-only scan does it (IndexOnlyNext, nodeIndexonlyscan.c). */
		if (!VM_ALL_VISIBLE(heap, block, &vmbuffer))
		{
			if (!index_fetch_heap(scan, slot))
				continue;
			ExecClearTuple(slot);
		}
		if (position->currPos.currPage != leaf_block)
		{
			group_close(&leaf, leaves);
			leaf_block = position->currPos.currPage;
		}
		group_add(&leaf, block);
		group_add(&range, block);
		if (range.row_count == RANGE_ROWS)
			group_close(&range, ranges);
		covariance_add(order, place, block);
		place += 1;
	}
	group_close(&leaf, leaves);
	/* A last range that is not whole counts where there is no other. */
	if (ranges->group_count == 0)
		group_close(&range, ranges);
	if (BufferIsValid(vmbuffer))
		ReleaseBuffer(vmbuffer);
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
}

/*
 * Pages that the groups would touch on average if the table were written anew
 * in this order: rows that follow each other begin anywhere on a page, so that
 * n of them touch 1 + (n - 1) / d pages of d rows.
 */
static double
ideal_pages(const GroupSums *sums, const HeapSums *heap)
{
	double		n = (double) sums->row_count / (double) sums->group_count;
	double		density = (double) heap->row_count / (double) heap->pages_ideal;

	return Min(1 + (n - 1) / density, (double) heap->pages_ideal);
}

/* Opens the table; errors say what cannot be measured. */
static Relation
open_table(Oid relid)
{
	Relation	heap = relation_open(relid, AccessShareLock);

	if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		!has_privs_of_role(GetUserId(), ROLE_PG_STAT_SCAN_TABLES))
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(heap->rd_rel->relkind),
					   RelationGetRelationName(heap));
	if (heap->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned table, which has no rows of its own",
						RelationGetRelationName(heap)),
				 errhint("Call cluster_quality() for each of its partitions (pg_partition_tree).")));
	if (!has_heap_pages(heap))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table or materialized view of access method heap or clustered_heap",
						RelationGetRelationName(heap))));
	if (RELATION_IS_OTHER_TEMP(heap))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("\"%s\" is a temporary table of another session",
						RelationGetRelationName(heap))));
	/* A standby has none of its rows, and may lack its files. */
	if (heap->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED && RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("\"%s\" is an unlogged table, whose rows are not there during recovery",
						RelationGetRelationName(heap)),
				 errhint("Call cluster_quality() on the primary.")));
	return heap;
}

/* Opens the index that was named, or else the marked one. */
static Relation
open_index(Relation heap, Oid named)
{
	Oid			relid = OidIsValid(named) ? named : clustered_index_oid(heap);
	Relation	index;

	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("no index of table \"%s\" is marked for clustering",
						RelationGetRelationName(heap)),
				 errhint("Mark one by ALTER TABLE ... CLUSTER ON, or name one as second argument.")));
	index = relation_open(relid, AccessShareLock);
	if (index->rd_rel->relkind != RELKIND_INDEX ||
		index->rd_index->indrelid != RelationGetRelid(heap))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index of table \"%s\"",
						RelationGetRelationName(index), RelationGetRelationName(heap))));
	if (index->rd_rel->relam != BTREE_AM_OID)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" is not a B-tree, so it gives rows no order",
						RelationGetRelationName(index))));
	if (!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("index \"%s\" is partial, so it gives only some rows an order",
						RelationGetRelationName(index))));
	if (!index->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid", RelationGetRelationName(index)),
				 errhint("REINDEX INDEX CONCURRENTLY builds it anew.")));
	/* As the planner leaves it out (get_relation_info, plancat.c). */
	if (index->rd_index->indcheckxmin &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data),
							   TransactionXmin))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" was built after this transaction's snapshot and lacks rows that it sees",
						RelationGetRelationName(index)),
				 errhint("Try again when transactions that were open at that time have ended.")));
	return index;
}

Datum
cluster_quality(PG_FUNCTION_ARGS)
{
	Relation	heap;
	Relation	index;
	Snapshot	snapshot;
	TupleDesc	desc;
	Datum		values[11] = {0};
	bool		nulls[11] = {0};
	HeapSums	rows;
	GroupSums	leaves = {0, 0, 0, 0};
	GroupSums	ranges = {0, 0, 0, 0};
	Covariance	order = {0, 0, 0, 0, 0, 0};
	bool		any_rows;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (desc->natts != lengthof(values))
		elog(ERROR, "cluster_quality() has %d columns here, and %d in the library: "
			 "ALTER EXTENSION clustered_heap UPDATE is missing",
			 desc->natts, (int) lengthof(values));

	heap = open_table(PG_GETARG_OID(0));
	index = open_index(heap, PG_ARGISNULL(1) ? InvalidOid : PG_GETARG_OID(1));

	snapshot = RegisterSnapshot(GetActiveSnapshot());
	rows = read_heap(heap, snapshot);
	read_index(heap, index, snapshot, &leaves, &ranges, &order);
	UnregisterSnapshot(snapshot);

	values[0] = ObjectIdGetDatum(RelationGetRelid(index));
	values[1] = Int64GetDatum(rows.row_count);
	values[2] = Int64GetDatum(RelationGetNumberOfBlocks(heap));
	values[3] = Int64GetDatum(rows.pages_ideal);
	values[4] = Int64GetDatum(leaves.group_count);
	/* Without rows there is nothing to take a mean of. */
	any_rows = leaves.group_count > 0 && rows.pages_ideal > 0;
	for (int i = 5; i < lengthof(nulls); i++)
		nulls[i] = !any_rows;
	if (any_rows)
	{
		values[5] = Float8GetDatum((double) leaves.page_count / leaves.group_count);
		values[6] = Float8GetDatum(ideal_pages(&leaves, &rows));
		values[7] = Float8GetDatum((double) ranges.page_count / ranges.group_count);
		values[8] = Float8GetDatum(ideal_pages(&ranges, &rows));
		values[9] = Int32GetDatum(ranges.pages_max);
		/* One page, or one row, is in order and has no correlation. */
		nulls[10] = order.xx == 0 || order.yy == 0;
		if (!nulls[10])
			values[10] = Float8GetDatum(order.xy / sqrt(order.xx * order.yy));
	}

	relation_close(index, AccessShareLock);
	relation_close(heap, AccessShareLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
