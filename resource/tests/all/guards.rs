//! The guards in front of the service over HTTP/1.1: tokens of clients and operators, rates, and jumps.

use std::future::ready;
use std::io;
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::common::service::{Answer, ask, put, read};
use dlock::{Instant, Runtime};
use resource::bearer::BearerTokens;
use resource::http::{Admin, App, Config, Guards, Peer, RateLimit, refuse_connection, serve_peer};
use resource::store::{FenceAdmin, MemoryStore};
use resource::{MaxJump, fence};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const CLIENT: &str = "9f86d081884c7d659a2feaa0c55ad015";
const OPERATOR: &str = "a3bf4f1b2b0b822cd15d6c15b0f00a08";

/// A runtime whose clock stands still.
#[derive(Clone)]
struct Still;

impl Runtime for Still {
    type Stream = DuplexStream;

    fn now(&self) -> Instant {
        Instant::from_nanos(0)
    }

    async fn sleep_until(&self, _: Instant) {
        std::future::pending().await
    }

    fn connect(&self, _: &str) -> impl Future<Output = io::Result<DuplexStream>> + Send {
        ready(Err(io::ErrorKind::Unsupported.into()))
    }

    fn spawn(&self, _: impl Future<Output = ()> + Send + 'static) {}

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(7);
    }
}

fn operated(store: MemoryStore) -> App {
    let (store, tokens) = (Arc::new(store), BearerTokens::parse(&format!("alice {OPERATOR}")).unwrap());
    let app = App::new(store.clone(), Config::default());
    app.administered(store, Admin { tokens, clock: || 1_700_000_000_000 })
}

fn with_bearer(app: App) -> App {
    let bearer = Some(BearerTokens::parse(&format!("billing {CLIENT}")).unwrap());
    app.guarded(Guards { bearer, ..Guards::default() })
}

fn signed(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

fn set(app: &App, token: &str, body: &str) -> Answer {
    ask(app, "POST /admin/fence/orders:42", &[&signed(token)], body.as_bytes())
}

/// Sends a request on a connection of `peer`.
fn ask_as(app: &App, peer: &Peer, request: &str) -> String {
    let (mut near, far) = duplex(1 << 16);
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut text = String::new();
    executor.block_on(async {
        near.write_all(request.as_bytes()).await.unwrap();
        near.shutdown().await.unwrap();
        serve_peer(far, app, peer.clone()).await.unwrap();
        near.read_to_string(&mut text).await.unwrap();
    });
    text
}

#[test]
fn a_token_that_no_lock_has_granted_is_refused_with_422() {
    let store = MemoryStore::new().with_max_jump(MaxJump::COUNTER);
    let app = App::new(Arc::new(store), Config::default());
    assert_eq!(put(&app, 34, None, "a").status, 200);
    let (status, body) = put(&app, u64::MAX, None, "x").pair();
    assert_eq!(status, 422);
    assert_eq!(body["error"], "fencing token too far above the highest seen");
    assert_eq!(
        [&body["seen"], &body["got"], &body["max"]],
        [&json!(34), &json!(u64::MAX), &json!(1_000_034)]
    );
    assert!(body["help"].as_str().unwrap().contains("/admin/fence/"), "{body}");
    let claim = ask(&app, "GET /r/orders:42", &["X-Fence-Token: 9999999"], b"");
    assert_eq!((claim.status, claim.json()["got"].clone()), (422, json!(9_999_999)));
    assert_eq!(read(&app), json!({"value": "a", "max_fence": 34, "version": 1}));
    let text = ask(&app, "GET /metrics", &[], b"").body;
    for (metric, outcome) in [("writes", "jump"), ("reads", "jump")] {
        let line = format!("resource_{metric}_total{{resource_type=\"orders\",outcome=\"{outcome}\"}} 1\n");
        assert!(text.contains(&line), "{text}");
    }
    assert!(text.contains("fencing_rejected_total{resource_type=\"orders\",downstream=\"resource\"} 2\n"));
}

#[test]
fn a_request_needs_one_accepted_token() {
    let app = with_bearer(crate::common::service::app());
    let (good, bad) = (signed(CLIENT), signed(&format!("{CLIENT}0")));
    let table: &[(u16, &[&str])] = &[
        (401, &[]),
        (401, &[&bad]),
        (401, &["Authorization: Bearer "]),
        (401, &[&format!("Authorization: Basic {CLIENT}")]),
        (401, &[&good, &good]),
        (200, &[&good]),
        (200, &[&format!("authorization: bearer  {CLIENT}")]),
    ];
    for (status, headers) in table {
        for line in ["GET /r/orders:42", "GET /metrics"] {
            let answer = ask(&app, line, headers, b"");
            assert_eq!(answer.status, *status, "{line} {headers:?}");
            let asked = answer.head.contains("www-authenticate: bearer realm=\"resource\"");
            assert_eq!(asked, *status == 401, "{}", answer.head);
            assert!(*status == 200 || !answer.body.contains(CLIENT), "{}", answer.body);
        }
    }
    let unsigned = ask(&app, "PUT /r/orders:42", &["X-Fence-Token: 34"], b"x");
    assert_eq!(unsigned.status, 401);
    assert_eq!(ask(&app, "GET /nowhere", &[], b"").status, 401, "not even the paths are shown");
    let value = ask(&app, "GET /r/orders:42", &[&good], b"").json();
    assert_eq!(value["version"], 0, "nothing was written");
    let text = ask(&app, "GET /metrics", &[&good], b"").body;
    assert!(text.contains("\nresource_unauthorized_total 12\n"), "{text}");
}

#[test]
fn an_operator_sets_a_poisoned_fence_back() {
    let app = with_bearer(operated(MemoryStore::new()));
    let order = r#"{"from":18446744073709551615,"to":34,"reason":" a test wrote it "}"#;
    let write = |token: u64| {
        ask(&app, "PUT /r/orders:42", &[&signed(CLIENT), &format!("X-Fence-Token: {token}")], b"x").status
    };
    assert_eq!([write(u64::MAX), write(35)], [200, 409]);
    assert_eq!(set(&app, CLIENT, order).status, 401, "a client is no operator");
    assert_eq!(ask(&app, "GET /admin/fence/orders:42", &[], b"").status, 401);
    assert_eq!(write(35), 409);
    assert_eq!(set(&app, OPERATOR, order).pair(), (200, json!({"max_fence": 34})));
    let moved = json!({"error": "the fence is not at `from`", "from": u64::MAX, "current": 34});
    assert_eq!(set(&app, OPERATOR, order).pair(), (409, moved));
    let shown = ask(&app, "GET /admin/fence/orders:42", &[&signed(OPERATOR)], b"").json();
    let change = json!({"from": u64::MAX, "to": 34, "who": "alice", "reason": "a test wrote it",
        "at_millis": 1_700_000_000_000_u64});
    assert_eq!(shown, json!({"max_fence": 34, "changes": [change]}));
    assert_eq!([write(34), write(35)], [409, 200]);
    let text = ask(&app, "GET /metrics", &[&signed(CLIENT)], b"").body;
    assert!(text.contains("\nresource_fences_set_total 1\n"), "{text}");
}

#[test]
fn orders_that_are_not_understood_change_nothing() {
    let app = operated(MemoryStore::new());
    put(&app, 34, None, "a");
    let long = format!(r#"{{"from":34,"to":1,"reason":"{}"}}"#, "r".repeat(1001));
    for body in [
        "",
        r#"{"from":34,"to":1}"#,
        r#"{"from":34,"to":1,"reason":" "}"#,
        r#"{"from":34,"to":1,"reason":"a\nb"}"#,
        r#"{"from":34,"to":-1,"reason":"r"}"#,
        r#"{"from":34,"to":1,"reason":"r","force":true}"#,
        &long,
    ] {
        let (status, answer) = set(&app, OPERATOR, body).pair();
        assert_eq!(status, 400, "{body}: {answer}");
        assert!(answer["help"].as_str().unwrap().contains("\"from\":N"), "{answer}");
    }
    let method = ask(&app, "PUT /admin/fence/orders:42", &[&signed(OPERATOR)], b"");
    assert!(method.status == 405 && method.head.contains("allow: get, head, post"), "{}", method.head);
    assert_eq!(read(&app)["max_fence"], 34);
    let unserved =
        ask(&crate::common::service::app(), "GET /admin/fence/orders:42", &[&signed(OPERATOR)], b"");
    assert_eq!(unserved.status, 404, "without an operator's token there is no such path");
}

#[test]
fn a_record_names_address_and_certificate() {
    let store = Arc::new(MemoryStore::new());
    let tokens = BearerTokens::parse(&format!("alice {OPERATOR}")).unwrap();
    let app = App::new(store.clone(), Config::default());
    let app = app.administered(store.clone(), Admin { tokens, clock: || 7 });
    let peer = Peer { address: Some("10.0.0.7".parse().unwrap()), certificate: Some(b"der".to_vec().into()) };
    let body = r#"{"from":0,"to":9,"reason":"r"}"#;
    let head = format!("POST /admin/fence/k HTTP/1.1\r\nHost: r\r\n{}\r\n", signed(OPERATOR));
    let answer = ask_as(&app, &peer, &format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let key = resource::ResourceKey::new("k").unwrap();
    let changes = futures_util::FutureExt::now_or_never(store.fence_changes(&key)).unwrap().unwrap();
    let digest: String =
        fence::BodyDigest::of(b"der").as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(changes[0].who, format!("alice at 10.0.0.7 with the certificate sha256:{digest}"));
}

#[test]
fn requests_beyond_the_rate_are_refused_with_429() {
    let rate = Some(RateLimit::new(Still, NonZeroU32::new(2).unwrap()));
    let app = crate::common::service::app().guarded(Guards { rate, ..Guards::default() });
    let peer = |address: &str| Peer { address: Some(address.parse().unwrap()), certificate: None };
    let ask = |address: &str| ask_as(&app, &peer(address), "GET /r/orders:42 HTTP/1.1\r\nHost: r\r\n\r\n");
    for _ in 0..2 {
        assert!(ask("10.0.0.1").starts_with("HTTP/1.1 200"));
    }
    let refused = ask("10.0.0.1");
    assert!(refused.starts_with("HTTP/1.1 429") && refused.contains("retry-after: 1\r\n"), "{refused}");
    assert!(refused.ends_with("\"retry_after\":1}"), "{refused}");
    assert!(ask("10.0.0.2").starts_with("HTTP/1.1 200"));
    assert!(app.metrics().render().contains("\nresource_rate_limited_total 1\n"));
}

#[test]
fn a_refused_connection_is_told_when_to_come_back() {
    let app = crate::common::service::app();
    let (mut near, far) = duplex(1 << 16);
    let mut text = String::new();
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    executor.block_on(async {
        near.write_all(b"GET /metrics HTTP/1.1\r\nHost: r\r\n\r\n").await.unwrap();
        refuse_connection(far, &app).await.unwrap();
        near.read_to_string(&mut text).await.unwrap();
    });
    assert!(text.starts_with("HTTP/1.1 503") && text.contains("retry-after: 1\r\n"), "{text}");
    assert!(text.contains("connection: close\r\n") && text.contains("nothing was applied"), "{text}");
    assert!(app.metrics().render().contains("\nresource_connections_refused_total 1\n"));
}
