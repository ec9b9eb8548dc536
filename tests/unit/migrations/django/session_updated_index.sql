BEGIN;
--
-- Create index sessions_updated on field(s) updated_at of model session
--
CREATE INDEX "sessions_updated" ON "sessions" ("updated_at");
COMMIT;
