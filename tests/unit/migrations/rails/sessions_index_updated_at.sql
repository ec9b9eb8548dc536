CREATE  INDEX "index_sessions_on_updated_at" ON "sessions" ("updated_at");
