-- Triggers that may change a row before an update writes it, with what they call: the text of
-- functions in PL/pgSQL. Anyone: catalogs only.
SELECT t.tgrelid::int8 AS oid, t.tgname AS name, t.tgattr::int2[] AS attnums,
       string_to_array(encode(t.tgargs, 'escape'), '\000') AS arguments,
       f.nspname AS function_schema, p.proname AS function, l.lanname AS language,
       CASE WHEN l.lanname = 'plpgsql' AND octet_length(p.prosrc) <= 200000 THEN p.prosrc
       END AS source
FROM pg_trigger t
JOIN pg_class c ON c.oid = t.tgrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_proc p ON p.oid = t.tgfoid
JOIN pg_namespace f ON f.oid = p.pronamespace
JOIN pg_language l ON l.oid = p.prolang
-- TRIGGER_TYPE_ROW, _BEFORE and _UPDATE (src/include/catalog/pg_trigger.h); not disabled, and not
-- for replicas alone.
WHERE t.tgtype & 19 = 19 AND t.tgenabled IN ('O', 'A')
  AND c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
ORDER BY t.tgrelid, t.tgname
