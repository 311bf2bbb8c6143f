-- The highest position that each resource has accepted, and its write, by which a retry is recognised. Names
-- are bytes: a collation could make two keys one, and all collations but those of bytes ignore case or
-- trailing spaces. `CONVERT(resource_id USING utf8mb4)` shows them as text.
CREATE TABLE IF NOT EXISTS fence_position (
  resource_id varbinary(256) NOT NULL PRIMARY KEY,
  token       bigint unsigned NOT NULL,
  -- The number of the write within its token; the largest is the plain write, a grant's last.
  seq         bigint unsigned NOT NULL,
  owner       varbinary(256),
  sha256      binary(32) NOT NULL,
  -- Zero only within the transaction of a first write.
  version     bigint unsigned NOT NULL
) ENGINE = InnoDB;

-- Each accepted write, committed with the caller's own rows.
CREATE TABLE IF NOT EXISTS fence_audit (
  resource_id  varbinary(256) NOT NULL,
  version      bigint unsigned NOT NULL,
  token        bigint unsigned NOT NULL,
  seq          bigint unsigned NOT NULL,
  -- The part of the owner token that may be logged.
  owner_prefix varchar(256) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  payload      json NOT NULL,
  -- UTC.
  written_at   datetime(6) NOT NULL DEFAULT (utc_timestamp(6)),
  PRIMARY KEY (resource_id, version),
  FOREIGN KEY (resource_id) REFERENCES fence_position (resource_id)
) ENGINE = InnoDB;
