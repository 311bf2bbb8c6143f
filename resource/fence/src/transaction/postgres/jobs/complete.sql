-- Makes a job done; returns its number, or no row if the claim is over. $1 {id, token}.
UPDATE queue_job SET state = 'done', lease_until = NULL, ended_at = now()
FROM (SELECT $1::text::jsonb AS p) AS parameters
WHERE id = (p ->> 'id')::bigint AND token = (p ->> 'token')::bigint AND state = 'running'
RETURNING to_jsonb(id)::text
