//! The service's contract, byte by byte over HTTP/1.1.

use std::sync::Arc;

use crate::common::disk::Disk;
use crate::common::events::{Event, Events};
use crate::common::service::{app, ask, exchange, put, read, unfenced};
use resource::http::{App, Config};
use resource::store::{MemoryStore, RedbStore};
use serde_json::{Value, json};

/// Source: the lab text, section 8.
#[test]
fn a_token_at_or_below_the_highest_is_refused() {
    let app = app();
    assert_eq!(put(&app, 33, None, "a").pair(), (200, json!({"version": 1, "max_fence": 33})));
    assert_eq!(put(&app, 34, None, "b").pair(), (200, json!({"version": 2, "max_fence": 34})));
    let stale = |got: u64| (409, json!({"error": "stale fencing token", "seen": 34, "got": got}));
    assert_eq!(put(&app, 33, None, "a").pair(), stale(33));
    assert_eq!(put(&app, 34, None, "b").pair(), stale(34));
    assert_eq!(read(&app), json!({"value": "b", "max_fence": 34, "version": 2}));
}

#[test]
fn the_answer_is_exactly_the_published_text() {
    let app = app();
    put(&app, 34, None, "b");
    assert_eq!(put(&app, 33, None, "a").body, r#"{"error":"stale fencing token","seen":34,"got":33}"#);
    let head = put(&app, 33, None, "a").head;
    assert!(head.contains("content-type: application/json"), "{head}");
    assert!(!head.contains("\r\ndate:"), "the service reads no clock: {head}");
}

#[test]
fn another_owner_with_the_same_token_is_refused() {
    let app = app();
    put(&app, 34, Some("b:1"), "b");
    let foreign = json!({"error": "fencing token of another owner", "seen": 34, "got": 34});
    assert_eq!(put(&app, 34, Some("a:1"), "a").pair(), (409, foreign));
    assert_eq!(
        put(&app, 34, Some("b:1"), "b").pair(),
        (200, json!({"version": 1, "max_fence": 34})),
        "a retry"
    );
}

#[test]
fn numbered_writes_count_up_and_the_plain_one_is_last() {
    let app = app();
    let numbered =
        |seq: u64| ask(&app, "PUT /r/k", &["X-Fence-Token: 7", &format!("X-Fence-Seq: {seq}")], b"x").status;
    assert_eq!([numbered(1), numbered(2), numbered(2), numbered(1)], [200, 200, 409, 409]);
    assert_eq!(ask(&app, "PUT /r/k", &["X-Fence-Token: 7"], b"x").status, 200);
    assert_eq!(numbered(u64::MAX - 1), 409);
}

#[test]
fn a_fenced_read_claims_its_token() {
    let app = app();
    let claim = |token: &str| ask(&app, "GET /r/orders:42", &[token], b"").pair();
    assert_eq!(claim("X-Fence-Token: 34"), (200, json!({"value": null, "max_fence": 34, "version": 0})));
    let stale = json!({"error": "stale fencing token", "seen": 34, "got": 33});
    assert_eq!(put(&app, 33, None, "a").pair(), (409, stale.clone()));
    assert_eq!(claim("X-Fence-Token: 33"), (409, stale));
    assert_eq!(put(&app, 34, None, "b").status, 200);
    assert_eq!(claim("X-Fence-Token: 34").0, 200, "a claim may be repeated");
}

#[test]
fn a_key_never_written_reads_as_null() {
    assert_eq!(read(&app()), json!({"value": null, "max_fence": 0, "version": 0}));
}

#[test]
fn a_value_that_is_no_text_is_in_hexadecimal() {
    let app = app();
    assert_eq!(ask(&app, "PUT /r/k", &["X-Fence-Token: 1"], &[0xff, 0x00, 0x1f]).status, 200);
    let read = ask(&app, "GET /r/k", &[], b"").json();
    assert_eq!(read, json!({"value": "ff001f", "encoding": "hex", "max_fence": 1, "version": 1}));
}

#[test]
fn two_spellings_of_a_key_are_one_key() {
    let app = app();
    ask(&app, "PUT /r/acme%2Forders%3a42", &["X-Fence-Token: 1"], b"x");
    assert_eq!(ask(&app, "GET /r/acme%2forders:42?page=2", &[], b"").json()["value"], "x");
}

#[test]
fn without_fencing_the_late_writer_corrupts_the_value() {
    let app = unfenced();
    put(&app, 34, None, "b");
    assert_eq!(put(&app, 33, None, "a").pair(), (200, json!({"version": 2, "max_fence": 34})));
    assert_eq!(read(&app), json!({"value": "a", "max_fence": 34, "version": 2}));
}

/// Lists bad requests: status, part of the error, request, headers. None stores anything, fenced or not.
#[test]
fn bad_requests_are_explained_and_store_nothing() {
    let long = format!("PUT /r/{}", "k".repeat(257));
    let owner = format!("X-Lock-Owner: {}", "o".repeat(257));
    let many = format!("X-Fence-Beside: {}", list(1..=1001));
    let table: &[(u16, &str, &str, &[&str])] = &[
        (400, "missing", "PUT /r/orders:42", &[]),
        (400, "can't be \"W/", "PUT /r/orders:42", &["If-Match: W/\"1\""]),
        (400, "can't be \"*\"", "PUT /r/orders:42", &["If-Match: *"]),
        (400, "can't be \"1\"", "PUT /r/orders:42", &["If-Match: 1"]),
        (400, "can't be", "PUT /r/orders:42", &["If-Match: \"-1\""]),
        (400, "can't be", "PUT /r/orders:42", &["If-Match: \"18446744073709551616\""]),
        (400, "can't be", "PUT /r/orders:42", &["If-Match: \"1\", \"2\""]),
        (400, "more than once", "PUT /r/orders:42", &["If-Match: \"1\"", "If-Match: \"1\""]),
        (400, "can't be", "PUT /r/orders:42", &["If-None-Match: \"1\""]),
        (
            400,
            "both If-Match and If-None-Match",
            "PUT /r/orders:42",
            &["If-Match: \"1\"", "If-None-Match: *"],
        ),
        (
            400,
            "both a fencing token and a condition",
            "PUT /r/orders:42",
            &["If-Match: \"1\"", "X-Fence-Token: 1"],
        ),
        (400, "without a fencing token", "PUT /r/orders:42", &["If-Match: \"1\"", "X-Fence-Seq: 1"]),
        (400, "\"\"", "PUT /r/orders:42", &["X-Fence-Token:"]),
        (400, "\"0\"", "PUT /r/orders:42", &["X-Fence-Token: 0"]),
        (400, "\"-1\"", "PUT /r/orders:42", &["X-Fence-Token: -1"]),
        (400, "\"+1\"", "PUT /r/orders:42", &["X-Fence-Token: +1"]),
        (400, "\"1.5\"", "PUT /r/orders:42", &["X-Fence-Token: 1.5"]),
        (400, "\"abc\"", "PUT /r/orders:42", &["X-Fence-Token: abc"]),
        (400, "\"1, 2\"", "PUT /r/orders:42", &["X-Fence-Token: 1, 2"]),
        (400, "18446744073709551616", "PUT /r/orders:42", &["X-Fence-Token: 18446744073709551616"]),
        (400, "more than once", "PUT /r/orders:42", &["X-Fence-Token: 1", "X-Fence-Token: 1"]),
        (400, "X-Fence-Token", "GET /r/orders:42", &["X-Fence-Token: x"]),
        (400, "X-Fence-Seq", "PUT /r/orders:42", &["X-Fence-Token: 1", "X-Fence-Seq: 0"]),
        (400, "X-Fence-Seq", "PUT /r/orders:42", &["X-Fence-Token: 1", "X-Fence-Seq: -1"]),
        (400, "X-Fence-Seq", "PUT /r/orders:42", &["X-Fence-Token: 1", "X-Fence-Seq: +1"]),
        (400, "X-Fence-Seq", "PUT /r/orders:42", &["X-Fence-Token: 1", "X-Fence-Seq: x"]),
        (400, "X-Fence-Seq", "PUT /r/orders:42", &["X-Fence-Token: 1", "X-Fence-Seq: 18446744073709551615"]),
        (
            400,
            "more than once",
            "PUT /r/orders:42",
            &["X-Fence-Token: 1", "X-Fence-Seq: 1", "X-Fence-Seq: 2"],
        ),
        (400, "X-Fence-Beside", "PUT /r/orders:42", &["X-Fence-Token: 9", "X-Fence-Beside: 7,x"]),
        (400, "7 comes after 8", "GET /r/orders:42", &["X-Fence-Token: 9", "X-Fence-Beside: 8,7"]),
        (400, "7 comes after 7", "PUT /r/orders:42", &["X-Fence-Token: 9", "X-Fence-Beside: 7,7"]),
        (400, "1001 tokens, 1000 are allowed", "PUT /r/orders:42", &["X-Fence-Token: 9", &many]),
        (
            400,
            "x-fence-beside was sent more",
            "PUT /r/orders:42",
            &["X-Fence-Beside: 1", "X-Fence-Beside: 2"],
        ),
        (400, "without X-Fence-Token", "PUT /r/orders:42", &["If-Match: \"0\"", "X-Fence-Beside: 7"]),
        (400, "without X-Fence-Token", "GET /r/orders:42", &["X-Fence-Beside: 7"]),
        (400, "owner", "PUT /r/orders:42", &["X-Fence-Token: 1", "X-Lock-Owner:"]),
        (400, "257 bytes", "PUT /r/orders:42", &["X-Fence-Token: 1", &owner]),
        (400, "more than once", "GET /r/orders:42", &["X-Lock-Owner: a", "X-Lock-Owner: b"]),
        (400, "257 bytes", &long, &["X-Fence-Token: 1"]),
        (400, "percent", "PUT /r/orders%4", &["X-Fence-Token: 1"]),
        (400, "UTF-8", "PUT /r/orders%ff", &["X-Fence-Token: 1"]),
        (400, "control", "PUT /r/orders%0a", &["X-Fence-Token: 1"]),
        (404, "path", "PUT /r/", &["X-Fence-Token: 1"]),
        (404, "path", "PUT /r/acme/orders:42", &["X-Fence-Token: 1"]),
        (404, "path", "PUT /orders:42", &["X-Fence-Token: 1"]),
        (405, "method", "POST /r/orders:42", &["X-Fence-Token: 1"]),
        (405, "method", "DELETE /r/orders:42", &["X-Fence-Token: 1"]),
        (405, "method", "PUT /metrics", &["X-Fence-Token: 1"]),
    ];
    for app in [app(), unfenced()] {
        for (status, reason, line, headers) in table {
            let answer = ask(&app, line, headers, b"x");
            let text = answer.json();
            assert_eq!(answer.status, *status, "{line} {headers:?}: {text}");
            assert!(text["error"].as_str().unwrap().contains(reason), "{line} {headers:?}: {text}");
            assert!(!text["help"].as_str().unwrap().is_empty(), "{line} {headers:?}: {text}");
        }
        assert_eq!(read(&app), json!({"value": null, "max_fence": 0, "version": 0}));
        assert_eq!(app.metrics().writes_accepted(), 0);
        assert!(scrape(&app).contains(&format!("\nresource_bad_requests_total {}\n", table.len())));
    }
}

fn list(tokens: impl Iterator<Item = u64>) -> String {
    tokens.map(|number| number.to_string()).collect::<Vec<_>>().join(",")
}

#[test]
fn a_live_permit_writes_and_reads_below_the_highest_token() {
    let app = app();
    let ask = |line: &str, headers: &[&str]| ask(&app, &format!("{line} /r/k"), headers, b"x").pair();
    let written = |version: u64| (200, json!({"version": version, "max_fence": 9}));
    let stale = |got: u64| (409, json!({"error": "stale fencing token", "seen": 9, "got": got}));
    assert_eq!(ask("PUT", &["X-Fence-Token: 9", "X-Fence-Beside: 5, 7"]), written(1));
    assert_eq!(ask("GET", &["X-Fence-Token: 7", "X-Fence-Beside: 5"]).0, 200);
    assert_eq!(ask("PUT", &["X-Fence-Token: 7", "X-Fence-Beside:"]), written(2));
    assert_eq!(ask("PUT", &["X-Fence-Token: 8", "X-Fence-Beside: 5,7"]), stale(8));
    assert_eq!(ask("GET", &["X-Fence-Token: 12", "X-Fence-Beside: 9"]).0, 200);
    assert_eq!(ask("PUT", &["X-Fence-Token: 5"]).0, 409);
}

#[test]
fn the_longest_set_fits_into_a_request() {
    let app = app();
    let set = format!("X-Fence-Beside: {}", list(u64::MAX - 1000..u64::MAX));
    let highest = format!("X-Fence-Token: {}", u64::MAX);
    let lowest = format!("X-Fence-Token: {}", u64::MAX - 1000);
    assert_eq!(ask(&app, "PUT /r/k", &[&highest, &set], b"x").status, 200);
    assert_eq!(ask(&app, "PUT /r/k", &[&lowest], b"x").status, 200);
}

#[test]
fn a_body_above_the_limit_is_refused() {
    let app = App::new(Arc::new(MemoryStore::new()), Config { body_bytes_max: 8, ..Config::default() });
    let put = |headers: &[&str], body: &[u8]| {
        let headers: Vec<&str> = [&["X-Fence-Token: 1"], headers].concat();
        ask(&app, "PUT /r/orders:42", &headers, body)
    };
    let refused = put(&[], b"123456789");
    assert_eq!(
        (refused.status, refused.json()["error"].as_str().unwrap()),
        (413, "the body is larger than 8 bytes")
    );
    assert_eq!(put(&["Transfer-Encoding: chunked"], b"9\r\n123456789\r\n0\r\n\r\n").status, 413);
    assert_eq!(put(&["Content-Length: 7"], b"123").status, 400, "a body that ends early is not stored");
    assert_eq!(read(&app)["version"], 0);
    assert_eq!(put(&["Transfer-Encoding: chunked"], b"8\r\n12345678\r\n0\r\n\r\n").status, 200);
    assert_eq!(read(&app)["value"], "12345678");
}

#[test]
fn the_answer_to_an_unknown_method_names_known_ones() {
    let head = ask(&app(), "PATCH /r/k", &[], b"").head;
    assert!(head.contains("allow: get, head, put"), "{head}");
}

#[test]
fn a_failing_disk_is_an_error_and_no_acknowledgement() {
    let disk = Disk::default();
    let app = App::new(Arc::new(RedbStore::create(disk.clone()).unwrap()), Config::default());
    disk.fail_after(0);
    let answer = put(&app, 34, None, "b");
    assert_eq!(answer.status, 503);
    assert!(answer.json()["help"].as_str().unwrap().contains("may have been applied"));
    assert!(scrape(&app).contains("\nresource_store_failures_total 1\n"));
}

fn scrape(app: &App) -> String {
    ask(app, "GET /metrics", &[], b"").body
}

#[test]
fn metrics_count_each_outcome_and_no_other_service() {
    let (app, other) = (app(), app());
    put(&app, 34, Some("b"), "b");
    put(&app, 34, Some("b"), "b");
    put(&app, 33, Some("a"), "a");
    put(&app, 34, Some("a"), "a");
    ask(&app, "GET /r/orders:42", &["X-Fence-Token: 33"], b"");
    read(&app);
    let text = scrape(&app);
    for line in [
        "# TYPE resource_stale_token_rejections_total counter",
        "resource_stale_token_rejections_total{resource_type=\"orders\"} 2",
        "redis_lease_fencing_rejected_total{resource_type=\"orders\",downstream=\"resource\"} 3",
        "resource_writes_total{resource_type=\"orders\",outcome=\"accepted\"} 1",
        "resource_writes_total{resource_type=\"orders\",outcome=\"repeated\"} 1",
        "resource_writes_total{resource_type=\"orders\",outcome=\"stale\"} 1",
        "resource_writes_total{resource_type=\"orders\",outcome=\"owner\"} 1",
        "resource_reads_total{resource_type=\"orders\",outcome=\"answered\"} 1",
        "resource_reads_total{resource_type=\"orders\",outcome=\"stale\"} 1",
        "resource_bad_requests_total 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    read(&other);
    let of_other = scrape(&other);
    assert!(
        of_other.contains("\nresource_stale_token_rejections_total{resource_type=\"orders\"} 0\n"),
        "{of_other}"
    );
}

/// Checks every field of the events, which the audit reads.
#[test]
fn each_decision_emits_one_event() {
    let events = Events::default();
    events.collect_here();
    let app = app();
    let mine = ["X-Fence-Token: 34", "X-Lock-Owner: b:7f3c9e120000", "X-Fence-Seq: 1"];
    ask(&app, "GET /r/orders%3A42", &mine[..2], b"");
    ask(&app, "PUT /r/orders:42", &mine, b"b");
    ask(&app, "PUT /r/orders:42", &mine, b"b");
    put(&app, 33, None, "a");
    put(&app, 34, Some("a:1"), "a");
    ask(&app, "GET /r/orders:42", &["X-Fence-Token: 33", "X-Lock-Owner: a:1"], b"");
    read(&app);
    put(&app, 0, None, "malformed: no decision");
    let hash = dlock::id_hash("orders:42");
    // SHA-256 of "b".
    let body = "3e23e8160039594a";
    let common = |fields: Value| {
        let mut fields: Event = fields
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, value)| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                (&*Box::leak(name.clone().into_boxed_str()), text)
            })
            .collect();
        fields.insert("resource_id_hash", hash.clone());
        fields
    };
    let b = "b:7f3c9e12";
    let expected: Vec<Event> = [
        json!({"event": "resource_read", "owner_token_prefix": b, "fencing_token": 34,
            "version": 0, "seen": 34}),
        json!({"event": "write_accepted", "owner_token_prefix": b, "fencing_token": 34,
            "seq": 1, "version": 1, "body": body}),
        json!({"event": "write_repeated", "owner_token_prefix": b, "fencing_token": 34,
            "seq": 1, "version": 1, "body": body}),
        json!({"event": "write_rejected", "fencing_token": 33, "seen": 34, "outcome": "stale"}),
        json!({"event": "write_rejected", "owner_token_prefix": "a:1", "fencing_token": 34,
            "seen": 34, "outcome": "owner"}),
        json!({"event": "read_rejected", "owner_token_prefix": "a:1", "fencing_token": 33,
            "seen": 34, "outcome": "stale"}),
        json!({"event": "resource_read", "version": 1, "seen": 34}),
    ]
    .into_iter()
    .map(common)
    .collect();
    assert_eq!(events.all(), expected);
}

#[test]
fn a_connection_serves_many_requests() {
    let app = app();
    let request = |last: &str| {
        format!("PUT /r/k HTTP/1.1\r\nHost: r\r\nX-Fence-Token: 1\r\nContent-Length: 1\r\n{last}\r\nx")
    };
    let answers = exchange(&app, format!("{}{}", request(""), request("Connection: close\r\n")).as_bytes());
    assert_eq!(answers.status, 200);
    assert!(answers.body.contains("HTTP/1.1 409"), "{}", answers.body);
}
