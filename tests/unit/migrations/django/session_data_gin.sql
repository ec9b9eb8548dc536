BEGIN;
--
-- Create index sessions_data on field(s) data of model session
--
CREATE INDEX "sessions_data" ON "sessions" USING gin ("data");
COMMIT;
