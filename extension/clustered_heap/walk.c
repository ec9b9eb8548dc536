/*
 * walk.c
 *		The pages of the table that the entries of a leaf name.
 *
 * Who needs the highest of them walks over some hundred entries, which takes as
 * long as a descent. So what a walk has found is remembered.
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "clustered_heap.h"

/*
 * Leaves that a session remembers its walk over, for each table: at most, which
 * more than a million rows of a short key have, and at least.
 */
#define WALKS_MOST 4096
#define WALKS_LEAST 128

/* Pages of a leaf that may have room, to be remembered. */
#define ROOMY 7

/*
 * What a walk has found: the highest page that a row of the leaf lies on, and
 * which others have room by the map.
 *
 * The highest is that of before plus the rows that we have placed since, as long
 * as the leaf has as many entries more and the same neighbour: a split, VACUUM,
 * and entries that others have inserted or we have by other ways all change one
 * of them. Where they do so by chance and cancel out, a row comes to a page that
 * was its leaf's a moment ago.
 *
 * The others, from the highest down, are those that had room by the map when
 * they were looked for; all of them, or those above the last. Where others tell
 * the map of more, it is noticed with the next walk.
 */
typedef struct Walk
{
	BlockNumber leaf;			/* or P_NONE */
	BlockNumber right;			/* neighbour of the leaf */
	BlockNumber highest;
	OffsetNumber end;			/* its last entry */
	uint16		room;			/* that was looked for; 0: not yet */
	uint8		roomy_count;
	bool		is_whole;		/* no other page had it */
	uint32		map_raises;		/* then (room.c) */
	BlockNumber roomy[ROOMY];
} Walk;

struct Walks
{
	uint32		mask;			/* one less than there are, a power of two */
	BlockNumber told_leaf;		/* leaf of the row before, or P_NONE */
	BlockNumber told_block;		/* the page that it was told to try first */
	bool		told_empty;		/* which had no rows */
	uint32		crowded;		/* walks that had to go for one over another leaf */
	Walk		walks[FLEXIBLE_ARRAY_MEMBER];
};

/* Where a walk over this leaf is kept, or one over another. */
static inline Walk *
walk_slot(Walks *walks, BlockNumber leaf)
{
	return &walks->walks[leaf & walks->mask];
}

static Walks *
make_walks(Known *known, uint32 count)
{
	Walks	   *walks = MemoryContextAllocZero(context_of_known(known),
											   offsetof(Walks, walks) + count * sizeof(Walk));

	walks->mask = count - 1;
	return walks;
}

/* Where walks over this index are remembered, or NULL. */
static Walks *
walks_of(Known *known, Relation index)
{
	if (known->walks == NULL && known->looks >= LOOKS_BEFORE_REMEMBERING)
	{
		uint32		leaves = Min(RelationGetNumberOfBlocks(index), WALKS_MOST);

		known->walks = make_walks(known, pg_nextpower2_32(Max(leaves, WALKS_LEAST)));
	}
	return known->walks;
}

/* The index has grown: twice as many walks. */
static void
remember_more_walks(Known *known)
{
	Walks	   *walks = known->walks;
	Walks	   *more = make_walks(known, 2 * (walks->mask + 1));

	for (uint32 i = 0; i <= walks->mask; i++)
		if (walks->walks[i].leaf != P_NONE)
			*walk_slot(more, walks->walks[i].leaf) = walks->walks[i];
	pfree(walks);
	known->walks = more;
}

/* The walk over this leaf that is remembered, or NULL. */
static Walk *
walk_over(Known *known, const Place *place)
{
	Walks	   *walks = walks_of(known, place->index);
	Walk	   *walk = walks == NULL ? NULL : walk_slot(walks, place->leaf_block);

	return walk != NULL && walk->leaf == place->leaf_block ? walk : NULL;
}

/*
 * Whether it is known which page is the highest that rows of this leaf lie on,
 * which is locked. A walk that holds no longer is forgotten: later it might
 * look as if it did.
 */
bool
walk_is_known(Known *known, Relation index, Page page, BlockNumber leaf, BlockNumber *highest)
{
	Walks	   *walks = walks_of(known, index);
	Walk	   *walk;

	if (walks == NULL)
		return false;
	walk = walk_slot(walks, leaf);
	if (walk->leaf == leaf && walk->end == PageGetMaxOffsetNumber(page) &&
		walk->right == BTPageGetOpaque(page)->btpo_next)
	{
		*highest = walk->highest;
		return true;
	}
	if (walk->leaf != P_NONE && walk->leaf != leaf)
		walks->crowded++;
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
 * The pages that rows of this leaf lie on, at most MaxTIDsPerBTreePage; their
 * number. A few may stand more than once. The leaf is locked.
 */
static int
blocks_of_page(Page page, BlockNumber *blocks)
{
	OffsetNumber end = PageGetMaxOffsetNumber(page);
	BlockNumber last = InvalidBlockNumber;
	BlockNumber seen[64];
	int			found = 0;

	memset(seen, 0xFF, sizeof(seen));
	for (OffsetNumber offnum = P_FIRSTDATAKEY(BTPageGetOpaque(page)); offnum <= end; offnum++)
	{
		int			count;
		ItemPointer tids = tids_of_entry(page, offnum, &count);

		for (int i = 0; i < count; i++)
		{
			BlockNumber block = ItemPointerGetBlockNumberNoCheck(&tids[i]);

			if (block == last)
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

/* The highest of these pages, one apart, or InvalidBlockNumber. */
static BlockNumber
highest_of(const BlockNumber *blocks, int count, BlockNumber apart)
{
	BlockNumber highest = InvalidBlockNumber;

	for (int i = 0; i < count; i++)
		if (blocks[i] != apart && (highest == InvalidBlockNumber || blocks[i] > highest))
			highest = blocks[i];
	return highest;
}

static void
remember_walk(Known *known, Relation index, Page page, BlockNumber leaf, BlockNumber highest)
{
	Walks	   *walks = walks_of(known, index);
	Walk	   *walk;

	if (walks == NULL)
		return;
	walk = walk_slot(walks, leaf);
	walk->leaf = leaf;
	walk->right = BTPageGetOpaque(page)->btpo_next;
	walk->highest = highest;
	walk->end = PageGetMaxOffsetNumber(page);
	walk->room = 0;
}

/*
 * Walks over the leaf where the row has been found to belong; the number of
 * pages, -1: it has been deleted since. If it has been split it is still a part
 * of the neighbourhood.
 */
static int
walk_again(Known *known, const Place *place, BlockNumber *blocks)
{
	Page		page = BufferGetPage(place->leaf);
	int			count = -1;

	_bt_lockbuf(place->index, place->leaf, BT_READ);
	if (P_ISLEAF(BTPageGetOpaque(page)) && !P_IGNORE(BTPageGetOpaque(page)))
	{
		count = blocks_of_page(page, blocks);
		if (!place->has_highest)
			remember_walk(known, place->index, page, place->leaf_block,
						  highest_of(blocks, count, InvalidBlockNumber));
	}
	_bt_unlockbuf(place->index, place->leaf);
	return count;
}

/* A row was told to try this page first, and its entry is to come to this leaf. */
void
walk_told_row(Known *known, const Place *place, BlockNumber block, bool was_empty)
{
	Walks	   *walks = known->walks;

	if (walks == NULL)
		return;
	walks->told_leaf = place->leaf_block;
	walks->told_block = block;
	walks->told_empty = was_empty;
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
	walk = walk_slot(walks, walks->told_leaf);
	if (walk->leaf == walks->told_leaf)
	{
		if (RelationGetTargetBlock(heap) != walks->told_block)
			walk->leaf = P_NONE;
		else if (walk->highest == InvalidBlockNumber || walks->told_block > walk->highest)
			walk->highest = walks->told_block;
		/* One more page, and the map has been corrected where it was asked for it. */
		if (walks->told_empty)
			walk->room = 0;
		walk->end++;
	}
	walks->told_leaf = P_NONE;
	if (walks->crowded > walks->mask && walks->mask + 1 < WALKS_MOST)
		remember_more_walks(known);
}

/*
 * The first of the pages that are remembered to have room which has it for this
 * row, or InvalidBlockNumber. Those that the map knows better of are forgotten.
 */
static BlockNumber
roomy_block(Relation heap, Walk *walk, const Place *place, BlockNumber highest, const Need *need)
{
	BlockNumber found = InvalidBlockNumber;
	Buffer		pinned = InvalidBuffer;
	int			left = 0;

	for (int i = 0; i < walk->roomy_count; i++)
	{
		BlockNumber block = walk->roomy[i];

		if (found == InvalidBlockNumber && block != place->neighbour && block != highest)
		{
			Size		recorded = recorded_room(heap, block, &pinned);

			if (recorded < walk->room)
				continue;
			if (recorded >= room_for(need) && block_takes_or_is_told(heap, block, need))
				found = block;
		}
		walk->roomy[left++] = block;
	}
	walk->roomy_count = left;
	if (BufferIsValid(pinned))
		ReleaseBuffer(pinned);
	return found;
}

/*
 * The highest page with room by the map that rows of this leaf lie on, apart
 * from its highest one and the neighbour's, or InvalidBlockNumber.
 */
static BlockNumber
other_block_of_leaf(Relation heap, Known *known, const Place *place, BlockNumber highest,
					const Need *need, BlockNumber *blocks, int count)
{
	Walk	   *walk = walk_over(known, place);
	Walk		walked;

	/* What has room for a longer row has it for a shorter one, too. */
	if (walk != NULL && walk->room > 0 && walk->room <= room_for(need) &&
		walk->map_raises == map_raises)
	{
		BlockNumber found = roomy_block(heap, walk, place, highest, need);

		if (found != InvalidBlockNumber || walk->is_whole)
			return found;
	}
	if (count < 0)
		count = walk_again(known, place, blocks);
	if (count < 0)
		return InvalidBlockNumber;
	if (walk == NULL)
		walk = &walked;
	/* Of each lot all are found full but for the two that are not looked at. */
	for (int gone = 0; gone <= count; gone += ROOMY - 2)
	{
		BlockNumber found;

		/* No list, should this fail in the middle. */
		walk->room = 0;
		walk->roomy_count = recorded_blocks_with_room(heap, blocks, count, need, walk->roomy,
													  ROOMY, &walk->is_whole);
		walk->room = room_for(need);
		walk->map_raises = map_raises;
		found = roomy_block(heap, walk, place, highest, need);
		if (found != InvalidBlockNumber || walk->is_whole)
			return found;
	}
	return InvalidBlockNumber;
}

/* A page with room that rows of this leaf lie on, the neighbour's apart, or InvalidBlockNumber. */
BlockNumber
block_of_leaf(Relation heap, Known *known, const Place *place, const Need *need)
{
	BlockNumber blocks[MaxTIDsPerBTreePage];
	BlockNumber highest = place->highest;
	int			count = -1;

	if (!place->has_highest || highest == place->neighbour)
	{
		count = walk_again(known, place, blocks);
		highest = highest_of(blocks, count, place->neighbour);
		if (highest == InvalidBlockNumber)
			return InvalidBlockNumber;
	}
	/* Most rows go there, so the others are gone through only where one does not. */
	if (block_exists(heap, highest))
	{
		/* Where rows have been told to go there mostly is room. */
		bool		takes = count < 0 ? block_takes(heap, highest, need) :
			full_block_takes(heap, highest, need);

		if (takes)
			return highest;
	}
	return other_block_of_leaf(heap, known, place, highest, need, blocks, count);
}
