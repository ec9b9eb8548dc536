/*
 * cluster_index.c
 *		Which index a table's rows are to lie in the order of.
 *
 * It is the one that CLUSTER or ALTER TABLE ... CLUSTER ON has marked
 * (pg_index.indisclustered). Only a B-tree over plain columns of all rows
 * gives every row a place before it is inserted.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/relcache.h"
#include "utils/syscache.h"

#include "clustered_heap.h"
#include "compat.h"

/*
 * What is known of each table that this session has inserted into, by its Oid.
 *
 * A mark that is set or taken away tells other sessions of the index alone, so
 * any change that the relation cache hears of makes us ask again: that takes a
 * microsecond or two.
 */
static HTAB *known_tables = NULL;
#define CONTEXTS 64				/* arbitrary: tables that a session fills by turns */

static uint64 changes = 1;

/*
 * The index that is marked, or InvalidOid.
 *
 * The caller holds a lock on the table. An index can still be dropped
 * concurrently or lose its mark, so whoever opens it asks again.
 */
Oid
clustered_index_oid(Relation heap)
{
	List	   *indexes = RelationGetIndexList(heap);
	ListCell   *cell;
	Oid			found = InvalidOid;

	foreach(cell, indexes)
	{
		Oid			index = lfirst_oid(cell);
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));

		if (!HeapTupleIsValid(tuple))
			continue;
		if (((Form_pg_index) GETSTRUCT(tuple))->indisclustered)
			found = index;
		ReleaseSysCache(tuple);
		if (OidIsValid(found))
			break;
	}
	list_free(indexes);
	return found;
}

/*
 * Whether an index of this table is whole, and gives each row a place by
 * values that a BEFORE trigger has in hand: no predicate, no expressions, and
 * no generated columns, which are computed after those triggers.
 */
bool
index_gives_order(Relation heap, Relation index)
{
	Form_pg_index form = index->rd_index;
	TupleDesc	desc = RelationGetDescr(heap);

	if (form == NULL || form->indrelid != RelationGetRelid(heap) ||
		index->rd_rel->relkind != RELKIND_INDEX ||
		index->rd_rel->relam != BTREE_AM_OID ||
		!form->indisvalid || !form->indisready || !form->indislive ||
		!heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL))
		return false;
	for (int i = 0; i < form->indnkeyatts; i++)
	{
		AttrNumber	attnum = form->indkey.values[i];

		if (attnum <= 0 || TupleDescAttr(desc, attnum - 1)->attgenerated != '\0')
			return false;
	}
	return true;
}

/* Forgets what is known by an index, but for what is noted of its file (leaf.c). */
static void
forget(Known *known)
{
	known->key = NULL;
	known->walks = NULL;
	if (known->context != NULL)
		MemoryContextResetOnly(known->context);
}

/* The memory context of what is known by the index. A few tables have one at a time. */
MemoryContext
context_of_known(Known *known)
{
	static int	count = 0;

	if (known->context != NULL)
		return known->context;
	if (count == CONTEXTS)
	{
		HASH_SEQ_STATUS tables;
		Known	   *each;

		hash_seq_init(&tables, known_tables);
		while ((each = hash_seq_search(&tables)) != NULL)
		{
			forget(each);
			each->last_leaves = NULL;
			if (each->context != NULL)
				MemoryContextDelete(each->context);
			each->context = NULL;
		}
		count = 0;
	}
	known->context = AllocSetContextCreate(CacheMemoryContext, "clustered_heap table",
										   ALLOCSET_SMALL_SIZES);
	count++;
	return known->context;
}

/* A context for what outlives a change that the relation cache hears of. */
MemoryContext
lasting_context_of_known(Known *known)
{
	return AllocSetContextCreate(context_of_known(known), "clustered_heap leaves",
								 ALLOCSET_SMALL_SIZES);
}

/* Asks which index is marked. */
static void
ask(Relation heap, Known *known)
{
	/* What comes in while we look counts as later. */
	uint64		changes_before = changes;

	forget(known);
	known->index = clustered_index_oid(heap);
	known->changes = changes_before;
}

/* What is known of this table, up to date. It stays where it is. */
Known *
known_of(Relation heap)
{
	static Known *recent = NULL;
	Oid			relid = RelationGetRelid(heap);

	if (recent == NULL || recent->heap != relid)
	{
		bool		found;
		Known	   *known;

		if (known_tables == NULL)
		{
			HASHCTL		options = {0};

			options.keysize = sizeof(Oid);
			options.entrysize = sizeof(Known);
			known_tables = hash_create("clustered_heap tables", 64, &options,
									   HASH_ELEM | HASH_BLOBS);
		}
		known = hash_search(known_tables, &relid, HASH_ENTER, &found);
		if (!found)
		{
			memset(known, 0, sizeof(*known));
			known->heap = relid;
		}
		recent = known;
	}
	if (recent->changes != changes)
		ask(heap, recent);
	return recent;
}

/*
 * Opens the index that rows of this table are placed by; NULL: they are not
 * placed. *lock: to be closed with.
 *
 * Whoever inserts has locked the table and, as a rule, the index already
 * (ExecInsert, nodeModifyTable.c), so it stays and needs no second lock, which
 * would be taken and given back for each row; but it may become invalid
 * meanwhile (DROP INDEX CONCURRENTLY), or lose the mark.
 */
Relation
open_known_index(Relation heap, const Known *known, LOCKMODE *lock)
{
	Relation	index;

	if (!OidIsValid(known->index) || ReindexIsProcessingIndex(known->index))
		return NULL;
	*lock = NoLock;
	if (compat_relation_is_locked(known->index, RowExclusiveLock))
		index = RelationIdGetRelation(known->index);
	else
	{
		*lock = RowExclusiveLock;
		index = try_relation_open(known->index, RowExclusiveLock);
	}
	if (index == NULL)
		return NULL;
	if (!index_gives_order(heap, index))
	{
		relation_close(index, *lock);
		return NULL;
	}
	return index;
}

static void
count_change(Datum arg, Oid relid)
{
	changes++;
}

void
cluster_index_init(void)
{
	CacheRegisterRelcacheCallback(count_change, (Datum) 0);
}

bool
is_heap(Relation relation)
{
	return (relation->rd_rel->relkind == RELKIND_RELATION ||
			relation->rd_rel->relkind == RELKIND_MATVIEW) &&
		relation->rd_tableam == GetHeapamTableAmRoutine();
}

bool
has_heap_pages(Relation relation)
{
	return is_heap(relation) || is_clustered_heap(relation);
}
