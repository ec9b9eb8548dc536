/*
 * sort.c
 *		clustered_heap.sort_insert_select: the source of INSERT ... SELECT comes
 *		in the order of the table's marked index.
 *
 * Rows that come in order fill page after page, and go through the index leaf
 * by leaf. The planner gets the statement as if its SELECT ended with ORDER BY
 * the index's columns; how it comes by that order is its own business.
 *
 * Only where SELECT promises no order and no choice of rows: it is left alone
 * if it has ORDER BY, LIMIT, DISTINCT or row locks of its own, or ORDER BY in
 * a sub-SELECT, CTE or view that it reads, whose order its rows come in as a
 * rule; and if its list has functions that return sets, which come in their own
 * order, or volatile ones, which are to see the rows as they come. So is a
 * statement with RETURNING, whose rows come back in that order, or with ON
 * CONFLICT, where the first of equal rows wins.
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "parser/parse_clause.h"
#include "parser/parse_node.h"
#include "parser/parsetree.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "clustered_heap.h"
#include "compat.h"

static bool sort_insert_select = false;
static planner_hook_type previous_planner = NULL;

/*
 * Number of the range table entry that is the SELECT of this INSERT, or 0.
 * INSERT ... SELECT has one from item, the SELECT as a subquery
 * (transformInsertStmt, analyze.c).
 */
static int
source_of_insert(Query *parse)
{
	RangeTblEntry *entry;
	Node	   *item;

	if (parse->commandType != CMD_INSERT || parse->resultRelation == 0 ||
		parse->returningList != NIL || parse->onConflict != NULL ||
		parse->jointree == NULL || list_length(parse->jointree->fromlist) != 1)
		return 0;
	item = linitial(parse->jointree->fromlist);
	if (!IsA(item, RangeTblRef))
		return 0;
	entry = rt_fetch(((RangeTblRef *) item)->rtindex, parse->rtable);
	if (entry->rtekind != RTE_SUBQUERY || entry->lateral)
		return 0;
	return ((RangeTblRef *) item)->rtindex;
}

/* Whether there is an ORDER BY in the query, or in one that it reads from. */
static bool
has_order_by(const Query *query)
{
	ListCell   *cell;

	check_stack_depth();
	if (query->sortClause != NIL)
		return true;
	foreach(cell, query->rtable)
	{
		const RangeTblEntry *entry = lfirst_node(RangeTblEntry, cell);

		if (entry->rtekind == RTE_SUBQUERY && has_order_by(entry->subquery))
			return true;
	}
	foreach(cell, query->cteList)
		if (has_order_by((const Query *) lfirst_node(CommonTableExpr, cell)->ctequery))
			return true;
	return false;
}

/* parse: the INSERT, whose WITH the SELECT may read from. */
static bool
promises_order(const Query *parse, const Query *select)
{
	return select->commandType != CMD_SELECT || has_order_by(parse) ||
		select->limitCount != NULL || select->limitOffset != NULL ||
		select->distinctClause != NIL || select->rowMarks != NIL ||
		select->hasTargetSRFs ||
		contain_volatile_functions((Node *) select->targetList);
}

/*
 * The column of SELECT that a column of the table gets, NULL if it gets no such
 * one but an expression; *is_constant where all rows get the same.
 *
 * A cast between the two, which INSERT has put there, keeps the order in all
 * but odd cases, and order is all that would be lost.
 */
static TargetEntry *
source_of_column(Query *parse, int source, AttrNumber attnum, bool *is_constant)
{
	RangeTblEntry *entry = rt_fetch(source, parse->rtable);
	TargetEntry *target = get_tle_by_resno(parse->targetList, attnum);
	Node	   *value;
	Var		   *var;
	TargetEntry *found;

	/* No value: the column's default, which is NULL here. */
	*is_constant = target == NULL;
	if (target == NULL)
		return NULL;
	value = strip_implicit_coercions((Node *) target->expr);
	*is_constant = IsA(value, Const);
	if (!IsA(value, Var))
		return NULL;
	var = (Var *) value;
	if (var->varno != source || var->varlevelsup != 0)
		return NULL;
	found = get_tle_by_resno(entry->subquery->targetList, var->varattno);
	if (found == NULL || found->resjunk)
		return NULL;
	*is_constant = IsA(found->expr, Const);
	return found;
}

static bool
has_order(Oid type)
{
	return OidIsValid(lookup_type_cache(type, TYPECACHE_LT_OPR)->lt_opr);
}

/* Adds ORDER BY to the SELECT, as far as columns of the index come from it. */
static void
order_by_index(Query *parse, int source, Relation index)
{
	Query	   *select = rt_fetch(source, parse->rtable)->subquery;
	ParseState *state = make_parsestate(NULL);
	List	   *order = NIL;

	for (int i = 0; i < index->rd_index->indnkeyatts; i++)
	{
		int16		option = index->rd_indoption[i];
		SortBy	   *by = makeNode(SortBy);
		bool		is_constant;
		TargetEntry *column = source_of_column(parse, source,
											   index->rd_index->indkey.values[i],
											   &is_constant);

		if (is_constant)
			continue;
		/* Another collation is another order; so is a type without any. */
		if (column == NULL ||
			exprCollation((Node *) column->expr) != index->rd_indcollation[i] ||
			!has_order(exprType((Node *) column->expr)))
			break;
		by->node = NULL;
		by->sortby_dir = (option & INDOPTION_DESC) ? SORTBY_DESC : SORTBY_ASC;
		by->sortby_nulls = (option & INDOPTION_NULLS_FIRST) ? SORTBY_NULLS_FIRST : SORTBY_NULLS_LAST;
		by->useOp = NIL;
		by->location = -1;
		order = addTargetToSortList(state, column, order, select->targetList, by);
	}
	free_parsestate(state);
	select->sortClause = order;
}

/*
 * The statement with an ordered source, or as it came.
 *
 * The executor has not begun, but the table is locked since the statement was
 * analyzed (or its plan taken from the cache again).
 */
static Query *
with_order(Query *parse)
{
	int			source = source_of_insert(parse);
	Relation	heap;
	Relation	index = NULL;
	Oid			index_oid;

	if (source == 0 || promises_order(parse, rt_fetch(source, parse->rtable)->subquery))
		return parse;
	heap = table_open(rt_fetch(parse->resultRelation, parse->rtable)->relid, NoLock);
	if (has_heap_pages(heap))
	{
		index_oid = clustered_index_oid(heap);
		if (OidIsValid(index_oid))
			index = try_relation_open(index_oid, AccessShareLock);
	}
	if (index != NULL)
	{
		if (index_gives_order(heap, index))
		{
			/*
			 * Whoever called may plan the statement again. (The macro
			 * copyObject is of the compiler that built the server.)
			 */
			parse = (Query *) copyObjectImpl(parse);
			order_by_index(parse, source, index);
		}
		relation_close(index, AccessShareLock);
	}
	table_close(heap, NoLock);
	return parse;
}

static PlannedStmt *
plan_in_order(PLANNER_PARAMETERS)
{
	if (sort_insert_select)
		parse = with_order(parse);
	if (previous_planner != NULL)
		return previous_planner(PLANNER_ARGUMENTS);
	return standard_planner(PLANNER_ARGUMENTS);
}

void
sort_init(void)
{
	DefineCustomBoolVariable("clustered_heap.sort_insert_select",
							 "Sorts the source of INSERT ... SELECT by the index marked by CLUSTER ON.",
							 "Statements with ORDER BY, LIMIT, DISTINCT, FOR UPDATE, RETURNING, ON CONFLICT, sets or volatile functions are left alone.",
							 &sort_insert_select,
							 false,
							 PGC_USERSET,
							 0,
							 NULL,
							 NULL,
							 NULL);
	MarkGUCPrefixReserved("clustered_heap");
	previous_planner = planner_hook;
	planner_hook = plan_in_order;
}
