-- Makes a job dead whose worker died in its last attempt; returns its number, or no row. Run it before a
-- claim until it returns none. $1 {queue, attempts_max}.
UPDATE queue_job SET state = 'dead', token = NULL, lease_until = NULL, ended_at = now(),
  last_error = coalesce(last_error || '; then ', '') || 'no answer from its worker in attempt ' || attempts
WHERE id = (
  SELECT id FROM queue_job, (SELECT $1::text::jsonb AS p) AS parameters
  WHERE queue = p ->> 'queue' AND state = 'running' AND lease_until < now()
    AND attempts >= (p ->> 'attempts_max')::bigint
  ORDER BY id FOR UPDATE OF queue_job SKIP LOCKED LIMIT 1)
RETURNING to_jsonb(id)::text
