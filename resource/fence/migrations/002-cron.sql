-- The ticks of crons, each named by its scheduled time in milliseconds of Unix time. Rows that are done may
-- be deleted, except the newest of each cron: it says where the next runner goes on.
CREATE TABLE IF NOT EXISTS cron_tick (
  resource_id  text NOT NULL,
  tick         bigint NOT NULL CHECK (tick >= 0),
  state        text NOT NULL CHECK (state IN ('running', 'done')),
  -- The fencing token of the last runner that began or finished it.
  token        bigint NOT NULL CHECK (token > 0),
  -- The part of the owner token that may be logged.
  owner_prefix text,
  -- The number of runners that began it: above 1, the ones before crashed or were too slow.
  attempts     bigint NOT NULL DEFAULT 1,
  begun_at     timestamptz NOT NULL DEFAULT now(),
  done_at      timestamptz,
  PRIMARY KEY (resource_id, tick)
);
