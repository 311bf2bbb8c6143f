-- Marks a tick as running, or takes it over from a runner with a lower token; returns the number of attempts,
-- or no row if the tick is done. The fence has been checked, so that no row has a higher token.
-- $1 key, $2 tick, $3 token, $4 part of the owner that may be logged.
INSERT INTO cron_tick AS t (resource_id, tick, state, token, owner_prefix)
VALUES ($1::text, $2::bigint, 'running', $3::bigint, $4::text)
ON CONFLICT (resource_id, tick) DO UPDATE
  SET attempts = t.attempts + (t.token < excluded.token)::int, token = excluded.token,
      owner_prefix = excluded.owner_prefix, begun_at = now()
  WHERE t.state = 'running'
RETURNING attempts
