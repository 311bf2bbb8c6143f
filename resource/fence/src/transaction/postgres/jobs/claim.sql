-- Claims the next job that is ready, or whose lease is over, under a new token; returns it, or no row.
-- $1 {queue, owner, lease_ms, attempts_max}.
WITH parameters AS (SELECT $1::text::jsonb AS p), next AS (
  SELECT id FROM queue_job, parameters
  WHERE queue = p ->> 'queue'
    AND ((state = 'ready' AND run_at <= now()) OR (state = 'running' AND lease_until < now()
        AND attempts < (p ->> 'attempts_max')::bigint))
  ORDER BY run_at, id FOR UPDATE OF queue_job SKIP LOCKED LIMIT 1)
UPDATE queue_job AS j
SET state = 'running', attempts = attempts + 1, token = nextval('queue_token'), owner = p ->> 'owner',
    lease_until = clock_timestamp() + (p ->> 'lease_ms')::bigint * interval '1 ms'
FROM next, parameters WHERE j.id = next.id
RETURNING jsonb_build_object('id', j.id, 'token', j.token, 'attempts', j.attempts, 'payload', j.payload,
  'progress', j.progress)::text
