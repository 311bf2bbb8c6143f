-- The tokens of claims: each is above all earlier ones.
CREATE SEQUENCE IF NOT EXISTS queue_token;

-- The jobs of queues. The lease says who should work, the token who may commit.
CREATE TABLE IF NOT EXISTS queue_job (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  queue       text NOT NULL,
  payload     jsonb NOT NULL,
  state       text NOT NULL DEFAULT 'ready' CHECK (state IN ('ready', 'running', 'done', 'dead')),
  -- The number of claims since it was enqueued, or since an operator requeued it.
  attempts    bigint NOT NULL DEFAULT 0,
  -- A ready job is claimed from this time on.
  run_at      timestamptz NOT NULL DEFAULT now(),
  -- A running job whose lease is over by the server's clock is claimed by the next worker.
  lease_until timestamptz,
  token       bigint,
  owner       text,
  -- The part of a batch that is committed.
  progress    jsonb,
  last_error  text,
  enqueued_at timestamptz NOT NULL DEFAULT now(),
  ended_at    timestamptz
);

CREATE INDEX IF NOT EXISTS queue_job_next ON queue_job (queue, run_at, id)
  WHERE state IN ('ready', 'running');
