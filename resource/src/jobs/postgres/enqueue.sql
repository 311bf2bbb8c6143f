-- Stores a job under the number that its producer has chosen; returns the number, or no row if there is a job
-- of that number. $1 {id, queue, payload, delay_ms}.
INSERT INTO queue_job (id, queue, payload, run_at) OVERRIDING SYSTEM VALUE
SELECT (p ->> 'id')::bigint, p ->> 'queue', p -> 'payload',
       now() + (p ->> 'delay_ms')::bigint * interval '1 ms'
FROM (SELECT $1::text::jsonb AS p) AS parameters
ON CONFLICT (id) DO NOTHING
RETURNING to_jsonb(id)::text
