DROP INDEX  "index_sessions_on_seen";
