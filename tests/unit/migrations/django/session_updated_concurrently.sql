--
-- Concurrently create index sessions_seen on field(s) seen of model session
--
CREATE INDEX CONCURRENTLY "sessions_seen" ON "sessions" ("seen");
