/*
 * key.c
 *		The key of a row as the cluster index compares it, and the highest one
 *		that this session has inserted behind all others.
 *
 * With rows that come in ascending order the last key saves the look into the
 * index: one that is not below it comes behind all others too, as far as this
 * session has filled the table. What others have inserted meanwhile is noticed
 * when the index is asked again (place.c). Till then a row may go where plain
 * heap puts it, which costs order, never a row.
 *
 * Comparing may call functions of any language, which may insert into the same
 * table: nothing here is believed to be as it was after a comparison.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "fmgr.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "clustered_heap.h"

/*
 * Makes the key without values; once for each index, since it takes as long as
 * a level of the descent. Of equal keys, the place is behind the last one
 * (nextkey).
 */
void
key_of_index(Known *known, Relation index)
{
	MemoryContext before;
	BTScanInsert key;

	if (known->context == NULL)
		known->context = AllocSetContextCreate(CacheMemoryContext, "clustered_heap key",
											   ALLOCSET_SMALL_SIZES);
	before = MemoryContextSwitchTo(known->context);
	key = _bt_mkscankey(index, NULL);
	MemoryContextSwitchTo(before);
	_bt_metaversion(index, &key->heapkeyspace, &key->allequalimage);
	key->nextkey = true;
	key->keysz = IndexRelationGetNumberOfKeyAttributes(index);
	known->by_value = true;
	for (int i = 0; i < key->keysz; i++)
	{
		known->columns[i] = index->rd_index->indkey.values[i];
		if (!TupleDescAttr(RelationGetDescr(index), i)->attbyval)
			known->by_value = false;
	}
	known->empty_key = key;
}

/*
 * The row's key. Values of variable length are made plain here, in the current
 * memory context, rather than in each comparison.
 */
void
key_of_row(const Known *known, Relation heap, HeapTuple row, BTScanInsert key)
{
	TupleDesc	desc = RelationGetDescr(heap);

	memcpy(key, known->empty_key,
		   offsetof(BTScanInsertData, scankeys) +
		   known->empty_key->keysz * sizeof(ScanKeyData));
	for (int i = 0; i < key->keysz; i++)
	{
		AttrNumber	attnum = known->columns[i];
		ScanKey		column = &key->scankeys[i];
		bool		is_null;
		Datum		value = heap_getattr(row, attnum, desc, &is_null);

		/* What comparing leaves behind is to go with the row. */
		column->sk_func.fn_mcxt = CurrentMemoryContext;
		/* _bt_mkscankey has made it a key of NULLs. */
		if (is_null)
			continue;
		if (TupleDescAttr(desc, attnum - 1)->attlen == -1)
			value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
		column->sk_argument = value;
		column->sk_flags &= ~SK_ISNULL;
	}
}

/* Compares a column of the key with the last one's: below zero, zero or above. */
static int
compare_column(ScanKey column, Datum last, bool last_is_null)
{
	bool		is_null = (column->sk_flags & SK_ISNULL) != 0;
	bool		nulls_first = (column->sk_flags & SK_BT_NULLS_FIRST) != 0;
	int32		compared;

	if (is_null && last_is_null)
		return 0;
	if (is_null || last_is_null)
		return is_null == nulls_first ? -1 : 1;
	compared = DatumGetInt32(FunctionCall2Coll(&column->sk_func, column->sk_collation,
											   column->sk_argument, last));
	if ((column->sk_flags & SK_BT_DESC) != 0)
		INVERT_COMPARE_RESULT(compared);
	return compared;
}

/* Whether the key is not below the last one; false: it is, or there is none. */
bool
key_goes_on(const Known *known, Relation heap, BTScanInsert key)
{
	uint64		changes = known->changes;
	int			compared = 0;

	if (!known->has_last)
		return false;
	for (int i = 0; i < key->keysz && compared == 0; i++)
	{
		Form_pg_attribute column = TupleDescAttr(RelationGetDescr(heap), known->columns[i] - 1);
		Datum		last = known->last[i];

		if (!known->by_value && !known->last_is_null[i])
			last = datumCopy(last, column->attbyval, column->attlen);
		compared = compare_column(&key->scankeys[i], last, known->last_is_null[i]);
		if (known->changes != changes || !known->has_last)
			return false;
	}
	return compared >= 0;
}

/* Forgets the last key: rows may have come that this session has not looked at. */
void
key_forget_last(Known *known)
{
	known->has_last = false;
}

/*
 * Keeps the key of a row that comes behind all others. changes: when the key
 * was made, which has to be of the index that is known now.
 */
void
key_keep_last(Known *known, Relation heap, BTScanInsert key, uint64 changes)
{
	Size		used = 0;

	if (known->changes != changes || known->empty_key == NULL)
		return;
	known->has_last = false;
	for (int i = 0; i < key->keysz; i++)
	{
		Form_pg_attribute column = TupleDescAttr(RelationGetDescr(heap), known->columns[i] - 1);
		ScanKey		scankey = &key->scankeys[i];
		Datum		value = scankey->sk_argument;

		known->last_is_null[i] = (scankey->sk_flags & SK_ISNULL) != 0;
		if (!known->last_is_null[i] && !column->attbyval)
		{
			Size		size = datumGetSize(value, false, column->attlen);

			if (size > sizeof(known->last_bytes) - used)
				return;
			memcpy(known->last_bytes + used, DatumGetPointer(value), size);
			value = PointerGetDatum(known->last_bytes + used);
			used = Min(MAXALIGN(used + size), sizeof(known->last_bytes));
		}
		known->last[i] = value;
	}
	known->has_last = true;
}
