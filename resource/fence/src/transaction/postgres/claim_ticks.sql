-- Returns the last tick of a cron that is done, or null, and the server's clock in milliseconds of Unix time.
-- $1 key.
SELECT (SELECT max(tick) FROM cron_tick WHERE resource_id = $1::text AND state = 'done'),
       (extract(epoch FROM clock_timestamp()) * 1000)::bigint
