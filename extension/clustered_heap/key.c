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
#include "common/hashfn.h"
#include "fmgr.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/sortsupport.h"

#include "clustered_heap.h"
#include "compat.h"

/* In the memory context of what is known of the table, and gone with it. */
struct KeyKnown
{
	BTScanInsert empty;			/* the index's, with NULLs for values */
	bool		by_value;		/* all of its columns are */
	bool		by_sort;		/* and have functions that sort them fast */
	SortSupportData sort[INDEX_MAX_KEYS];
	AttrNumber	columns[INDEX_MAX_KEYS];	/* of the table */
	bool		has_last;
	bool		last_is_null[INDEX_MAX_KEYS];
	Datum		last[INDEX_MAX_KEYS];
	/* Values that are passed by reference. With longer ones no key is kept. */
	char		last_bytes[256] pg_attribute_aligned(MAXIMUM_ALIGNOF);
};

/*
 * Prepares comparing values of an index's column as sorts do it, without
 * a call of the operator class's function; false: there is no such way.
 */
static bool
prepare_sort(Relation index, ScanKey column, int i, SortSupport sort, MemoryContext context)
{
	if (!OidIsValid(index_getprocid(index, i + 1, BTSORTSUPPORT_PROC)))
		return false;
	sort->ssup_cxt = context;
	sort->ssup_collation = index->rd_indcollation[i];
	sort->ssup_nulls_first = (column->sk_flags & SK_BT_NULLS_FIRST) != 0;
	sort->ssup_attno = i + 1;
	sort->abbreviate = false;
	compat_prepare_sort(index, (column->sk_flags & SK_BT_DESC) != 0, sort);
	return true;
}

/*
 * Makes the key without values; once for each index. Of equal keys, the place is behind the last one
 * (nextkey).
 */
void
key_of_index(Known *known, Relation index)
{
	MemoryContext context = context_of_known(known);
	MemoryContext before = MemoryContextSwitchTo(context);
	KeyKnown   *made = palloc0(sizeof(KeyKnown));
	BTScanInsert key = _bt_mkscankey(index, NULL);

	_bt_metaversion(index, &key->heapkeyspace, &key->allequalimage);
	key->nextkey = true;
	key->keysz = IndexRelationGetNumberOfKeyAttributes(index);
	made->empty = key;
	made->by_value = true;
	for (int i = 0; i < key->keysz; i++)
	{
		made->columns[i] = index->rd_index->indkey.values[i];
		if (!TupleDescAttr(RelationGetDescr(index), i)->attbyval)
			made->by_value = false;
	}
	made->by_sort = made->by_value;
	for (int i = 0; i < key->keysz && made->by_sort; i++)
		made->by_sort = prepare_sort(index, &key->scankeys[i], i, &made->sort[i], context);
	MemoryContextSwitchTo(before);
	known->key = made;
}

/* Whether comparing leaves nothing behind in the current memory context. */
bool
key_is_by_value(const Known *known)
{
	return known->key->by_value;
}

/* Whether there is a last key. */
bool
key_has_last(const Known *known)
{
	return known->key != NULL && known->key->has_last;
}

/*
 * The row's key. Values of variable length are made plain here, in the current
 * memory context, rather than in each comparison.
 */
void
key_of_row(const Known *known, Relation heap, HeapTuple row, BTScanInsert key)
{
	TupleDesc	desc = RelationGetDescr(heap);

	memcpy(key, known->key->empty,
		   offsetof(BTScanInsertData, scankeys) +
		   known->key->empty->keysz * sizeof(ScanKeyData));
	for (int i = 0; i < key->keysz; i++)
	{
		AttrNumber	attnum = known->key->columns[i];
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

/*
 * Compares the key with an entry of a leaf: below zero, zero or above, as
 * _bt_compare does.
 */
int
key_compare(const Known *known, Relation index, BTScanInsert key, Page page, OffsetNumber offnum)
{
	IndexTuple	entry = (IndexTuple) PageGetItem(page, PageGetItemId(page, offnum));
	KeyKnown   *made = known->key;

	if (made == NULL || !made->by_sort)
		return _bt_compare(index, key, page, offnum);
	for (int i = 0; i < key->keysz; i++)
	{
		ScanKey		column = &key->scankeys[i];
		bool		is_null;
		Datum		value = index_getattr(entry, i + 1, RelationGetDescr(index), &is_null);
		int			compared = ApplySortComparator(column->sk_argument,
												   (column->sk_flags & SK_ISNULL) != 0,
												   value, is_null, &made->sort[i]);

		if (compared != 0)
			return compared;
	}
	return 0;
}

/*
 * A number that keys share which differ in their last column alone: those of
 * one device, say, at different times.
 */
uint32
key_group(const Known *known, Relation heap, BTScanInsert key)
{
	uint32		group = 0;

	for (int i = 0; i < key->keysz - 1 && known->key != NULL; i++)
	{
		Form_pg_attribute column = TupleDescAttr(RelationGetDescr(heap),
												 known->key->columns[i] - 1);
		ScanKey		scankey = &key->scankeys[i];

		if ((scankey->sk_flags & SK_ISNULL) == 0)
			group = hash_combine(group, datum_image_hash(scankey->sk_argument,
														 column->attbyval, column->attlen));
	}
	return group;
}

/* Whether the key is one number, of whatever type that is passed by value and not NULL. */
bool
key_is_number(const Known *known, BTScanInsert key, uint64 *number)
{
	*number = key->scankeys[0].sk_argument;
	return key->keysz == 1 && known->key != NULL && known->key->by_sort &&
		(key->scankeys[0].sk_flags & SK_ISNULL) == 0;
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
	const KeyKnown *last = known->key;
	uint64		changes = known->changes;
	int			compared = 0;

	if (!last->has_last)
		return false;
	for (int i = 0; i < key->keysz && compared == 0; i++)
	{
		Form_pg_attribute column = TupleDescAttr(RelationGetDescr(heap), last->columns[i] - 1);
		Datum		value = last->last[i];

		if (!last->by_value && !last->last_is_null[i])
			value = datumCopy(value, column->attbyval, column->attlen);
		compared = compare_column(&key->scankeys[i], value, last->last_is_null[i]);
		if (known->changes != changes || known->key != last || !last->has_last)
			return false;
	}
	return compared >= 0;
}

/* Forgets the last key: rows may have come that this session has not looked at. */
void
key_forget_last(Known *known)
{
	if (known->key != NULL)
		known->key->has_last = false;
}

/*
 * Keeps the key of a row that comes behind all others. changes: when the key
 * was made, which has to be of the index that is known now.
 */
void
key_keep_last(Known *known, Relation heap, BTScanInsert key, uint64 changes)
{
	KeyKnown   *last = known->key;
	Size		used = 0;

	if (known->changes != changes || last == NULL)
		return;
	last->has_last = false;
	for (int i = 0; i < key->keysz; i++)
	{
		Form_pg_attribute column = TupleDescAttr(RelationGetDescr(heap), last->columns[i] - 1);
		ScanKey		scankey = &key->scankeys[i];
		Datum		value = scankey->sk_argument;

		last->last_is_null[i] = (scankey->sk_flags & SK_ISNULL) != 0;
		if (!last->last_is_null[i] && !column->attbyval)
		{
			Size		size = datumGetSize(value, false, column->attlen);

			if (size > sizeof(last->last_bytes) - used)
				return;
			memcpy(last->last_bytes + used, DatumGetPointer(value), size);
			value = PointerGetDatum(last->last_bytes + used);
			used = Min(MAXALIGN(used + size), sizeof(last->last_bytes));
		}
		last->last[i] = value;
	}
	last->has_last = true;
}
