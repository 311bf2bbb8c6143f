-- The latest state of each resource, and the fence that guards it. Tokens and sequences reach 2^64 - 1: beyond bigint.
CREATE TABLE resource_locks (
  resource_id    text PRIMARY KEY,
  -- The highest position that was seen, of a claim or a write, and whose it was. Zero: none yet.
  last_token     numeric(20) NOT NULL DEFAULT 0,
  last_seq       numeric(20) NOT NULL DEFAULT 0,
  last_owner     text,
  -- The last write that was accepted, by which its retry is known. A conditional write has no token: it stands as the
  -- token zero, and the version that it named for its sequence.
  written_token  numeric(20) NOT NULL DEFAULT 0,
  written_seq    numeric(20) NOT NULL DEFAULT 0,
  written_owner  text,
  written_sha256 bytea,
  version        bigint NOT NULL DEFAULT 0,
  value          bytea
);

-- Every write that was accepted, with its token; a conditional write has none.
CREATE TABLE audit_log (
  id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  resource_id   text NOT NULL REFERENCES resource_locks,
  version       bigint NOT NULL,
  fencing_token numeric(20),
  owner_prefix  text,
  payload       bytea NOT NULL,
  written_at    timestamptz NOT NULL DEFAULT now(),
  UNIQUE (resource_id, version)
);
