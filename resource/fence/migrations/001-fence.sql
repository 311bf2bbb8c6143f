-- The highest position that each resource has accepted, and its write, by which a retry is recognised.
CREATE TABLE IF NOT EXISTS fence_position (
  resource_id text PRIMARY KEY,
  token       bigint NOT NULL CHECK (token > 0),
  -- The number of the write within its token; the largest bigint is the plain write, a grant's last.
  seq         bigint NOT NULL CHECK (seq > 0),
  owner       text,
  sha256      bytea NOT NULL,
  version     bigint NOT NULL
);

-- Each accepted write, committed with the caller's own rows.
CREATE TABLE IF NOT EXISTS fence_audit (
  resource_id  text NOT NULL REFERENCES fence_position,
  version      bigint NOT NULL,
  token        bigint NOT NULL,
  seq          bigint NOT NULL,
  -- The part of the owner token that may be logged.
  owner_prefix text,
  payload      jsonb NOT NULL,
  written_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (resource_id, version)
);
