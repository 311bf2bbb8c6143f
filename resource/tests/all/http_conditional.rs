//! Conditional writes over HTTP/1.1: `If-Match`, `If-None-Match`, and their refusal on a fenced key.

use crate::common::service::{Answer, app, ask, put, read, unfenced};
use resource::http::App;
use serde_json::json;

fn put_if(app: &App, condition: &str, body: &str) -> Answer {
    ask(app, "PUT /r/orders:42", &[condition], body.as_bytes())
}

#[test]
fn a_conditional_write_needs_the_version_that_was_read() {
    let app = app();
    assert!(ask(&app, "GET /r/orders:42", &[], b"").head.contains("etag: \"0\""));
    let first = put_if(&app, "If-Match: \"0\"", "a");
    assert_eq!(first.pair(), (200, json!({"version": 1})));
    assert!(first.head.contains("etag: \"1\""), "{}", first.head);
    let lost = put_if(&app, "If-Match: \"0\"", "b");
    assert_eq!(lost.body, r#"{"error":"the version has changed","expected":0,"current":1}"#);
    assert_eq!(lost.status, 412);
    assert_eq!(put_if(&app, "If-None-Match: *", "b").status, 412);
    assert_eq!(put_if(&app, "If-Match: \"1\"", "c").pair(), (200, json!({"version": 2})));
    assert_eq!(read(&app), json!({"value": "c", "max_fence": 0, "version": 2}));
    assert!(ask(&app, "GET /r/orders:42", &[], b"").head.contains("etag: \"2\""));
    let metrics = ask(&app, "GET /metrics", &[], b"").body;
    assert!(
        metrics.contains(r#"resource_writes_total{resource_type="orders",outcome="conflict"} 2"#),
        "{metrics}"
    );
}

#[test]
fn a_key_never_written_matches_none() {
    let app = app();
    assert_eq!(put_if(&app, "If-None-Match: *", "a").pair(), (200, json!({"version": 1})));
}

#[test]
fn a_fenced_key_takes_no_write_without_a_token() {
    let app = app();
    let fenced = put(&app, 34, None, "b");
    assert!(fenced.head.contains("etag: \"1\""), "{}", fenced.head);
    let refused = put_if(&app, "If-Match: \"1\"", "c");
    assert_eq!(refused.pair(), (409, json!({"error": "fencing token required", "seen": 34})));
    let app = unfenced();
    put(&app, 34, None, "b");
    assert_eq!(put_if(&app, "If-Match: \"1\"", "c").status, 200, "without fencing the version alone decides");
}
