/*
 * walk.c
 *		The pages of the table that the entries of a leaf name.
 *
 * Who needs the highest of them walks over some hundred entries, which takes as
 * long as a descent. So what a walk has found is remembered.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "clustered_heap.h"

/*
 * Leaves that a session remembers its walk over, for each table: more than
 * a million rows of a short key have, in 64 kB.
 */
#define WALKS 4096

/*
 * What a walk has found: the highest page that a row of the leaf lies on.
 *
 * It is that of before plus the rows that we have placed since, as long as the
 * leaf has as many entries more and the same neighbour: a split, VACUUM, and
 * entries that others have inserted or we have by other ways all change one of
 * them. Where they do so by chance and cancel out, a row comes to a page that
 * was its leaf's a moment ago.
 */
typedef struct Walk
{
	BlockNumber leaf;			/* or P_NONE */
	BlockNumber right;			/* neighbour of the leaf */
	BlockNumber highest;
	OffsetNumber end;			/* its last entry */
} Walk;

struct Walks
{
	Walk		walks[WALKS];
	BlockNumber told_leaf;		/* leaf of the row before, or P_NONE */
	BlockNumber told_block;		/* the page that it was told to try first */
};

/* Where walks are remembered, or NULL. */
static Walks *
walks_of(Known *known)
{
	if (known->walks == NULL && known->looks >= LOOKS_BEFORE_REMEMBERING)
		known->walks = MemoryContextAllocZero(context_of_known(known), sizeof(Walks));
	return known->walks;
}

/*
 * Whether it is known which page is the highest that rows of this leaf lie on,
 * which is locked. A walk that holds no longer is forgotten: later it might
 * look as if it did.
 */
bool
walk_is_known(Known *known, Page page, BlockNumber leaf, BlockNumber *highest)
{
	Walks	   *walks = walks_of(known);
	Walk	   *walk;

	if (walks == NULL)
		return false;
	walk = &walks->walks[leaf % WALKS];
	if (walk->leaf == leaf && walk->end == PageGetMaxOffsetNumber(page) &&
		walk->right == BTPageGetOpaque(page)->btpo_next)
	{
		*highest = walk->highest;
		return true;
	}
	walk->leaf = P_NONE;
	return false;
}

/* The rows of an entry, and how many they are: where keys are equal more than one. */
static inline ItemPointer
tids_of_entry(Page page, OffsetNumber offnum, int *count)
{
	IndexTuple	entry = (IndexTuple) PageGetItem(page, PageGetItemId(page, offnum));

	if (unlikely(BTreeTupleIsPosting(entry)))
	{
		*count = BTreeTupleGetNPosting(entry);
		return BTreeTupleGetPosting(entry);
	}
	*count = 1;
	return &entry->t_tid;
}

/*
 * The highest page that a row of this leaf lies on, one apart, or
 * InvalidBlockNumber. The leaf is locked.
 */
static BlockNumber
highest_block(Page page, BlockNumber apart)
{
	OffsetNumber end = PageGetMaxOffsetNumber(page);
	BlockNumber highest = InvalidBlockNumber;
	int64		above = -1;

	for (OffsetNumber offnum = P_FIRSTDATAKEY(BTPageGetOpaque(page)); offnum <= end; offnum++)
	{
		int			count;
		ItemPointer tids = tids_of_entry(page, offnum, &count);

		for (int i = 0; i < count; i++)
		{
			BlockNumber block = ItemPointerGetBlockNumberNoCheck(&tids[i]);

			if ((int64) block > above && block != apart)
				above = highest = block;
		}
	}
	return highest;
}

/*
 * The pages that rows of this leaf lie on, without two of them; their number.
 * A few may stand more than once. The leaf is locked.
 */
static int
other_blocks(Page page, BlockNumber neighbour, BlockNumber highest, BlockNumber *blocks)
{
	OffsetNumber end = PageGetMaxOffsetNumber(page);
	BlockNumber last = highest;
	BlockNumber seen[64];
	int			found = 0;

	for (int i = 0; i < lengthof(seen); i++)
		seen[i] = highest;
	for (OffsetNumber offnum = P_FIRSTDATAKEY(BTPageGetOpaque(page)); offnum <= end; offnum++)
	{
		int			count;
		ItemPointer tids = tids_of_entry(page, offnum, &count);

		for (int i = 0; i < count; i++)
		{
			BlockNumber block = ItemPointerGetBlockNumberNoCheck(&tids[i]);

			if (block == last || block == highest || block == neighbour)
				continue;
			last = block;
			if (seen[block % lengthof(seen)] == block)
				continue;
			seen[block % lengthof(seen)] = block;
			blocks[found++] = block;
		}
	}
	return found;
}

/*
 * Locks the leaf for reading, where the row has been found to belong; false,
 * and no lock: it has been deleted since. If it has been split it is still
 * a part of the neighbourhood.
 */
static bool
lock_leaf_again(const Place *place)
{
	BTPageOpaque opaque;

	_bt_lockbuf(place->index, place->leaf, BT_READ);
	opaque = BTPageGetOpaque(BufferGetPage(place->leaf));
	if (P_ISLEAF(opaque) && !P_IGNORE(opaque))
		return true;
	_bt_unlockbuf(place->index, place->leaf);
	return false;
}

static void
remember_walk(Known *known, Page page, BlockNumber leaf, BlockNumber highest)
{
	Walks	   *walks = walks_of(known);
	Walk	   *walk;

	if (walks == NULL)
		return;
	walk = &walks->walks[leaf % WALKS];
	walk->leaf = leaf;
	walk->right = BTPageGetOpaque(page)->btpo_next;
	walk->highest = highest;
	walk->end = PageGetMaxOffsetNumber(page);
}

/*
 * The highest page that a row of this leaf lies on, the neighbour's apart, or
 * InvalidBlockNumber.
 */
static BlockNumber
highest_of_leaf(Known *known, const Place *place)
{
	Page		page = BufferGetPage(place->leaf);
	BlockNumber highest = place->highest;

	if (place->has_highest && highest != place->neighbour)
		return highest;
	if (!lock_leaf_again(place))
		return InvalidBlockNumber;
	if (!place->has_highest)
	{
		highest = highest_block(page, InvalidBlockNumber);
		remember_walk(known, page, place->leaf_block, highest);
	}
	if (highest == place->neighbour)
		highest = highest_block(page, highest);
	_bt_unlockbuf(place->index, place->leaf);
	return highest;
}

/* A row was told to try this page first, and its entry is to come to this leaf. */
void
walk_told_row(Known *known, const Place *place, BlockNumber block)
{
	Walks	   *walks = walks_of(known);

	if (walks == NULL)
		return;
	walks->told_leaf = place->leaf_block;
	walks->told_block = block;
}

/*
 * Before the next row: the walk over the leaf of the one before goes on if that
 * row is where it was told, else it is forgotten. Heap's hint is where its last
 * row of this session is.
 */
void
walk_got_row(Known *known, Relation heap)
{
	Walks	   *walks = known->walks;
	Walk	   *walk;

	if (walks == NULL || walks->told_leaf == P_NONE)
		return;
	walk = &walks->walks[walks->told_leaf % WALKS];
	if (walk->leaf == walks->told_leaf)
	{
		if (RelationGetTargetBlock(heap) != walks->told_block)
			walk->leaf = P_NONE;
		else if (walk->highest == InvalidBlockNumber || walks->told_block > walk->highest)
			walk->highest = walks->told_block;
		walk->end++;
	}
	walks->told_leaf = P_NONE;
}

/* A page with room that rows of this leaf lie on, the neighbour's apart, or InvalidBlockNumber. */
BlockNumber
block_of_leaf(Relation heap, Known *known, const Place *place, const Need *need)
{
	BlockNumber blocks[MaxTIDsPerBTreePage];
	BlockNumber highest = highest_of_leaf(known, place);
	int			count;

	if (highest == InvalidBlockNumber)
		return InvalidBlockNumber;
	/* Most rows go there, so the others are gone through only where one does not. */
	if (block_exists(heap, highest) && block_takes(heap, highest, need))
		return highest;
	if (!lock_leaf_again(place))
		return InvalidBlockNumber;
	count = other_blocks(BufferGetPage(place->leaf), place->neighbour, highest, blocks);
	_bt_unlockbuf(place->index, place->leaf);
	return highest_recorded_with_room(heap, blocks, count, need);
}
