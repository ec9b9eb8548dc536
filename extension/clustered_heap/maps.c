/*
 * maps.c
 *		Reads the free space map and the visibility map.
 *
 * Rows that come in no order ask for a few pages of the maps again and again,
 * each time by the buffer manager's hash table under a lock. So a session
 * remembers the buffer that such a page was in: ReadRecentBuffer looks whether
 * it is there still.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/visibilitymap.h"
#include "storage/bufmgr.h"
#include "storage/freespace.h"
#include "storage/fsm_internals.h"
#include "storage/smgr.h"
#include "utils/rel.h"

#include "clustered_heap.h"
#include "compat.h"

/* Where a page of a map was, or InvalidBuffer; of any table, so that it is looked at anew. */
typedef struct LastBuffer
{
	Buffer		buffer;
	BlockNumber block;
} LastBuffer;

/* Powers of two, arbitrary: a page speaks of 32 MB of a table, or of 255. */
#define FSM_BUFFERS 64
#define VM_BUFFERS 16

static LastBuffer fsm_buffers[FSM_BUFFERS];
static LastBuffer vm_buffers[VM_BUFFERS];

/* Of a table of any size; freespace.c has them for itself. */
#define FSM_DEPTH (SlotsPerFSMPage >= 1626 ? 3 : 4)

/* About as many pages as a page of the visibility map has two bits for. */
#define VM_PAGES (BLCKSZ * 4)

/* The page that was read last, pinned if it is still there; else InvalidBuffer. */
static Buffer
pin_again(Relation heap, ForkNumber fork, const LastBuffer *last)
{
	return compat_read_recent_buffer(heap, fork, last->block, last->buffer) ? last->buffer
		: InvalidBuffer;
}

/*
 * The page of the free space map that has the word of these pages of the table:
 * before it stand those of the pages before, and of each level above the first
 * ones (fsm_logical_to_physical, freespace.c).
 */
static BlockNumber
fsm_block(BlockNumber block)
{
	BlockNumber number = block / SlotsPerFSMPage;
	BlockNumber pages = 0;

	for (int level = 0; level < FSM_DEPTH; level++)
	{
		pages += number + 1;
		number /= SlotsPerFSMPage;
	}
	return pages - 1;
}

/* That page, pinned, or InvalidBuffer: there is none. */
static Buffer
read_fsm(Relation heap, BlockNumber block)
{
	SMgrRelation smgr = RelationGetSmgr(heap);
	BlockNumber end = smgr->smgr_cached_nblocks[FSM_FORKNUM];

	if (end == InvalidBlockNumber || block >= end)
		end = smgrexists(smgr, FSM_FORKNUM) ? smgrnblocks(smgr, FSM_FORKNUM) : 0;
	if (block >= end)
		return InvalidBuffer;
	/* The map is not crash-safe; a broken page is one that says nothing. */
	return ReadBufferExtended(heap, FSM_FORKNUM, block, RBM_ZERO_ON_ERROR, NULL);
}

/*
 * What GetRecordedFreeSpace says: bytes that the map calls free on a page,
 * rounded down. *pinned: a page of the map or InvalidBuffer, for the next word,
 * to be released by the caller.
 */
Size
map_room(Relation heap, BlockNumber block, Buffer *pinned)
{
	BlockNumber wanted = fsm_block(block);
	uint8		category;

	if (!BufferIsValid(*pinned) || BufferGetBlockNumber(*pinned) != wanted)
	{
		LastBuffer *last = &fsm_buffers[block / SlotsPerFSMPage % FSM_BUFFERS];

		if (BufferIsValid(*pinned))
			ReleaseBuffer(*pinned);
		*pinned = last->block == wanted ? pin_again(heap, FSM_FORKNUM, last) : InvalidBuffer;
		if (!BufferIsValid(*pinned))
			*pinned = read_fsm(heap, wanted);
		if (!BufferIsValid(*pinned))
			return 0;
		last->buffer = *pinned;
		last->block = wanted;
	}
	category = fsm_get_avail(BufferGetPage(*pinned), block % SlotsPerFSMPage);
	return category == 255 ? MaxHeapTupleSize : category * MAP_STEP;
}

/* Whether the visibility map calls a page all-visible. */
static bool
map_all_visible(Relation heap, BlockNumber block)
{
	LastBuffer *last = &vm_buffers[block / VM_PAGES % VM_BUFFERS];
	Buffer		buffer = pin_again(heap, VISIBILITYMAP_FORKNUM, last);
	uint8		status = visibilitymap_get_status(heap, block, &buffer);

	if (BufferIsValid(buffer))
	{
		last->buffer = buffer;
		last->block = BufferGetBlockNumber(buffer);
		ReleaseBuffer(buffer);
	}
	return (status & VISIBILITYMAP_ALL_VISIBLE) != 0;
}

/*
 * Whether the maps say that less than so many bytes are free on a page, which
 * saves reading it: no row of it is dead for anybody, so there is nothing to
 * prune, and nobody has been there since VACUUM told the free space map, which
 * rounds down.
 *
 * Nothing is what the map says of a page that nobody told it of, too (COPY
 * FREEZE; what a crash or a failover has lost): believed where it speaks of any
 * other of these 32 MB. A map that is wrong sends the row to another page, as it
 * does in plain heap.
 */
bool
maps_say_full(Relation heap, BlockNumber block, Size needed)
{
	Buffer		pinned = InvalidBuffer;
	Size		recorded;
	bool		is_full = false;

	if (!compat_maps_agree || !map_all_visible(heap, block))
		return false;
	recorded = map_room(heap, block, &pinned);
	if (BufferIsValid(pinned))
	{
		is_full = recorded + MAP_STEP <= needed &&
			(recorded > 0 || fsm_get_max_avail(BufferGetPage(pinned)) > 0);
		ReleaseBuffer(pinned);
	}
	return is_full;
}
