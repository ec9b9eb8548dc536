-- Views, with the column of a table or view behind each of theirs, for updates through them.
-- Anyone: catalogs only. Nothing is opened, so nothing waits for a view that is being replaced.
--
-- The rule of a view is its query as a tree in text; a target that is a plain column has where it
-- is from (resorigtbl and resorigcol, `markTargetListOrigin`, src/backend/parser/parse_target.c).
-- Queries inside it have targets too: of a number and name that occur with several origins, none
-- is taken. Special characters of a name have a backslash before them (`outToken`, outfuncs.c). A join cannot be updated but by a trigger or rule (`view_query_is_auto_updatable`,
-- src/backend/rewrite/rewriteHandler.c), and such views, `is_own`, need no columns.
SELECT c.oid::int8 AS oid, n.nspname AS schema, c.relname AS name, own.is_own,
       behind.names, behind.attnums, behind.base_oids, behind.base_attnums
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_rewrite r ON r.ev_class = c.oid AND r.ev_type = '1'
CROSS JOIN LATERAL (
    -- TRIGGER_TYPE_INSTEAD and _UPDATE (src/include/catalog/pg_trigger.h); 2 is CMD_UPDATE.
    SELECT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgtype & 80 = 80)
        OR EXISTS (
            SELECT FROM pg_rewrite u WHERE u.ev_class = c.oid AND u.ev_type = '2' AND u.is_instead
        ) AS is_own
) own
LEFT JOIN LATERAL (
    SELECT array_agg(a.attname::text ORDER BY a.attnum) AS names,
           array_agg(a.attnum ORDER BY a.attnum) AS attnums,
           array_agg(origin.oid ORDER BY a.attnum) AS base_oids,
           array_agg(origin.attnum ORDER BY a.attnum) AS base_attnums
    FROM pg_attribute a
    JOIN (
        SELECT hit[1]::int AS number, regexp_replace(hit[2], '\\(.)', '\1', 'g') AS name,
               min(hit[3]::int8) AS oid, min(hit[4]::int) AS attnum
        FROM regexp_matches(
            r.ev_action::text,
            '\{TARGETENTRY :expr \{VAR [^{}]*\} :resno (\d+) :resname ((?:\\.|[^ \\])+) :ressortgroupref \d+'
            ' :resorigtbl (\d+) :resorigcol (\d+)',
            'g'
        ) hit
        GROUP BY 1, 2
        HAVING count(DISTINCT (hit[3], hit[4])) = 1
    ) origin ON origin.number = a.attnum AND origin.name = a.attname AND origin.oid <> 0
    WHERE a.attrelid = c.oid AND NOT a.attisdropped
) behind ON NOT own.is_own AND octet_length(r.ev_action::text) <= 500000
    AND position('{JOINEXPR' IN r.ev_action::text) = 0
WHERE c.relkind = 'v' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
ORDER BY c.oid
