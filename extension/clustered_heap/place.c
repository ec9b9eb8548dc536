/*
 * place.c
 *		Tells heap on which page the row that is about to come belongs: for
 *		cluster_place(), a BEFORE INSERT row trigger on plain heap, and for the
 *		access method clustered_heap.
 *
 * Nothing is written here but pages of zeros and the free space map. Heap has
 * one hint for each relation, the page to try first (RelationSetTargetBlock),
 * which it resets itself wherever the file shrinks. Here that hint is set.
 * A wrong one costs order, never a row: heap locks the page, looks whether the
 * row fits, and asks the free space map if it does not
 * (RelationGetBufferForTuple, hio.c). So what a session remembers to save looks
 * into the index (key.c, leaf.c, walk.c) may be wrong too.
 *
 * Which page:
 *
 *	1. That of the row before it in the index, or, where that stands on
 *	   another leaf, of the row after it.
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
#include "utils/memutils.h"
#include "utils/rel.h"

#include "clustered_heap.h"

PG_FUNCTION_INFO_V1(cluster_place);

/*
 * Rows that are taken to come behind all others, by the last key, before the
 * index is asked again. Arbitrary: few enough to be lost among a leaf's.
 */
#define LOOKS_SAVED 64

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
 * Comparing values that are passed by reference may leave memory behind, and
 * not every caller's context ends with the row. NULL: none will be left.
 */
static MemoryContext
begin_comparing(const Known *known)
{
	MemoryContext context;

	if (key_is_by_value(known))
		return NULL;
	context = AllocSetContextCreate(CurrentMemoryContext, "clustered_heap row",
									ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(context);
	return context;
}

static void
end_comparing(MemoryContext context)
{
	if (context == NULL)
		return;
	MemoryContextSwitchTo(MemoryContextGetParent(context));
	MemoryContextDelete(context);
}

/*
 * Finds where a key belongs: first by the last key, if it is enough to know
 * that it comes behind all others. false: nowhere, or comparing has called what
 * made us ask anew which index is marked.
 */
static bool
find_key(Relation heap, Known *known, BTScanInsert key, bool may_go_on, bool in_batch,
		 Place *place)
{
	uint64		changes = known->changes;
	bool		goes_on = key_goes_on(known, heap, key);

	if (known->changes != changes)
		return false;
	place->changes = changes;
	if (goes_on && may_go_on && known->looks_saved < LOOKS_SAVED)
	{
		key_keep_last(known, heap, key, changes);
		known->looks_saved++;
		place->at_end = true;
		place->leaf = InvalidBuffer;
		return true;
	}
	if (place->index == NULL)
		place->index = open_known_index(heap, known, &place->lock);
	if (place->index == NULL || !place_of_key(heap, known, key, place))
		return false;
	known->looks_saved = 0;
	if (!place->at_end)
	{
		/* Others have gone on. */
		if (goes_on)
			key_forget_last(known);
	}
	/* Rows of a batch that are higher may not be in the index yet. */
	else if (goes_on || !in_batch || !key_has_last(known))
		key_keep_last(known, heap, key, changes);
	return true;
}

/*
 * Finds where a row belongs; false: nowhere, since no index is marked or it is
 * empty. place->index stays open if it was opened, place->leaf pinned if valid.
 */
static bool
find_place(Relation heap, Known *known, HeapTuple row, bool may_go_on, bool in_batch,
		   Place *place)
{
	BTScanInsertData key;
	MemoryContext context;
	bool		found;

	place->index = NULL;
	if (!OidIsValid(known->index))
		return false;
	if (known->key == NULL)
	{
		place->index = open_known_index(heap, known, &place->lock);
		if (place->index == NULL)
			return false;
		key_of_index(known, place->index);
	}
	context = begin_comparing(known);
	key_of_row(known, heap, row, &key);
	found = find_key(heap, known, &key, may_go_on, in_batch, place);
	end_comparing(context);
	return found;
}

static void
close_index(const Place *place)
{
	if (place->index != NULL)
		relation_close(place->index, place->lock);
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

/* The page for a row, by the three steps above; *is_empty: by the last. */
static BlockNumber
block_of_place(Relation heap, Known *known, const Place *place, const Need *need, Batch *batch,
			   bool *is_empty)
{
	BlockNumber block;

	*is_empty = false;
	if (block_exists(heap, place->neighbour) && full_block_takes(heap, place->neighbour, need))
		return place->neighbour;
	block = block_of_leaf(heap, known, place, need);
	if (block != InvalidBlockNumber)
		return block;
	*is_empty = true;
	return page_for_latecomers(heap, place, need, batch);
}

/*
 * Sets heap's hint for the row that is about to be inserted; false: heap is to
 * do as it would without us.
 *
 * A row that comes behind all others after one that did is heap's own business:
 * so each session appends to a page of its own, as in plain heap.
 */
bool
place_row(Relation heap, HeapTuple row, Batch *batch)
{
	Known	   *known = known_of(heap);
	bool		went_on = known->goes_on;
	bool		placed = false;
	Need		need = need_of_row(heap, row);
	Place		place;

	/* Heap will refuse a longer one. */
	if (need.len > MaxHeapTupleSize)
		return false;
	walk_got_row(known, heap);
	if (find_place(heap, known, row, went_on, batch != NULL, &place))
	{
		known->goes_on = place.at_end;
		if (!went_on || !place.at_end)
		{
			bool		is_empty;
			BlockNumber block = block_of_place(heap, known, &place, &need, batch, &is_empty);

			RelationSetTargetBlock(heap, block);
			walk_told_row(known, &place, block, is_empty);
			placed = true;
		}
		if (BufferIsValid(place.leaf))
			ReleaseBuffer(place.leaf);
	}
	close_index(&place);
	return placed;
}

/*
 * Whether a row of a batch comes behind all that are there; so does every row
 * of an empty table, or where no index is marked.
 */
bool
row_goes_to_end(Relation heap, HeapTuple row)
{
	Place		place;
	bool		to_end = true;

	if (find_place(heap, known_of(heap), row, true, true, &place))
	{
		to_end = place.at_end;
		if (BufferIsValid(place.leaf))
			ReleaseBuffer(place.leaf);
	}
	close_index(&place);
	return to_end;
}

/* A version with a key that is not below the last one is the last one now. */
static void
note_key(Relation heap, Known *known, HeapTuple row)
{
	BTScanInsertData key;
	MemoryContext context;

	if (!key_has_last(known))
		return;
	context = begin_comparing(known);
	key_of_row(known, heap, row, &key);
	if (key_goes_on(known, heap, &key))
		key_forget_last(known);
	end_comparing(context);
}

/*
 * Sets heap's hint for a new version of a row that does not fit on the page of
 * the old one. (heap_update keeps it there if it does, whatever its key.)
 */
void
place_version(Relation heap, HeapTuple row, ItemPointer old)
{
	Need		beside = need_of_row(heap, row);

	/* The reserve is for this. */
	beside.reserve = 0;
	if (block_takes(heap, ItemPointerGetBlockNumber(old), &beside))
		note_key(heap, known_of(heap), row);
	else
		(void) place_row(heap, row, NULL);
}

/* The trigger. The row is returned as it came. */
Datum
cluster_place(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

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

	/* Tables of access method clustered_heap are placed without. */
	if (is_heap(trigger->tg_relation))
		(void) place_row(trigger->tg_relation, trigger->tg_trigtuple, NULL);
	return PointerGetDatum(trigger->tg_trigtuple);
}
