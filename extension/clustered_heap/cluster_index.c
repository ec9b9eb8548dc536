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

/*
 * What is known of each table that this session has inserted into, by its Oid.
 *
 * A mark that is set or taken away tells other sessions of the index alone, so
 * any change that the relation cache hears of makes us ask again: that takes a
 * microsecond or two.
 */
static HTAB *known_tables = NULL;
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

/* Asks which index is marked, and forgets what was known by another one. */
static void
ask(Relation heap, Known *known)
{
	/* What comes in while we look counts as later. */
	uint64		changes_before = changes;

	known->empty_key = NULL;
	known->has_last = false;
	known->leaf = InvalidBlockNumber;
	known->leaf_again = false;
	if (known->context != NULL)
		MemoryContextReset(known->context);
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
 * placed. To be closed with RowExclusiveLock.
 *
 * Whoever inserts has locked the table and, as a rule, the index already
 * (ExecInsert, nodeModifyTable.c), so it stays; but it may become invalid
 * meanwhile (DROP INDEX CONCURRENTLY), or lose the mark.
 */
Relation
open_known_index(Relation heap, const Known *known)
{
	Relation	index;

	if (!OidIsValid(known->index) || ReindexIsProcessingIndex(known->index))
		return NULL;
	index = try_relation_open(known->index, RowExclusiveLock);
	if (index == NULL)
		return NULL;
	if (!index_gives_order(heap, index))
	{
		relation_close(index, RowExclusiveLock);
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
