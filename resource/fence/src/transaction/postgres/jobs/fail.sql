-- Gives a job back for another attempt after a pause, or makes it dead after its last one; returns the new
-- state, or no row if the claim is over. $1 {id, token, error, attempts_max, delay_ms}.
UPDATE queue_job
SET state = CASE WHEN attempts < (p ->> 'attempts_max')::bigint THEN 'ready' ELSE 'dead' END,
    ended_at = CASE WHEN attempts < (p ->> 'attempts_max')::bigint THEN NULL ELSE now() END,
    run_at = now() + (p ->> 'delay_ms')::bigint * interval '1 ms',
    token = NULL, lease_until = NULL, last_error = p ->> 'error'
FROM (SELECT $1::text::jsonb AS p) AS parameters
WHERE id = (p ->> 'id')::bigint AND token = (p ->> 'token')::bigint AND state = 'running'
RETURNING to_jsonb(state)::text
