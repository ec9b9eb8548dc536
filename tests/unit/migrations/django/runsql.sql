BEGIN;
--
-- Raw SQL operation
--
UPDATE orders SET note = '' WHERE note IS NULL; DO $$ BEGIN PERFORM 1; END $$;
COMMIT;
