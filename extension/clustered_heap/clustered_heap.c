/*
 * clustered_heap.c
 *		What is done when the library is loaded.
 */
#include "postgres.h"

#include "fmgr.h"

#include "clustered_heap.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	cluster_index_init();
	access_method_init();
	sort_init();
}
