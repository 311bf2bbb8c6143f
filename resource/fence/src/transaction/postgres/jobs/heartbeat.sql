-- Extends the lease of a claim; returns the job's number, or no row if the claim is over.
-- $1 {id, token, lease_ms}.
UPDATE queue_job
SET lease_until = clock_timestamp() + (p ->> 'lease_ms')::bigint * interval '1 ms'
FROM (SELECT $1::text::jsonb AS p) AS parameters
WHERE id = (p ->> 'id')::bigint AND token = (p ->> 'token')::bigint AND state = 'running'
RETURNING to_jsonb(id)::text
