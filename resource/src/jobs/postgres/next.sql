-- Returns the time in milliseconds until the next job may be claimed by the server's clock, below zero if it
-- may be claimed already; null if the queue is empty, but for jobs that are done or dead. $1 {queue}.
SELECT coalesce(to_jsonb(
  (extract(epoch FROM min(CASE WHEN state = 'running' THEN lease_until ELSE run_at END)) * 1000)::bigint
  - (extract(epoch FROM clock_timestamp()) * 1000)::bigint)::text, 'null')
FROM queue_job WHERE queue = ($1::text::jsonb ->> 'queue') AND state IN ('ready', 'running')
