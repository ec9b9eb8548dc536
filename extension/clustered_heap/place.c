/*
 * place.c
 *		Tells heap on which page the row that is about to come belongs: for
 *		cluster_place(), a BEFORE INSERT row trigger on plain heap, and for the
 *		access method clustered_heap.
 *
 * Nothing is written here but pages of zeros and the free space map, and
 * nothing is remembered about pages: heap has one hint for each relation, the
 * page to try first (RelationSetTargetBlock), which it resets itself wherever
 * the file shrinks. Here that hint is set. A wrong one costs order, never
 * a row: heap locks the page, looks whether the row fits, and asks the free
 * space map if it does not (RelationGetBufferForTuple, hio.c).
 *
 * Which page:
 *
 *	1. That of the row before it in the index, or, where that stands on
 *	   another leaf, of the row after it. One descent finds the place.
 *	2. If it is full, also after pruning: the highest page with room that any
 *	   row of this leaf lies on, which is where the leaf's latecomers are.
 *	3. If all of them are full, an empty page. It is one of its leaf's as soon
 *	   as the row's index entry is there. If there is none and half of the
 *	   table is free (room.c), any page with room, as heap takes it.
 *
 * So there is about one page for latecomers under each leaf, and no list of
 * them: nothing to recover after a crash, and nothing to vacuum.
 *
 * Entries of equal keys stand in the order of their pages, so that those of a
 * run over several leaves come to the leaf where we have looked only if their
 * page is above that of its first entry: a lower empty page is not taken then.
 *
 * Rows that come one after the other behind all others go where plain heap
 * puts them. Otherwise room that deleted rows have left would stay unused in a
 * table that grows at one end.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/relation.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "storage/bufmgr.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "clustered_heap.h"
#include "compat.h"

PG_FUNCTION_INFO_V1(cluster_place);

/* Where a row belongs by its key. */
typedef struct Place
{
	BlockNumber neighbour;		/* page of the row before it, or else after */
	bool		at_end;			/* no row stands behind it */
	BlockNumber above;			/* in a run of equal keys: what an entry's page
								 * has to be above of to come to this leaf */
	Buffer		leaf;			/* its leaf of the index, pinned, not locked */
	BlockNumber leaf_block;
} Place;

/*
 * Rows that are inserted before any of them gets its index entries, as COPY
 * does it: the index does not tell which empty page has been taken for a leaf,
 * so that each row would take another one.
 */
struct Batch
{
	int			count;
	struct
	{
		BlockNumber leaf;
		BlockNumber taken;
	}			pages[FLEXIBLE_ARRAY_MEMBER];
};

/*
 * The tables behind whose end this session's last row in them came (Oids):
 * heap's hint is its own business then. So each session appends to a page of
 * its own, as in plain heap. It says nothing about pages, and may be wrong.
 */
static HTAB *appended_to = NULL;

/*
 * The row's key as the index compares it. Of equal keys, the place is behind
 * the last one (nextkey).
 */
static BTScanInsert
key_of_row(Relation heap, Relation index, HeapTuple row)
{
	TupleDesc	desc = RelationGetDescr(heap);
	BTScanInsert key = _bt_mkscankey(index, NULL);

	_bt_metaversion(index, &key->heapkeyspace, &key->allequalimage);
	key->nextkey = true;
	key->keysz = IndexRelationGetNumberOfKeyAttributes(index);
	for (int i = 0; i < key->keysz; i++)
	{
		AttrNumber	attnum = index->rd_index->indkey.values[i];
		ScanKey		column = &key->scankeys[i];
		bool		is_null;
		Datum		value = heap_getattr(row, attnum, desc, &is_null);

		/* _bt_mkscankey has made it a key of NULLs. */
		if (is_null)
			continue;
		/* Once here, rather than in each comparison. */
		if (TupleDescAttr(desc, attnum - 1)->attlen == -1)
			value = PointerGetDatum(PG_DETOAST_DATUM_PACKED(value));
		column->sk_argument = value;
		column->sk_flags &= ~SK_ISNULL;
	}
	return key;
}

/*
 * The last leaf of the index, locked for reading, if nbtree remembers it and
 * the key belongs there: rows that come in ascending order need no descent.
 * As _bt_search_insert (nbtinsert.c) does it, which forgets the page again
 * when rows come in another order.
 */
static Buffer
remembered_leaf(Relation index, BTScanInsert key)
{
	BlockNumber block = RelationGetTargetBlock(index);
	Buffer		leaf;
	Page		page;
	BTPageOpaque opaque;

	if (block == InvalidBlockNumber)
		return InvalidBuffer;
	leaf = _bt_getbuf(index, block, BT_READ);
	page = BufferGetPage(leaf);
	opaque = BTPageGetOpaque(page);
	if (P_RIGHTMOST(opaque) && P_ISLEAF(opaque) && !P_IGNORE(opaque) &&
		PageGetMaxOffsetNumber(page) >= P_FIRSTDATAKEY(opaque) &&
		_bt_compare(index, key, page, P_FIRSTDATAKEY(opaque)) >= 0)
		return leaf;
	_bt_relbuf(index, leaf);
	return InvalidBuffer;
}

static IndexTuple
entry_at(Page page, OffsetNumber offnum)
{
	return (IndexTuple) PageGetItem(page, PageGetItemId(page, offnum));
}

/* The page of an index entry's row; of several equal ones, of the last. */
static BlockNumber
last_block(Page page, OffsetNumber offnum)
{
	return ItemPointerGetBlockNumber(BTreeTupleGetMaxHeapTID(entry_at(page, offnum)));
}

static bool
descend(Relation heap, Relation index, HeapTuple row, Place *place)
{
	BTScanInsert key = key_of_row(heap, index, row);
	Buffer		leaf = remembered_leaf(index, key);
	Page		page;
	BTPageOpaque opaque;
	OffsetNumber first;
	OffsetNumber low;
	OffsetNumber high;

	if (!BufferIsValid(leaf))
		leaf = compat_bt_search(index, heap, key);
	if (!BufferIsValid(leaf))
		return false;
	page = BufferGetPage(leaf);
	opaque = BTPageGetOpaque(page);
	first = P_FIRSTDATAKEY(opaque);
	if (PageGetMaxOffsetNumber(page) < first)
	{
		_bt_relbuf(index, leaf);
		return false;
	}
	/* The first entry behind the key is at low, or there is none here. */
	low = first;
	high = OffsetNumberNext(PageGetMaxOffsetNumber(page));
	while (low < high)
	{
		OffsetNumber middle = low + (high - low) / 2;

		if (_bt_compare(index, key, page, middle) >= 0)
			low = OffsetNumberNext(middle);
		else
			high = middle;
	}
	place->neighbour = last_block(page, low > first ? OffsetNumberPrev(low) : low);
	place->at_end = P_RIGHTMOST(opaque) && low > PageGetMaxOffsetNumber(page);
	/* The run may have begun on a leaf before this one. */
	place->above = InvalidBlockNumber;
	if (_bt_compare(index, key, page, first) == 0)
		place->above = ItemPointerGetBlockNumber(BTreeTupleGetHeapTID(entry_at(page, first)));
	place->leaf = leaf;
	place->leaf_block = BufferGetBlockNumber(leaf);
	_bt_unlockbuf(index, leaf);
	pfree(key);
	return true;
}

/*
 * Finds where the row belongs; false: the index is empty.
 *
 * Comparing values that are passed by reference may leave memory behind, and
 * not every caller's context ends with the row.
 */
static bool
find_place(Relation heap, Relation index, HeapTuple row, Place *place)
{
	TupleDesc	desc = RelationGetDescr(index);
	bool		by_value = true;
	MemoryContext context;
	MemoryContext before;
	bool		found;

	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
		by_value = by_value && TupleDescAttr(desc, i)->attbyval;
	if (by_value)
		return descend(heap, index, row, place);
	context = AllocSetContextCreate(CurrentMemoryContext, "clustered_heap row",
									ALLOCSET_SMALL_SIZES);
	before = MemoryContextSwitchTo(context);
	found = descend(heap, index, row, place);
	MemoryContextSwitchTo(before);
	MemoryContextDelete(context);
	return found;
}

/*
 * The pages that the rows of this leaf lie on beside the neighbour's, some of
 * them more than once; releases the leaf. Returns their number.
 *
 * It has been unlocked meanwhile and may have been split, which leaves it a
 * part of the neighbourhood, or deleted.
 */
static int
blocks_of_leaf(Relation index, const Place *place, BlockNumber *blocks)
{
	Buffer		leaf = place->leaf;
	int			count = 0;
	Page		page;
	BTPageOpaque opaque;

	_bt_lockbuf(index, leaf, BT_READ);
	page = BufferGetPage(leaf);
	opaque = BTPageGetOpaque(page);
	if (P_ISLEAF(opaque) && !P_IGNORE(opaque))
	{
		OffsetNumber end = PageGetMaxOffsetNumber(page);

		for (OffsetNumber offnum = P_FIRSTDATAKEY(opaque); offnum <= end; offnum++)
		{
			IndexTuple	entry = entry_at(page, offnum);
			bool		is_posting = BTreeTupleIsPosting(entry);
			int			row_count = is_posting ? BTreeTupleGetNPosting(entry) : 1;

			for (int i = 0; i < row_count; i++)
			{
				ItemPointer tid = is_posting ? BTreeTupleGetPostingN(entry, i) : &entry->t_tid;
				BlockNumber block = ItemPointerGetBlockNumber(tid);

				if (block != place->neighbour &&
					(count == 0 || block != blocks[count - 1]))
					blocks[count++] = block;
			}
		}
	}
	_bt_relbuf(index, leaf);
	return count;
}

Batch *
batch_begin(int row_count)
{
	Batch	   *batch = palloc(offsetof(Batch, pages) +
							   row_count * sizeof(batch->pages[0]));

	batch->count = 0;
	return batch;
}

/* An empty page; in a batch, first the one that its rows of this leaf took. */
static BlockNumber
page_for_latecomers(Relation heap, const Place *place, const Need *need, Batch *batch)
{
	int			i;

	if (batch == NULL)
		return block_for_latecomers(heap, place->above, need);
	for (i = batch->count - 1; i >= 0; i--)
		if (batch->pages[i].leaf == place->leaf_block)
			break;
	if (i >= 0 && block_takes(heap, batch->pages[i].taken, need))
		return batch->pages[i].taken;
	if (i < 0)
	{
		i = batch->count++;
		batch->pages[i].leaf = place->leaf_block;
	}
	batch->pages[i].taken = block_for_latecomers(heap, place->above, need);
	return batch->pages[i].taken;
}

/* The page for a row, by the three steps above; releases the leaf. */
static BlockNumber
block_of_place(Relation heap, Relation index, Place *place, const Need *need,
			   Batch *batch)
{
	/* Read after the index: what its entries name is there by now. */
	BlockNumber end = RelationGetNumberOfBlocks(heap);
	BlockNumber blocks[MaxTIDsPerBTreePage];
	BlockNumber block;
	int			count;

	if (place->neighbour < end && block_takes(heap, place->neighbour, need))
	{
		ReleaseBuffer(place->leaf);
		return place->neighbour;
	}
	count = blocks_of_leaf(index, place, blocks);
	block = highest_with_room(heap, blocks, count, need);
	if (block != InvalidBlockNumber)
		return block;
	return page_for_latecomers(heap, place, need, batch);
}

/* Whether this row and the one before it come behind all others; notes it. */
static bool
goes_on_behind(Oid heap, bool at_end)
{
	bool		found = false;

	if (appended_to == NULL)
	{
		HASHCTL		options = {0};

		options.keysize = sizeof(Oid);
		options.entrysize = sizeof(Oid);
		appended_to = hash_create("clustered_heap appended to", 64, &options,
								  HASH_ELEM | HASH_BLOBS);
	}
	(void) hash_search(appended_to, &heap, at_end ? HASH_ENTER : HASH_REMOVE, &found);
	return at_end && found;
}

/*
 * Sets heap's hint for the row that is about to be inserted; false: heap is to
 * do as it would without us.
 */
bool
place_row(Relation heap, Relation index, HeapTuple row, Batch *batch)
{
	Need		need = need_of_row(heap, row);
	Place		place;

	/* Heap will refuse it. */
	if (need.len > MaxHeapTupleSize)
		return false;
	if (!find_place(heap, index, row, &place))
		return false;
	if (goes_on_behind(RelationGetRelid(heap), place.at_end))
	{
		ReleaseBuffer(place.leaf);
		return false;
	}
	RelationSetTargetBlock(heap, block_of_place(heap, index, &place, &need, batch));
	return true;
}

/* Whether the row comes behind all that are there; so does every row of an empty table. */
bool
row_goes_to_end(Relation heap, Relation index, HeapTuple row)
{
	Place		place;

	if (!find_place(heap, index, row, &place))
		return true;
	ReleaseBuffer(place.leaf);
	return place.at_end;
}

/*
 * Sets heap's hint for a new version of a row that does not fit on the page of
 * the old one. (heap_update keeps it there if it does, whatever its key.)
 */
void
place_version(Relation heap, HeapTuple row, ItemPointer old)
{
	Need		need = need_of_row(heap, row);
	Need		beside = need;
	Relation	index;

	/* The reserve is for this. */
	beside.reserve = 0;
	if (block_takes(heap, ItemPointerGetBlockNumber(old), &beside))
		return;
	index = open_cluster_index(heap);
	if (index == NULL)
		return;
	(void) place_row(heap, index, row, NULL);
	relation_close(index, RowExclusiveLock);
}

/* The trigger. The row is returned as it came. */
Datum
cluster_place(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Relation	heap;
	Relation	index;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("cluster_place() was not called by a trigger")));
	if (!TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
		!TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" calls cluster_place() for something else than BEFORE INSERT ... FOR EACH ROW",
						trigger->tg_trigger->tgname)));

	heap = trigger->tg_relation;
	/* Tables of access method clustered_heap are placed without. */
	if (is_heap(heap))
	{
		index = open_cluster_index(heap);
		if (index != NULL)
		{
			(void) place_row(heap, index, trigger->tg_trigtuple, NULL);
			relation_close(index, RowExclusiveLock);
		}
	}
	return PointerGetDatum(trigger->tg_trigtuple);
}
