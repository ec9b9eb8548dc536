/*
 * leaf.c
 *		The leaf of the cluster index where a key belongs.
 *
 * It is read as nbtree reads it, with a pin and a lock on one page at a time.
 * Its number is remembered: a hint, which is looked at before it is believed.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "clustered_heap.h"
#include "compat.h"

/* Groups of keys (key_group) of which the last leaf is remembered, in 8 kB. */
#define GROUPS 1024

/* Where the last row of a group of keys belongs. */
struct LastLeaf
{
	BlockNumber leaf;
	bool		is_again;		/* where the one before did */
};

static LastLeaf *
last_leaf(Known *known, uint32 group)
{
	if (known->last_leaves == NULL)
	{
		LastLeaf   *last = MemoryContextAlloc(context_of_known(known), GROUPS * sizeof(LastLeaf));

		for (int i = 0; i < GROUPS; i++)
		{
			last[i].leaf = InvalidBlockNumber;
			last[i].is_again = false;
		}
		known->last_leaves = last;
	}
	return &known->last_leaves[group % GROUPS];
}

/* Whether the page is a leaf, the key is not below its entries, and some are there. */
static bool
begins_before(Relation index, BTScanInsert key, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	return P_ISLEAF(opaque) && !P_IGNORE(opaque) &&
		PageGetMaxOffsetNumber(page) >= P_FIRSTDATAKEY(opaque) &&
		_bt_compare(index, key, page, P_FIRSTDATAKEY(opaque)) >= 0;
}

/* Whether the key belongs before all that is on the pages to the right of this one. */
static bool
ends_behind(Relation index, BTScanInsert key, Page page)
{
	return P_RIGHTMOST(BTPageGetOpaque(page)) ||
		_bt_compare(index, key, page, P_HIKEY) < 0;
}

/*
 * A leaf or the one to the right of it, locked for reading, if the key belongs
 * there; else InvalidBuffer. So rows that come in order, or each stream of them
 * in its own, need no descent.
 *
 * An index becomes shorter only where it is made anew, of which the relation
 * cache hears; then nothing is remembered (cluster_index.c).
 */
static Buffer
leaf_or_next(Relation index, BTScanInsert key, BlockNumber block)
{
	Buffer		leaf = _bt_getbuf(index, block, BT_READ);
	Page		page = BufferGetPage(leaf);

	if (begins_before(index, key, page))
	{
		if (ends_behind(index, key, page))
			return leaf;
		leaf = _bt_relandgetbuf(index, leaf, BTPageGetOpaque(page)->btpo_next, BT_READ);
		page = BufferGetPage(leaf);
		if (begins_before(index, key, page) && ends_behind(index, key, page))
			return leaf;
	}
	_bt_relbuf(index, leaf);
	return InvalidBuffer;
}

/* The leaf where the key belongs, locked for reading, or InvalidBuffer: the index is empty. */
static Buffer
leaf_of_key(Relation heap, Relation index, Known *known, BTScanInsert key)
{
	uint32		group = key_group(known, heap, key);
	LastLeaf   *last = last_leaf(known, group);
	Buffer		leaf = InvalidBuffer;
	BlockNumber block;

	if (last->is_again)
		leaf = leaf_or_next(index, key, last->leaf);
	if (!BufferIsValid(leaf))
	{
		leaf = compat_bt_search(index, heap, key);
		if (!BufferIsValid(leaf))
			return InvalidBuffer;
		block = BufferGetBlockNumber(leaf);
		/* Comparing may have called what makes us forget. */
		last = last_leaf(known, group);
		last->is_again = block == last->leaf;
	}
	else
		block = BufferGetBlockNumber(leaf);
	last->leaf = block;
	return leaf;
}

/* The page of an index entry's row; of several equal ones, of the last. */
static BlockNumber
last_block(Page page, OffsetNumber offnum)
{
	IndexTuple	entry = (IndexTuple) PageGetItem(page, PageGetItemId(page, offnum));

	return ItemPointerGetBlockNumber(BTreeTupleGetMaxHeapTID(entry));
}

/* Finds where the key belongs; false: the index is empty. */
bool
place_of_key(Relation heap, Known *known, BTScanInsert key, Place *place)
{
	Relation	index = place->index;
	Buffer		leaf = leaf_of_key(heap, index, known, key);
	bool		is_equal = false;
	Page		page;
	BTPageOpaque opaque;
	OffsetNumber first;
	OffsetNumber low;
	OffsetNumber high;

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
		int			compared = key_compare(known, index, key, page, middle);

		if (compared >= 0)
		{
			low = OffsetNumberNext(middle);
			is_equal = compared == 0;
		}
		else
			high = middle;
	}
	place->neighbour = last_block(page, low > first ? OffsetNumberPrev(low) : low);
	place->at_end = P_RIGHTMOST(opaque) && low > PageGetMaxOffsetNumber(page);
	/* The run may have begun on a leaf before this one. */
	place->above = InvalidBlockNumber;
	if (is_equal && _bt_compare(index, key, page, first) == 0)
	{
		IndexTuple	entry = (IndexTuple) PageGetItem(page, PageGetItemId(page, first));

		place->above = ItemPointerGetBlockNumber(BTreeTupleGetHeapTID(entry));
	}
	place->leaf = leaf;
	place->leaf_block = BufferGetBlockNumber(leaf);
	place->has_highest = walk_is_known(known, page, place->leaf_block, &place->highest);
	_bt_unlockbuf(index, leaf);
	return true;
}
