/*
 * leaf.c
 *		The leaf of the cluster index where a key belongs.
 *
 * It is read as nbtree reads it, with a pin and a lock on one page at a time.
 * Its number is remembered: a hint, which is looked at before it is believed.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "clustered_heap.h"
#include "compat.h"

/* Groups of keys (group_of_key) of which the last leaf is remembered, in 96 kB. */
#define GROUPS 8192

/* Arbitrary: enough not to follow single ones. */
#define LEAVES_AGAINST 8

/* Where the last row of a group of keys belongs. */
typedef struct LastLeaf
{
	BlockNumber leaf;			/* or P_NONE */
	Buffer		buffer;			/* that it was in */
	bool		is_tried;		/* whether to look there first */
} LastLeaf;

/*
 * Outlives what else is known (cluster_index.c): VACUUM, which makes us forget,
 * leaves nearly all leaves as they are.
 */
struct LastLeaves
{
	int			shift;			/* bits of a number that rows of a leaf differ in */
	int			against;		/* leaves in a row that have another width */
	LastLeaf	last[GROUPS];
};

/*
 * Where the last leaf of this key's group is remembered, or NULL.
 *
 * Keys of a group have the same values in all columns but the last: those of
 * one device, say, at different times. Where numbers alone are the key, they
 * have the same leading bits, so many of them as make a leaf's width.
 */
static LastLeaf *
last_leaf_of_key(Known *known, Relation heap, BTScanInsert key)
{
	uint64		number;
	uint32		group;

	if (known->looks < LOOKS_BEFORE_REMEMBERING)
		return NULL;
	if (known->last_leaves == NULL)
		known->last_leaves = MemoryContextAllocZero(lasting_context_of_known(known),
													sizeof(LastLeaves));
	if (key_is_number(known, key, &number))
		group = (uint32) (number >> known->last_leaves->shift);
	else
		group = key_group(known, heap, key);
	return &known->last_leaves->last[group % GROUPS];
}

/* How far the first columns of two entries are apart, as numbers; 0: one is NULL. */
static uint64
width_of_entries(Relation index, Page page, OffsetNumber one, OffsetNumber other)
{
	OffsetNumber both[2] = {one, other};
	Datum		values[2];

	for (int i = 0; i < 2; i++)
	{
		IndexTuple	entry = (IndexTuple) PageGetItem(page, PageGetItemId(page, both[i]));
		bool		is_null;

		values[i] = index_getattr(entry, 1, RelationGetDescr(index), &is_null);
		if (is_null)
			return 0;
	}
	return values[0] > values[1] ? values[0] - values[1] : values[1] - values[0];
}

/*
 * Takes the width of a leaf, which is locked, for that of all: the first one,
 * and others when several in a row say so. Not every difference: what is
 * remembered is found no longer when it changes.
 */
static void
note_width(Known *known, Relation index, BTScanInsert key, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);
	LastLeaves *leaves = known->last_leaves;
	uint64		number;
	uint64		width;
	int			shift;

	if (leaves == NULL || P_RIGHTMOST(opaque) ||
		PageGetMaxOffsetNumber(page) < P_FIRSTDATAKEY(opaque) ||
		!key_is_number(known, key, &number))
		return;
	width = width_of_entries(index, page, P_FIRSTDATAKEY(opaque), PageGetMaxOffsetNumber(page));
	if (width == 0)
		return;
	shift = pg_leftmost_one_pos64(width);
	if (abs(shift - leaves->shift) <= 1)
		leaves->against = 0;
	else if (leaves->shift == 0 || ++leaves->against == LEAVES_AGAINST)
	{
		leaves->shift = shift;
		leaves->against = 0;
	}
}

/* Where a key belongs, seen from a page. */
typedef enum Side
{
	SIDE_LEFT,
	SIDE_HERE,
	SIDE_RIGHT,
	SIDE_UNKNOWN,				/* the page is no leaf, or has no entries */
} Side;

/* To the left also where it may belong here, before the first entry. */
static Side
side_of_key(Relation index, BTScanInsert key, Page page)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	if (!P_ISLEAF(opaque) || P_IGNORE(opaque) ||
		PageGetMaxOffsetNumber(page) < P_FIRSTDATAKEY(opaque))
		return SIDE_UNKNOWN;
	if (_bt_compare(index, key, page, P_FIRSTDATAKEY(opaque)) < 0)
		return SIDE_LEFT;
	if (P_RIGHTMOST(opaque) || _bt_compare(index, key, page, P_HIKEY) < 0)
		return SIDE_HERE;
	return SIDE_RIGHT;
}

/*
 * A page of the index, locked for reading, or InvalidBuffer: it is none that
 * nbtree has filled. The index may have another file since, or be another one.
 */
static Buffer
remembered_page(Relation index, const LastLeaf *last)
{
	Buffer		buffer = last->buffer;
	Page		page;

	/* The table of buffers is asked only where it is in another one. */
	if (!compat_read_recent_buffer(index, MAIN_FORKNUM, last->leaf, buffer))
	{
		if (!block_exists(index, last->leaf))
			return InvalidBuffer;
		buffer = ReadBuffer(index, last->leaf);
	}
	_bt_lockbuf(index, buffer, BT_READ);
	page = BufferGetPage(buffer);
	if (!PageIsNew(page) &&
		PageGetSpecialSize(page) == MAXALIGN(sizeof(BTPageOpaqueData)))
		return buffer;
	_bt_relbuf(index, buffer);
	return InvalidBuffer;
}

/*
 * A leaf or one beside it, locked for reading, if the key belongs there; else
 * InvalidBuffer. So rows that come in order, or each stream of them in its own,
 * need no descent.
 */
static Buffer
leaf_near(Relation index, BTScanInsert key, const LastLeaf *last)
{
	Buffer		leaf = remembered_page(index, last);
	BTPageOpaque opaque;
	BlockNumber beside;
	Side		side;

	if (!BufferIsValid(leaf))
		return InvalidBuffer;
	opaque = BTPageGetOpaque(BufferGetPage(leaf));
	side = side_of_key(index, key, BufferGetPage(leaf));
	if (side == SIDE_HERE)
		return leaf;
	beside = side == SIDE_LEFT ? opaque->btpo_prev : opaque->btpo_next;
	if (side != SIDE_UNKNOWN && beside != P_NONE)
	{
		leaf = _bt_relandgetbuf(index, leaf, beside, BT_READ);
		if (side_of_key(index, key, BufferGetPage(leaf)) == SIDE_HERE)
			return leaf;
	}
	_bt_relbuf(index, leaf);
	return InvalidBuffer;
}

/*
 * The leaf where the key belongs, locked for reading, or InvalidBuffer: the index
 * is empty. What is known may be of another index afterwards.
 */
static Buffer
leaf_of_key(Relation heap, Known *known, BTScanInsert key, const Place *place)
{
	Relation	index = place->index;
	LastLeaf   *last = last_leaf_of_key(known, heap, key);
	Buffer		leaf = InvalidBuffer;
	BlockNumber block;
	bool		is_near = last != NULL && last->is_tried;

	if (is_near)
		leaf = leaf_near(index, key, last);
	is_near = BufferIsValid(leaf);
	if (!is_near)
	{
		leaf = compat_bt_search(index, heap, key);
		if (!BufferIsValid(leaf))
			return InvalidBuffer;
		if (known->looks < LOOKS_BEFORE_REMEMBERING)
			known->looks++;
	}
	if (known->changes != place->changes)
		return leaf;
	if (!is_near)
		note_width(known, index, key, BufferGetPage(leaf));
	/* Comparing may have called what makes us forget. */
	last = last_leaf_of_key(known, heap, key);
	if (last == NULL)
		return leaf;
	/* Not where the one before was a vain try, until two of them agree again. */
	block = BufferGetBlockNumber(leaf);
	last->is_tried = is_near || last->leaf == P_NONE || last->leaf == block;
	last->leaf = block;
	last->buffer = leaf;
	return leaf;
}

/* The page of an index entry's row; of several equal ones, of the last. */
static BlockNumber
last_block(Page page, OffsetNumber offnum)
{
	IndexTuple	entry = (IndexTuple) PageGetItem(page, PageGetItemId(page, offnum));

	return ItemPointerGetBlockNumber(BTreeTupleGetMaxHeapTID(entry));
}

/* Finds where the key belongs; false: the index is empty, or the key holds no longer. */
bool
place_of_key(Relation heap, Known *known, BTScanInsert key, Place *place)
{
	Relation	index = place->index;
	Buffer		leaf = leaf_of_key(heap, known, key, place);
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
		int			compared;

		if (known->changes != place->changes)
		{
			_bt_relbuf(index, leaf);
			return false;
		}
		compared = key_compare(known, index, key, page, middle);
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
	if (known->changes != place->changes)
	{
		_bt_relbuf(index, leaf);
		return false;
	}
	place->leaf = leaf;
	place->leaf_block = BufferGetBlockNumber(leaf);
	place->has_highest = walk_is_known(known, index, page, place->leaf_block, &place->highest);
	_bt_unlockbuf(index, leaf);
	return true;
}
