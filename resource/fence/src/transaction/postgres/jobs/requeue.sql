-- Makes a dead job ready again, with all its attempts; returns its number, or no row if it is not dead.
-- Its progress stays. $1 {queue, id}.
UPDATE queue_job SET state = 'ready', attempts = 0, run_at = now(), ended_at = NULL
FROM (SELECT $1::text::jsonb AS p) AS parameters
WHERE id = (p ->> 'id')::bigint AND queue = p ->> 'queue' AND state = 'dead'
RETURNING to_jsonb(id)::text
