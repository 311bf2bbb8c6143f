//! Queries and changes of rows.

use super::check;

#[test]
fn a_change_with_a_limit_is_refused() {
    check(
        "> a: CREATE TABLE t (id int)
        = CREATE TABLE
        > a: INSERT INTO t VALUES (1), (2)
        = INSERT 0 2
        > a: DELETE FROM t ORDER BY id LIMIT 1
        ! 42601: syntax error at or near \"ORDER\"
        > a: DELETE FROM t LIMIT 1
        ! 42601: syntax error at or near \"LIMIT\"
        > a: UPDATE t SET id = 3 LIMIT 1
        ! 42601: syntax error at or near \"LIMIT\"
        > a: SELECT count(*) FROM t
        | 2
        = SELECT 1",
    );
}

#[test]
fn a_condition_without_sources_is_checked() {
    check(
        "> a: CREATE TABLE a (id int)
        = CREATE TABLE
        > a: CREATE TABLE b (aid int)
        = CREATE TABLE
        > a: INSERT INTO a VALUES (1), (2)
        = INSERT 0 2
        > a: INSERT INTO b VALUES (2)
        = INSERT 0 1
        > a: SELECT a.id, (SELECT 1 WHERE EXISTS (SELECT 1 FROM b WHERE b.aid = a.id)) FROM a ORDER BY id
        | 1 | NULL
        | 2 | 1
        = SELECT 2",
    );
}

#[test]
fn volatile_functions_run_once_for_each_row() {
    check(
        "> a: CREATE SEQUENCE s
        = CREATE SEQUENCE
        > a: SELECT nextval('s') AS n FROM generate_series(1, 3) ORDER BY n
        | 1
        | 2
        | 3
        = SELECT 3
        > a: SELECT nextval('s') FROM generate_series(1, 2) ORDER BY nextval('s') DESC
        | 5
        | 4
        = SELECT 2
        > a: SELECT CASE nextval('s') WHEN 7 THEN 'seven' WHEN 8 THEN 'eight' WHEN 6 THEN 'six' END
        | six
        = SELECT 1
        > a: SELECT nextval('s')
        | 7
        = SELECT 1",
    );
}

#[test]
fn a_volatile_condition_runs_for_rows_only() {
    check(
        "> a: CREATE TABLE jobs (id int, state text)
        = CREATE TABLE
        > a: UPDATE jobs SET state = 'held' WHERE state = 'free' AND pg_try_advisory_lock(42)
        = UPDATE 0
        > b: SELECT pg_try_advisory_lock(42)
        | t
        = SELECT 1
        > b: SELECT pg_advisory_unlock(42)
        | t
        = SELECT 1
        > a: INSERT INTO jobs VALUES (1, 'free')
        = INSERT 0 1
        > a: UPDATE jobs SET state = 'held' WHERE state = 'free' AND pg_try_advisory_lock(42)
        = UPDATE 1
        > b: SELECT pg_try_advisory_lock(42)
        | f
        = SELECT 1",
    );
}

#[test]
fn patterns_take_linear_time() {
    check(
        "> a: SELECT repeat('a', 200) LIKE '%a%a%a%a%a%a%a%a%b'
        | f
        = SELECT 1
        > a: SELECT 'abcab' LIKE '%ab', 'ab' LIKE 'ab%', 'abc' LIKE '%_c', '' LIKE '%', '' LIKE '_', 'a%' LIKE 'a\\%'
        | t | t | t | t | f | t
        = SELECT 1
        > a: SELECT 'ab' LIKE 'a\\%', 'aXbXc' LIKE 'a%b%c', 'ab' LIKE 'b%', 'ABC' ILIKE 'a_c'
        | f | t | f | t
        = SELECT 1
        > a: SELECT 'ab' LIKE 'a\\'
        ! 22025: LIKE pattern must not end with escape character",
    );
}

#[test]
fn the_digits_of_a_numeric_have_bounds() {
    check(
        "> a: SELECT 1::numeric(10, 2000000000)
        ! 22023: NUMERIC scale 2000000000 must be between -1000 and 1000
        > a: SELECT 1::numeric(0)
        ! 22023: NUMERIC precision 0 must be between 1 and 1000
        > a: SELECT 1::numeric(1001, 2)
        ! 22023: NUMERIC precision 1001 must be between 1 and 1000
        > a: SELECT 1.25::numeric(3, 1)
        | 1.3
        = SELECT 1",
    );
}

#[test]
fn numbers_without_their_sign_keep_their_type() {
    check(
        "> a: SELECT abs('-3'::smallint), abs('-2.5'::real), abs(-2147483647), abs('-2147483648'::bigint)
        | 3 | 2.5 | 2147483647 | 2147483648
        = SELECT 1
        > a: SELECT abs((-2147483648)::int)
        ! 22003: integer out of range
        > a: SELECT abs('-32768'::smallint)
        ! 22003: smallint out of range",
    );
}

#[test]
fn nulls_of_rows_and_of_pairs() {
    check(
        "> a: SELECT (1, NULL) IS NOT NULL, (1, NULL) IS NULL, (1, 2) IS NOT NULL, (NULL, NULL) IS NULL
        | f | f | t | t
        = SELECT 1
        > a: SELECT nullif(1, 2.5) / 2, nullif(1, 2) / 2
        | 0.50000000000000000000 | 0
        = SELECT 1
        > a: SELECT array_length(ARRAY[1, 2], 1), array_length(ARRAY[1, 2], 2), cardinality(ARRAY[1, 2])
        | 2 | NULL | 2
        = SELECT 1",
    );
}

#[test]
fn orders_and_groups_that_are_none_are_refused() {
    check(
        "> a: CREATE TABLE t (a int, b int, j json)
        = CREATE TABLE
        > a: SELECT a FROM t ORDER BY j
        ! 42883: could not identify an ordering operator for type json
        > a: SELECT j FROM t ORDER BY 1
        ! 42883: could not identify an ordering operator for type json
        > a: SELECT DISTINCT j FROM t
        ! 42883: could not identify an equality operator for type json
        > a: SELECT count(*) FROM t GROUP BY j
        ! 42883: could not identify an equality operator for type json
        > a: SELECT DISTINCT a FROM t ORDER BY b
        ! 42P10: for SELECT DISTINCT, ORDER BY expressions must appear in select list
        > a: SELECT DISTINCT a + 1 FROM t ORDER BY a + 1
        = SELECT 0
        > a: UPDATE t SET a = count(*)
        ! 42803: aggregate functions are not allowed in UPDATE
        > a: UPDATE t SET a = (SELECT count(*) FROM t)
        = UPDATE 0",
    );
}

#[test]
fn infinite_times_have_no_difference() {
    check(
        "> a: SELECT 'infinity'::timestamptz - now()
        ! 22008: cannot subtract infinite timestamps
        > a: SELECT now() - '-infinity'::timestamptz
        ! 22008: cannot subtract infinite timestamps",
    );
}

#[test]
fn a_limit_ends_the_scan() {
    check(
        "> a: CREATE TABLE jobs (id int PRIMARY KEY)
        = CREATE TABLE
        > a: INSERT INTO jobs VALUES (1), (2)
        = INSERT 0 2
        > a: SELECT id FROM jobs WHERE pg_try_advisory_lock(id) LIMIT 1
        | 1
        = SELECT 1
        > b: SELECT id FROM jobs WHERE pg_try_advisory_lock(id) LIMIT 1
        | 2
        = SELECT 1",
    );
}

#[test]
fn the_last_value_is_that_of_nextval() {
    check(
        "> a: CREATE SEQUENCE s
        = CREATE SEQUENCE
        > a: CREATE SEQUENCE r
        = CREATE SEQUENCE
        > a: SELECT setval('s', 5)
        | 5
        = SELECT 1
        > a: SELECT currval('s')
        | 5
        = SELECT 1
        > a: SELECT lastval()
        ! 55000: lastval is not yet defined in this session
        > a: SELECT nextval('r')
        | 1
        = SELECT 1
        > a: SELECT setval('s', 9)
        | 9
        = SELECT 1
        > a: SELECT lastval()
        | 1
        = SELECT 1",
    );
}

#[test]
fn a_float_out_of_range_is_an_error() {
    check(
        "> a: SELECT '3e38'::real * '10'::real
        ! 22003: value out of range: overflow
        > a: SELECT '1e-30'::real * '1e-30'::real
        ! 22003: value out of range: underflow
        > a: SELECT '1e-200'::float8 * '1e-200'::float8
        ! 22003: value out of range: underflow
        > a: SELECT '1'::float8 / 'Infinity'::float8
        | 0
        = SELECT 1",
    );
}
