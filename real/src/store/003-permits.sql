-- The permits of a semaphore beside the highest token, with the position and owner seen of each:
-- {"beside":9,"permits":[{"token":5},{"token":7,"seq":1,"owner":"a"}]}; null for a mutex.
-- "beside" is the highest token to which they belong. A program without permits raises last_token and leaves
-- this column, which then counts no more.
ALTER TABLE resource_locks ADD COLUMN permits jsonb;
