-- Keeps the progress of a batch, and extends the lease of its claim; returns the job's number, or no row if
-- the claim is over. $1 {id, token, lease_ms, progress}.
UPDATE queue_job
SET progress = p -> 'progress',
    lease_until = clock_timestamp() + (p ->> 'lease_ms')::bigint * interval '1 ms'
FROM (SELECT $1::text::jsonb AS p) AS parameters
WHERE id = (p ->> 'id')::bigint AND token = (p ->> 'token')::bigint AND state = 'running'
RETURNING to_jsonb(id)::text
