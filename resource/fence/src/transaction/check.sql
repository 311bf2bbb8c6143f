-- Moves the fence of a resource up and writes the audit row; returns no row if the write may not pass.
-- $1 key, $2 token, $3 sequence, $4 owner or null, $5 SHA-256 of the payload, $6 part of the owner that may
-- be logged, $7 payload. A conflicting row is locked before it is compared, and stays locked until the
-- transaction ends, accepted or not.
WITH accepted AS (
  INSERT INTO fence_position AS f (resource_id, token, seq, owner, sha256, version)
  VALUES ($1, $2, $3, $4, $5, 1)
  ON CONFLICT (resource_id) DO UPDATE
    SET token = excluded.token, seq = excluded.seq, owner = excluded.owner, sha256 = excluded.sha256,
        version = f.version + 1
    WHERE f.token < excluded.token
       OR (f.token = excluded.token AND f.seq < excluded.seq AND f.owner IS NOT DISTINCT FROM excluded.owner)
  RETURNING version
)
INSERT INTO fence_audit (resource_id, version, token, seq, owner_prefix, payload)
SELECT $1, version, $2, $3, $6, $7::jsonb FROM accepted
RETURNING version
