/* extension/clustered_heap/clustered_heap--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION clustered_heap" to load this file. \quit

-- Needs SELECT on the table, or membership in pg_stat_scan_tables: checked inside.
CREATE FUNCTION cluster_quality(
    relation regclass,
    clustered_by regclass DEFAULT NULL,
    OUT index regclass,
    OUT row_count bigint,
    OUT heap_pages bigint,
    OUT heap_pages_ideal bigint,
    OUT leaf_count bigint,
    OUT pages_per_leaf float8,
    OUT pages_per_leaf_ideal float8,
    OUT pages_per_1000 float8,
    OUT pages_per_1000_ideal float8,
    OUT pages_per_1000_max integer,
    OUT correlation float8)
RETURNS record
LANGUAGE C VOLATILE CALLED ON NULL INPUT PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'cluster_quality';

COMMENT ON FUNCTION cluster_quality(regclass, regclass) IS
'how well the rows of a table lie in the order of an index; reads the table and the index whole';

CREATE FUNCTION cluster_place()
RETURNS trigger
LANGUAGE C VOLATILE
AS 'MODULE_PATHNAME', 'cluster_place';

COMMENT ON FUNCTION cluster_place() IS
'BEFORE INSERT row trigger: puts each row beside its neighbours in the index marked by CLUSTER ON';

CREATE FUNCTION clustered_heap_handler(internal)
RETURNS table_am_handler
LANGUAGE C STRICT
AS 'MODULE_PATHNAME', 'clustered_heap_handler';

CREATE ACCESS METHOD clustered_heap TYPE TABLE HANDLER clustered_heap_handler;
COMMENT ON ACCESS METHOD clustered_heap IS
'heap whose rows are kept in the order of the index marked by CLUSTER ON';
