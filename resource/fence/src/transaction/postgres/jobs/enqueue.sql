-- Stores a job; returns its number. $1 {queue, payload, delay_ms}.
INSERT INTO queue_job (queue, payload, run_at)
SELECT p ->> 'queue', p -> 'payload', now() + (p ->> 'delay_ms')::bigint * interval '1 ms'
FROM (SELECT $1::text::jsonb AS p) AS parameters
RETURNING to_jsonb(id)::text
