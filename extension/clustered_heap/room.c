/*
 * room.c
 *		Finds pages with room for a row: among those that are named, an empty
 *		one, or any.
 *
 * Pages are read without a lock, and the free space map is believed only as
 * far as the page itself agrees: it is told what was found there. So each
 * wrong word of the map costs one look.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "storage/bufmgr.h"
#include "storage/freespace.h"
#include "storage/smgr.h"
#include "utils/rel.h"

#include "clustered_heap.h"
#include "compat.h"

#define ST_SORT sort_blocks_down
#define ST_ELEMENT_TYPE BlockNumber
#define ST_COMPARE(a, b) ((*(a) < *(b)) - (*(a) > *(b)))
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* Heap's own word for a page that is as good as empty (hio.c). */
#define NEARLY_EMPTY \
	(MaxHeapTupleSize - (MaxHeapTuplesPerPage / 8 * sizeof(ItemIdData)))

/*
 * Pages that the free space map names, looked at until one is what it says.
 * Arbitrary: each look corrects the map, so a longer search is only put off.
 */
#define MAP_TRIES 4

/*
 * A table is sparse if that many pages, evenly spaced, are more than half free
 * on average. Arbitrary: enough pages to tell a half from a third.
 */
#define SAMPLED_PAGES 64

/* How often this session has found that a map knew of less room than there is (is_sparse). */
uint32		map_raises = 0;

/* What heap will look for (RelationGetBufferForTuple, hio.c). */
Need
need_of_row(Relation heap, HeapTuple row)
{
	Need		need;

	need.len = MAXALIGN(row->t_len);
	need.reserve = RelationGetTargetPageFreeSpace(heap, HEAP_DEFAULT_FILLFACTOR);
	need.toasted = OidIsValid(heap->rd_rel->reltoastrelid) &&
		(row->t_len > TOAST_TUPLE_THRESHOLD || HeapTupleHasExternal(row));
	if (need.toasted)
		need.len = Min(need.len, MAXALIGN(RelationGetToastTupleTarget(heap, TOAST_TUPLE_TARGET)));
	return need;
}

/* Bytes that have to be free on a page for a row of this length. */
static Size
free_for(const Need *need, Size len)
{
	if (len + need->reserve > NEARLY_EMPTY)
		return Max(len, NEARLY_EMPTY);
	return len + need->reserve;
}

/*
 * Whether the row fits on a page. Read without a lock, as heap_page_prune_opt
 * does: heap looks again, with one.
 *
 * How long a row will be that TOAST compresses or moves out is not known here:
 * as long as the rows on this page are.
 */
static bool
page_takes(Page page, const Need *need)
{
	Size		len = need->len;
	Size		row_count;

	if (PageIsNew(page))
		return true;
	/* Without a lock it may be another one when it is read again. */
	row_count = PageGetMaxOffsetNumber(page);
	if (need->toasted && row_count > 0)
	{
		Size		rows_bytes = BLCKSZ - ((PageHeader) page)->pd_upper;

		len = Min(len, MAXALIGN(rows_bytes / row_count));
	}
	return PageGetHeapFreeSpace(page) >= free_for(need, len);
}

/* Free bytes, as the map is to be told them. */
static Size
free_bytes(Page page)
{
	return PageIsNew(page) ? BLCKSZ - SizeOfPageHeaderData : PageGetHeapFreeSpace(page);
}

/*
 * Whether the row fits on that page, if need be after pruning; *left: the bytes
 * that are free there.
 */
static bool
look_at_block(Relation heap, BlockNumber block, const Need *need, Size *left)
{
	Buffer		buffer = ReadBuffer(heap, block);
	Page		page = BufferGetPage(buffer);
	bool		takes = page_takes(page, need);

	if (!takes)
	{
		compat_heap_page_prune_opt(heap, buffer);
		takes = page_takes(page, need);
	}
	*left = free_bytes(page);
	ReleaseBuffer(buffer);
	return takes;
}

/*
 * Whether the table has that page. The kernel is asked only about pages behind
 * those that this session has seen: what has truncated the table since has
 * waited for the lock that our caller has, and told us of it.
 */
bool
block_exists(Relation heap, BlockNumber block)
{
	BlockNumber seen = RelationGetSmgr(heap)->smgr_cached_nblocks[MAIN_FORKNUM];

	return (seen != InvalidBlockNumber && block < seen) ||
		block < RelationGetNumberOfBlocks(heap);
}

/* Whether the row fits on that page. */
bool
block_takes(Relation heap, BlockNumber block, const Need *need)
{
	Size		left;

	return look_at_block(heap, block, need, &left);
}

/* The same of a page that is likely to be full and not in memory: the maps are asked first. */
bool
full_block_takes(Relation heap, BlockNumber block, const Need *need)
{
	if (!need->toasted && maps_say_full(heap, block, room_for(need)))
		return false;
	return block_takes(heap, block, need);
}

/* Bytes that have to be free on a page for this row. */
Size
room_for(const Need *need)
{
	return free_for(need, need->len);
}

/* The bytes that the map calls free on that page (map_room); 0 where there is none. */
Size
recorded_room(Relation heap, BlockNumber block, Buffer *pinned)
{
	return block_exists(heap, block) ? map_room(heap, block, pinned) : 0;
}

/* Whether the row fits on that page; if it does not, the map is told of it. */
bool
block_takes_or_is_told(Relation heap, BlockNumber block, const Need *need)
{
	Size		left;

	if (look_at_block(heap, block, need, &left))
		return true;
	RecordPageWithFreeSpace(heap, block, left);
	return false;
}

/*
 * Those of these pages that have room by the map, the highest first, at most so
 * many; their number. *is_whole: there are no others. Sorts the array, in which
 * a page may stand more than once.
 */
int
recorded_blocks_with_room(Relation heap, BlockNumber *blocks, int count, const Need *need,
						  BlockNumber *roomy, int most, bool *is_whole)
{
	Buffer		pinned = InvalidBuffer;
	int			found = 0;

	*is_whole = true;
	sort_blocks_down(blocks, count);
	for (int i = 0; i < count; i++)
	{
		if ((i > 0 && blocks[i] == blocks[i - 1]) ||
			recorded_room(heap, blocks[i], &pinned) < room_for(need))
			continue;
		if (found == most)
		{
			*is_whole = false;
			break;
		}
		roomy[found++] = blocks[i];
	}
	if (BufferIsValid(pinned))
		ReleaseBuffer(pinned);
	return found;
}

/*
 * Whether no line pointer of the page is in use; without a lock, as above.
 * *left: the bytes that are free there.
 */
static bool
block_is_empty(Relation heap, BlockNumber block, Size *left)
{
	Buffer		buffer = ReadBuffer(heap, block);
	Page		page = BufferGetPage(buffer);
	OffsetNumber end = PageIsNew(page) ? 0 : PageGetMaxOffsetNumber(page);
	bool		is_empty = true;

	for (OffsetNumber offnum = FirstOffsetNumber; offnum <= end && is_empty; offnum++)
		is_empty = !ItemIdIsUsed(PageGetItemId(page, offnum));
	*left = free_bytes(page);
	ReleaseBuffer(buffer);
	return is_empty;
}

/*
 * A page without rows that the map knows, or InvalidBlockNumber.
 *
 * A page with a few rows is not taken, though there is room: it is where the
 * latecomers of another leaf are.
 */
static BlockNumber
known_empty_block(Relation heap)
{
	BlockNumber block = GetPageWithFreeSpace(heap, NEARLY_EMPTY);

	for (int i = 0; i < MAP_TRIES && block != InvalidBlockNumber; i++)
	{
		Size		told = 0;

		/* The map is not crash-safe: it may name what is not there. */
		if (block < RelationGetNumberOfBlocks(heap) &&
			block_is_empty(heap, block, &told))
			return block;
		/* Less than what we asked for, by a step of the map or more. */
		told = Min(told, NEARLY_EMPTY - MAP_STEP);
		block = RecordAndGetPageWithFreeSpace(heap, block, told, NEARLY_EMPTY);
	}
	return InvalidBlockNumber;
}

/* Any page with room by the map, as heap would take it, or InvalidBlockNumber. */
static BlockNumber
any_block_with_room(Relation heap, const Need *need)
{
	Size		wanted = free_for(need, need->len);
	BlockNumber block = GetPageWithFreeSpace(heap, wanted);

	for (int i = 0; i < MAP_TRIES && block != InvalidBlockNumber; i++)
	{
		Size		left = 0;

		if (block < RelationGetNumberOfBlocks(heap) &&
			look_at_block(heap, block, need, &left))
			return block;
		block = RecordAndGetPageWithFreeSpace(heap, block, left, wanted);
	}
	return InvalidBlockNumber;
}

/*
 * Whether half of the table's pages and more is free, the reserve apart.
 *
 * The map calls a page empty until somebody finds it full, so where it speaks
 * of much room the page is read.
 */
static bool
is_sparse(Relation heap, const Need *need)
{
	BlockNumber end = RelationGetNumberOfBlocks(heap);
	BlockNumber count = Min(end, SAMPLED_PAGES);
	Size		usable = BLCKSZ - SizeOfPageHeaderData - need->reserve;
	Buffer		pinned = InvalidBuffer;
	uint64		sum = 0;
	bool		sparse = count > 0;

	for (BlockNumber i = 0; i < count && sparse; i++)
	{
		BlockNumber block = (BlockNumber) ((uint64) i * end / count);
		Size		left = map_room(heap, block, &pinned);

		if (left > usable / 2)
		{
			Buffer		buffer = ReadBuffer(heap, block);
			Size		recorded = left;

			left = free_bytes(BufferGetPage(buffer));
			ReleaseBuffer(buffer);
			RecordPageWithFreeSpace(heap, block, left);
			if (left >= recorded + MAP_STEP)
				map_raises++;
		}
		if (left > need->reserve)
			sum += Min(left - need->reserve, usable);
		/* Not even if the pages that are left were free. */
		sparse = 2 * (sum + (uint64) (count - i - 1) * usable) > (uint64) count * usable;
	}
	if (BufferIsValid(pinned))
		ReleaseBuffer(pinned);
	return sparse;
}

/*
 * A page for a row that none of its leaf's takes: an empty one that the map
 * knows and that is above a page (InvalidBlockNumber: wherever it is), else a
 * new one. In a sparse table, rather than a new one, any with room.
 *
 * The map is told of a new page at once, so that it is found again if the row
 * does not come after all (ON CONFLICT, a constraint that fails): no number of
 * such rows makes more than one page.
 */
BlockNumber
block_for_latecomers(Relation heap, BlockNumber above, const Need *need)
{
	BlockNumber block = known_empty_block(heap);

	if (block != InvalidBlockNumber && above != InvalidBlockNumber && block <= above)
	{
		Size		left;

		/* The one that was added for a row which did not come, perhaps. */
		block = RelationGetNumberOfBlocks(heap) - 1;
		if (block <= above || !block_is_empty(heap, block, &left))
			block = InvalidBlockNumber;
	}
	if (block != InvalidBlockNumber)
		return block;
	if (is_sparse(heap, need))
	{
		block = any_block_with_room(heap, need);
		if (block != InvalidBlockNumber)
			return block;
	}
	block = compat_add_page(heap);
	RecordPageWithFreeSpace(heap, block, BLCKSZ - SizeOfPageHeaderData);
	FreeSpaceMapVacuumRange(heap, block, block + 1);
	return block;
}
