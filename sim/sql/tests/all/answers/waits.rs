//! Statements that wait.

use super::check;

#[test]
fn a_row_that_a_statement_reaches_twice_after_a_wait_is_changed_once() {
    check(
        "> a: CREATE TABLE t (id int PRIMARY KEY, n int)
        = CREATE TABLE
        > a: INSERT INTO t VALUES (1, 0)
        = INSERT 0 1
        > a: BEGIN
        = BEGIN
        > a: UPDATE t SET n = 10 WHERE id = 1
        = UPDATE 1
        > b: UPDATE t SET n = n + 1 FROM (VALUES (1), (1)) v(x) WHERE t.id = v.x
        ... waits
        > a: COMMIT
        = COMMIT
        b:
        = UPDATE 1
        > a: SELECT id, n FROM t
        | 1 | 11
        = SELECT 1
        > a: BEGIN
        = BEGIN
        > a: UPDATE t SET n = 20 WHERE id = 1
        = UPDATE 1
        > b: DELETE FROM t USING (VALUES (1), (1)) v(x) WHERE t.id = v.x
        ... waits
        > a: COMMIT
        = COMMIT
        b:
        = DELETE 1",
    );
}

#[test]
fn an_own_change_by_an_earlier_statement_is_seen_after_a_wait() {
    check(
        "> a: CREATE TABLE t (id int PRIMARY KEY, n int)
        = CREATE TABLE
        > a: INSERT INTO t VALUES (1, 0)
        = INSERT 0 1
        > a: BEGIN
        = BEGIN
        > a: UPDATE t SET n = 10 WHERE id = 1
        = UPDATE 1
        > b: BEGIN
        = BEGIN
        > b: UPDATE t SET n = n + 1 WHERE id = 1
        ... waits
        > a: COMMIT
        = COMMIT
        b:
        = UPDATE 1
        > b: UPDATE t SET n = n + 1 WHERE id = 1
        = UPDATE 1
        > b: SELECT n FROM t
        | 12
        = SELECT 1",
    );
}

#[test]
fn a_conflict_that_comes_during_a_wait_on_another_index_is_resolved() {
    check(
        "> a: CREATE TABLE t (id int PRIMARY KEY, u int UNIQUE)
        = CREATE TABLE
        > a: BEGIN
        = BEGIN
        > a: INSERT INTO t VALUES (1, 7)
        = INSERT 0 1
        > b: INSERT INTO t VALUES (2, 7) ON CONFLICT (id) DO UPDATE SET u = 0
        ... waits
        > c: INSERT INTO t VALUES (2, 8)
        = INSERT 0 1
        > a: ROLLBACK
        = ROLLBACK
        b:
        = INSERT 0 1
        > a: SELECT id, u FROM t
        | 2 | 0
        = SELECT 1",
    );
}

#[test]
fn effects_before_a_wait_happen_once() {
    check(
        "> a: CREATE SEQUENCE s
        = CREATE SEQUENCE
        > a: SELECT pg_advisory_lock(1)
        |
        = SELECT 1
        > b: SELECT setval('s', 10), pg_advisory_lock(1)
        ... waits
        > a: SELECT nextval('s')
        | 11
        = SELECT 1
        > a: SELECT pg_advisory_unlock(1)
        | t
        = SELECT 1
        b:
        | 10 |
        = SELECT 1
        > a: SELECT nextval('s')
        | 12
        = SELECT 1
        > a: SELECT pg_advisory_lock(3)
        |
        = SELECT 1
        > b: SELECT pg_advisory_unlock_all(), pg_advisory_lock(2), pg_advisory_lock(3)
        ... waits
        > a: SELECT pg_advisory_unlock(3)
        | t
        = SELECT 1
        b:
        |  |  |
        = SELECT 1
        > a: SELECT pg_try_advisory_lock(2)
        | f
        = SELECT 1",
    );
}

#[test]
fn a_foreign_key_waits_for_a_change_of_the_other_table() {
    check(
        "> a: CREATE TABLE p (id int PRIMARY KEY)
        = CREATE TABLE
        > a: CREATE TABLE c (p int REFERENCES p ON DELETE CASCADE)
        = CREATE TABLE
        > a: INSERT INTO p VALUES (1), (2)
        = INSERT 0 2
        > a: INSERT INTO c VALUES (1)
        = INSERT 0 1
        > a: BEGIN
        = BEGIN
        > a: LOCK TABLE c IN SHARE MODE
        = LOCK TABLE
        > b: DELETE FROM p WHERE id = 1
        ... waits
        > a: COMMIT
        = COMMIT
        b:
        = DELETE 1
        > a: BEGIN
        = BEGIN
        > a: ALTER TABLE p ADD COLUMN x int
        = ALTER TABLE
        > b: INSERT INTO c VALUES (2)
        ... waits
        > a: COMMIT
        = COMMIT
        b:
        = INSERT 0 1
        > a: SELECT p FROM c
        | 2
        = SELECT 1",
    );
}

#[test]
fn a_row_of_a_savepoint_that_is_rolled_back_is_waited_for_no_longer() {
    check(
        "> a: CREATE TABLE t (id int PRIMARY KEY)
        = CREATE TABLE
        > a: BEGIN
        = BEGIN
        > a: INSERT INTO t VALUES (1)
        = INSERT 0 1
        > a: SAVEPOINT s
        = SAVEPOINT
        > a: INSERT INTO t VALUES (2)
        = INSERT 0 1
        > b: INSERT INTO t VALUES (2)
        ... waits
        > a: ROLLBACK TO s
        = ROLLBACK
        b:
        = INSERT 0 1
        > a: COMMIT
        = COMMIT",
    );
}

#[test]
fn the_snapshot_of_a_transaction_is_that_of_before_its_first_wait() {
    check(
        "> a: CREATE TABLE t (id int PRIMARY KEY, n int)
        = CREATE TABLE
        > a: INSERT INTO t VALUES (1, 0)
        = INSERT 0 1
        > a: BEGIN
        = BEGIN
        > a: LOCK TABLE t
        = LOCK TABLE
        > a: UPDATE t SET n = 1
        = UPDATE 1
        > b: BEGIN ISOLATION LEVEL REPEATABLE READ
        = BEGIN
        > b: SELECT n FROM t
        ... waits
        > a: COMMIT
        = COMMIT
        b:
        | 0
        = SELECT 1
        > b: UPDATE t SET n = 5
        ! 40001: could not serialize access due to concurrent update",
    );
}

#[test]
fn a_second_wait_of_a_statement_begins_at_the_end_of_the_queue() {
    check(
        "> a: SELECT pg_advisory_lock(1)
        |
        = SELECT 1
        > c: SELECT pg_advisory_lock(2)
        |
        = SELECT 1
        > b: SELECT pg_advisory_lock(1), pg_advisory_lock(2)
        ... waits
        > d: SELECT pg_advisory_lock(2)
        ... waits
        > a: SELECT pg_advisory_unlock(1)
        | t
        = SELECT 1
        > c: SELECT pg_advisory_unlock(2)
        | t
        = SELECT 1
        d:
        |
        = SELECT 1
        > a: CREATE TABLE t (id int PRIMARY KEY, n int)
        = CREATE TABLE
        > a: INSERT INTO t VALUES (1, 0), (2, 0)
        = INSERT 0 2
        > a: BEGIN
        = BEGIN
        > a: UPDATE t SET n = 1 WHERE id = 1
        = UPDATE 1
        > c: BEGIN
        = BEGIN
        > c: UPDATE t SET n = 1 WHERE id = 2
        = UPDATE 1
        > e: UPDATE t SET n = n * 10
        ... waits
        > f: UPDATE t SET n = n + 1 WHERE id = 2
        ... waits
        > a: COMMIT
        = COMMIT
        > c: COMMIT
        = COMMIT
        e:
        = UPDATE 2
        f:
        = UPDATE 1
        > a: SELECT n FROM t ORDER BY id
        | 10
        | 20
        = SELECT 2",
    );
}
