-- Makes a tick done; returns the number of attempts, or no row if it was done before. The fence has been
-- checked. $1 key, $2 tick, $3 token, $4 part of the owner that may be logged.
INSERT INTO cron_tick AS t (resource_id, tick, state, token, owner_prefix, done_at)
VALUES ($1::text, $2::bigint, 'done', $3::bigint, $4::text, now())
ON CONFLICT (resource_id, tick) DO UPDATE
  SET state = 'done', token = excluded.token, owner_prefix = excluded.owner_prefix, done_at = now()
  WHERE t.state = 'running'
RETURNING attempts
