//! Transactions and settings.

use super::check;

#[test]
fn the_settings_of_a_transaction_are_its_modes() {
    check(
        "> a: CREATE TABLE t (id int)
        = CREATE TABLE
        > a: BEGIN
        = BEGIN
        > a: SET transaction_isolation = 'SERIALIZABLE'
        = SET
        > a: SHOW transaction_isolation
        | serializable
        = SHOW
        > a: SELECT current_setting('transaction_isolation')
        | serializable
        = SELECT 1
        > a: SELECT set_config('transaction_isolation', 'read committed', true)
        ! 25001: SET TRANSACTION ISOLATION LEVEL must be called before any query
        > a: ROLLBACK
        = ROLLBACK
        > a: BEGIN
        = BEGIN
        > a: SET transaction_isolation = 'bogus'
        ! 22023: invalid value for parameter \"transaction_isolation\": \"bogus\"
        > a: ROLLBACK
        = ROLLBACK
        > a: BEGIN
        = BEGIN
        > a: SET transaction_read_only = on
        = SET
        > a: INSERT INTO t VALUES (1)
        ! 25006: cannot execute INSERT in a read-only transaction
        > a: ROLLBACK
        = ROLLBACK
        > a: BEGIN
        = BEGIN
        > a: SELECT set_config('transaction_read_only', 'on', true), current_setting('transaction_read_only')
        | on | on
        = SELECT 1
        > a: INSERT INTO t VALUES (1)
        ! 25006: cannot execute INSERT in a read-only transaction
        > a: ROLLBACK
        = ROLLBACK
        > a: INSERT INTO t VALUES (1)
        = INSERT 0 1",
    );
}

#[test]
fn a_chain_after_a_failure_keeps_the_modes() {
    check(
        "> a: BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY
        = BEGIN
        > a: SELECT 1 / 0
        ! 22012: division by zero
        > a: ROLLBACK AND CHAIN
        = ROLLBACK
        > a: SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')
        | serializable | on
        = SELECT 1
        > a: ROLLBACK
        = ROLLBACK
        > a: SHOW transaction_isolation
        | read committed
        = SHOW",
    );
}

#[test]
fn a_channel_of_a_savepoint_that_is_rolled_back_is_not_listened_to() {
    check(
        "> a: BEGIN
        = BEGIN
        > a: SAVEPOINT s
        = SAVEPOINT
        > a: LISTEN c
        = LISTEN
        > a: ROLLBACK TO s
        = ROLLBACK
        > a: COMMIT
        = COMMIT
        > a: NOTIFY c
        = NOTIFY
        > a: LISTEN c
        = LISTEN
        > a: NOTIFY c, 'x'
        = NOTIFY
        @ c: x",
    );
}

#[test]
fn a_transaction_that_only_reads_changes_no_sequence() {
    check(
        "> a: CREATE SEQUENCE s
        = CREATE SEQUENCE
        > a: BEGIN READ ONLY
        = BEGIN
        > a: SELECT nextval('s')
        ! 25006: cannot execute nextval() in a read-only transaction
        > a: ROLLBACK
        = ROLLBACK
        > a: BEGIN READ ONLY
        = BEGIN
        > a: SELECT setval('s', 5)
        ! 25006: cannot execute setval() in a read-only transaction
        > a: ROLLBACK
        = ROLLBACK
        > a: SELECT nextval('s')
        | 1
        = SELECT 1",
    );
}
