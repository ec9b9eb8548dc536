"""
Where pg_stat_statements can be read.
"""

from __future__ import annotations

# Its settings are there only where it was loaded at the start: else reading it fails.
STATEMENTS_AT_SQL = """
SELECT quote_ident(n.nspname) AS schema
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'pg_stat_statements'
  AND EXISTS (SELECT FROM pg_settings WHERE name = 'pg_stat_statements.max')
  AND has_schema_privilege(n.oid, 'USAGE')
  AND EXISTS (SELECT FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
              WHERE c.relnamespace = n.oid AND c.relname = 'pg_stat_statements'
                AND a.attname = 'toplevel' AND has_table_privilege(c.oid, 'SELECT'))
"""
"""The schema of the view, quoted; no row where the role cannot read it, or it was not loaded."""
