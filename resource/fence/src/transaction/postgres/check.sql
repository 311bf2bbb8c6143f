-- Moves the fence of a resource up and writes the audit row; returns no row if the write may not pass.
-- $1 key, $2 token, $3 sequence, $4 owner or null, $5 SHA-256 of the payload, $6 part of the owner that may
-- be logged, $7 payload, $8 largest first token of a key, $9 largest step of a token: both are
-- 9223372036854775807 if there is no limit. A conflicting row is locked before it is compared, and stays
-- locked until the transaction ends, accepted or not.
WITH accepted AS (
  INSERT INTO fence_position AS f (resource_id, token, seq, owner, sha256, version)
  SELECT $1::text, $2::bigint, $3::bigint, $4::text, $5::bytea, 1
  WHERE $2::bigint <= $8::bigint OR EXISTS (SELECT FROM fence_position WHERE resource_id = $1::text)
  ON CONFLICT (resource_id) DO UPDATE
    SET token = excluded.token, seq = excluded.seq, owner = excluded.owner, sha256 = excluded.sha256,
        version = f.version + 1
    WHERE (f.token < excluded.token AND excluded.token - f.token <= $9::bigint)
       OR (f.token = excluded.token AND f.seq < excluded.seq AND f.owner IS NOT DISTINCT FROM excluded.owner)
  RETURNING version
)
INSERT INTO fence_audit (resource_id, version, token, seq, owner_prefix, payload)
SELECT $1::text, version, $2::bigint, $3::bigint, $6::text, $7::jsonb FROM accepted
RETURNING version
