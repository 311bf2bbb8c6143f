-- Each fence that an operator has set, committed with the change of its row. Zero: no token.
CREATE TABLE fence_changes (
  id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  resource_id text NOT NULL REFERENCES resource_locks,
  from_token  numeric(20) NOT NULL,
  to_token    numeric(20) NOT NULL,
  -- The operator: the name of the credential, and the address and certificate of the client.
  who         text NOT NULL,
  reason      text NOT NULL,
  -- The time by the service's clock, in milliseconds since 1970.
  at_millis   numeric(20) NOT NULL
);

CREATE INDEX fence_changes_of ON fence_changes (resource_id, id);
