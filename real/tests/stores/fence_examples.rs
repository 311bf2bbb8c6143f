//! The examples of `fence` on live servers, run by the commands in their first lines.

use std::path::Path;

use real::servers::{MariaDb, Persistence, Postgres, Redis, Stage};

use crate::example::{Example, Server, assert_runs_all};

fn fence_example(name: &str) -> Example {
    Example::read("resource/fence", name)
}

/// Runs an example to its end, with `more` arguments; returns the lines that it printed.
fn run(example: &Example, servers: &[Server], more: &[&str]) -> Vec<String> {
    example.run(servers, more).lines().map(str::to_owned).collect()
}

fn with_postgres(postgres: &Postgres) -> Server {
    Server::new("postgresql", [postgres.url()])
}

fn with_redis(redis: &Redis) -> Server {
    Server::new("redis", [redis.address()])
}

/// Runs an example on a PostgreSQL and a Redis of its own.
fn run_with_lock(example: &Example) -> Vec<String> {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    run(example, &[with_postgres(&postgres), with_redis(&redis)], &[])
}

/// The examples in the documentation of `check` are compiled there.
#[test]
fn the_page_has_the_compiled_examples_of_the_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |file| std::fs::read_to_string(root.join(file)).unwrap();
    for file in ["resource/fence/doc/check.md", "resource/fence/doc/check-mysql.md"] {
        let compiled = read(file);
        let code = compiled.split("```no_run\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        assert!(code.contains("fence::check("));
        assert!(
            read("docs/fence-in-your-transaction.md").contains(code),
            "the page has another example than {file}:\n{code}"
        );
    }
}

#[test]
fn a_late_report_is_dropped() {
    let expected = [
        "the second worker wrote the report",
        "the first worker came too late: its report is dropped",
        "the report is by the second worker",
    ];
    assert_eq!(run_with_lock(&fence_example("report_jobs")), expected);
}

#[test]
fn a_late_report_is_dropped_on_mysql() {
    let stage = Stage::new().unwrap();
    let mariadb = MariaDb::start(&stage).unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let expected = [
        "the second worker: written",
        "the first worker: too late: its report is dropped",
        "a broken worker: refused: no lock has granted its token",
        "the report is by the second worker",
    ];
    let servers = [Server::new("mysql", [mariadb.url()]), with_redis(&redis)];
    assert_eq!(run(&fence_example("report_jobs_mysql"), &servers, &[]), expected);
}

#[test]
fn a_late_booking_gets_409() {
    let expected = [
        "Bob: 200 booked",
        "Bob again: 200 booked before",
        "Ada: 409 a newer request was here",
        "Eve: 409 the seat is taken",
        "seat 12A is Bob's",
    ];
    assert_eq!(run_with_lock(&fence_example("seat_booking")), expected);
}

#[test]
fn a_late_buyer_is_refunded_and_the_lock_alone_sells_twice() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let example = fence_example("seat_refund");
    let fenced =
        ["Ada: refunded; charges: 1, refunds: 1", "Bob: booked; charges: 1, refunds: 0", "seat 12A is Bob's"];
    assert_eq!(run(&example, &[with_postgres(&postgres), with_redis(&redis)], &[]), fenced);

    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    example.expect("With `lock-only` as a third argument the seat is sold twice");
    let sold_twice =
        ["Ada: booked; charges: 1, refunds: 0", "Bob: booked; charges: 1, refunds: 0", "seat 12A is Ada's"];
    assert_eq!(run(&example, &[with_postgres(&postgres), with_redis(&redis)], &["lock-only"]), sold_twice);
}

#[test]
fn a_tick_makes_one_invoice() {
    let expected = [
        "token 1 begins the tick, attempt 1",
        "token 2 begins the tick, attempt 2",
        "the second machine made the invoice",
        "the first machine came too late: its invoice is dropped",
        "the third machine found the tick done",
        "1 invoice",
    ];
    assert_eq!(run_with_lock(&fence_example("invoice_cron")), expected);
}

#[test]
fn a_queue_sends_each_mail_once() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let expected = [
        "the second worker sent the mail, in attempt 2",
        "the first worker came too late",
        "attempt 1 failed",
        "attempt 2 failed",
        "attempt 3 failed",
        "requeued: true",
        "2 mails",
    ];
    assert_eq!(run(&fence_example("mail_jobs"), &[with_postgres(&postgres)], &[]), expected);
}

#[test]
fn a_ledger_balances_after_a_late_transfer() {
    let expected = [
        "first, transfer 1: posted",
        "first, transfer 2: posted",
        "second, transfer 1: posted",
        "first, transfer 3: refused: a newer holder posts",
        "6 lines, whose sum is 0",
    ];
    assert_eq!(run_with_lock(&fence_example("ledger")), expected);
}

#[test]
fn each_alternative_keeps_its_promise() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let expected = [
        "one statement, 34: written",
        "one statement, 33: the row has seen token 34; stop, or answer 409",
        "one statement, no row: there was no such row; insert it first",
        "version column: 100 of 100 increments",
        "version column, no tries: None",
        "insert only, 34: New",
        "insert only, 34 again: Again",
        "insert only, 33 later: New",
        "insert only, readers see 34",
        "advisory lock: Done",
        "advisory lock, meanwhile: Taken",
        "advisory lock, a late holder: Done",
    ];
    assert_eq!(run(&fence_example("alternatives"), &[with_postgres(&postgres)], &[]), expected);
}

#[test]
fn a_database_needs_no_lock_for_what_one_condition_decides() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let expected = [
        "invoice: made by 1 of 8 machines",
        "invoice, a late machine makes it: false",
        "invoices: 1",
        "pieces: sold to 3 of 8 buyers",
        "pieces left: 0",
        "case: assigned to 1 of 8 clerks",
        "case, a late clerk gets it: false",
        "rows of audit, by the clerk who has it: 1",
    ];
    assert_eq!(run(&fence_example("without_lock"), &[with_postgres(&postgres)], &[]), expected);
}

#[test]
fn each_example_is_run() {
    assert_runs_all(include_str!("fence_examples.rs"), "fence_example", "resource/fence");
}
