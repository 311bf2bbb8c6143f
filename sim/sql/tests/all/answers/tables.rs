//! Changes of the catalog.

use super::check;

#[test]
fn a_volatile_default_of_a_new_column_is_refused_for_rows() {
    check(
        "> a: CREATE SEQUENCE s
        = CREATE SEQUENCE
        > a: CREATE TABLE t (id int)
        = CREATE TABLE
        > a: ALTER TABLE t ADD COLUMN a bigint DEFAULT nextval('s')
        = ALTER TABLE
        > a: INSERT INTO t VALUES (1), (2)
        = INSERT 0 2
        > a: SELECT a FROM t
        | 1
        | 2
        = SELECT 2
        > a: ALTER TABLE t ADD COLUMN b bigint DEFAULT nextval('s')
        ! 0A000: the simulated PostgreSQL does not know ADD COLUMN of a volatile default to a table with rows
        > a: ALTER TABLE t ADD COLUMN b timestamptz DEFAULT now()
        = ALTER TABLE",
    );
}

#[test]
fn conditions_of_tables_that_are_none_are_refused() {
    check(
        "> a: CREATE TABLE leases (res text, expires_at timestamptz)
        = CREATE TABLE
        > a: CREATE UNIQUE INDEX ON leases (res) WHERE expires_at > now()
        ! 42P17: functions in index predicate must be marked IMMUTABLE
        > a: CREATE UNIQUE INDEX ON leases (res) WHERE expires_at > '2020-01-01 00:00:00+00'
        = CREATE INDEX
        > a: CREATE TABLE t (n int CHECK (n < (SELECT 5)))
        ! 0A000: cannot use subquery in check constraint
        > a: CREATE TABLE t (n int CHECK (count(*) > 1))
        ! 42803: aggregate functions are not allowed in check constraints
        > a: CREATE TABLE t (n int DEFAULT count(*))
        ! 42803: aggregate functions are not allowed in DEFAULT expressions
        > a: CREATE TABLE t (n int DEFAULT (SELECT 1))
        ! 0A000: cannot use subquery in DEFAULT expression",
    );
}

#[test]
fn tables_that_refer_to_each_other_are_dropped_together() {
    check(
        "> a: CREATE TABLE parent (id int PRIMARY KEY)
        = CREATE TABLE
        > a: CREATE TABLE child (p int REFERENCES parent)
        = CREATE TABLE
        > a: DROP TABLE parent
        ! 2BP01: cannot drop table parent because other objects depend on it
        > a: DROP TABLE parent, child
        = DROP TABLE
        > a: SELECT * FROM child
        ! 42P01: relation \"child\" does not exist",
    );
}

#[test]
fn a_schema_with_a_sequence_is_not_empty() {
    check(
        "> a: CREATE SCHEMA s
        = CREATE SCHEMA
        > a: CREATE SEQUENCE s.n
        = CREATE SEQUENCE
        > a: DROP SCHEMA s
        ! 2BP01: cannot drop schema s because other objects depend on it
        > a: DROP SCHEMA s CASCADE
        = DROP SCHEMA
        > a: CREATE SCHEMA s
        = CREATE SCHEMA
        > a: SELECT nextval('s.n')
        ! 42P01: relation \"s.n\" does not exist",
    );
}

#[test]
fn names_of_columns_and_relations_are_unique() {
    check(
        "> a: CREATE TABLE t (id serial PRIMARY KEY, u int UNIQUE)
        = CREATE TABLE
        > a: ALTER TABLE t RENAME u TO id
        ! 42701: column \"id\" of relation \"t\" already exists
        > a: INSERT INTO t (u) VALUES (1)
        = INSERT 0 1
        > a: ALTER TABLE t RENAME TO t_old
        = ALTER TABLE
        > a: CREATE TABLE t (id serial PRIMARY KEY, u int UNIQUE)
        = CREATE TABLE
        > a: INSERT INTO t VALUES (7, 7)
        = INSERT 0 1
        > a: INSERT INTO t VALUES (7, 8)
        ! 23505: duplicate key value violates unique constraint \"t_pkey1\"
        > a: INSERT INTO t VALUES (8, 7)
        ! 23505: duplicate key value violates unique constraint \"t_u_key1\"
        > a: SELECT nextval('t_id_seq'), nextval('t_id_seq1')
        | 2 | 1
        = SELECT 1
        > a: CREATE TABLE one (id int CONSTRAINT pk PRIMARY KEY)
        = CREATE TABLE
        > a: CREATE TABLE two (id int CONSTRAINT pk PRIMARY KEY)
        ! 42P07: relation \"pk\" already exists
        > a: CREATE TABLE two (id int, CONSTRAINT pk UNIQUE (id))
        ! 42P07: relation \"pk\" already exists
        > a: CREATE INDEX ON one (id)
        = CREATE INDEX
        > a: CREATE INDEX ON one (id)
        = CREATE INDEX
        > a: DROP INDEX one_id_idx1
        = DROP INDEX",
    );
}
