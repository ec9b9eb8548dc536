/*
 * compat.h
 *		What differs between PostgreSQL 15 and 19, and nothing else.
 *
 * Every other file is written for all versions alike: no other file asks for
 * PG_VERSION_NUM.
 */
#ifndef CLUSTERED_HEAP_COMPAT_H
#define CLUSTERED_HEAP_COMPAT_H

#include "access/genam.h"
#include "access/tableam.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "clustered_heap is for PostgreSQL 15 to 19"
#endif

/* 18 added the instrumentation of a scan, 19 its flags. */
static inline IndexScanDesc
compat_index_beginscan(Relation heap, Relation index, Snapshot snapshot)
{
#if PG_VERSION_NUM >= 190000
	return index_beginscan(heap, index, snapshot, NULL, 0, 0, SO_NONE);
#elif PG_VERSION_NUM >= 180000
	return index_beginscan(heap, index, snapshot, NULL, 0, 0);
#else
	return index_beginscan(heap, index, snapshot, 0, 0);
#endif
}

/* 19 added the scan's flags. */
static inline TableScanDesc
compat_table_beginscan(Relation heap, Snapshot snapshot)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan(heap, snapshot, 0, NULL, SO_NONE);
#else
	return table_beginscan(heap, snapshot, 0, NULL);
#endif
}

#endif							/* CLUSTERED_HEAP_COMPAT_H */
