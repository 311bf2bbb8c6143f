//! The resource over HTTP: paths, keys, headers, bodies, bearer tokens, and the routes of operators, on a
//! store in memory.
//!
//! Input: a byte of flags, a byte that picks the cuts of the stream, then requests.
//!
//! | flag | |
//! |---|---|
//! | 1 | the requests are what a connection carries, else texts with a zero byte between them |
//! | 2 | fencing is off |
//! | 4 | a bearer token is needed |
//! | 8 | a token may exceed the highest seen by 1000 at most |
//!
//! A text is a line with method and path, lines with headers, an empty line and the body.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use resource::bearer::BearerTokens;
use resource::http::{Admin, App, Config, FENCE_BESIDE, FENCE_TOKEN, Guards, Peer, RateLimit, serve_peer};
use resource::store::MemoryStore;
use resource::{Fencing, MaxJump, ResourceKey};
use tower_service::Service;

use crate::machine::Local;
use crate::messages;
use crate::pipe::pipe;
use crate::server::cut;
use crate::world::Executor;

const RAW: u8 = 1;
const UNFENCED: u8 = 2;
const GUARDED: u8 = 4;
const LIMITED: u8 = 8;

const PORT: u16 = 80;
const BEARER: &str = "client 9f86d081884c7d65\n";
const OPERATOR: &str = "operator 0123456789abcdef\n";

/// Asserts that every answer has a status of the documented ones and its body, that a key's highest token
/// never goes back while fencing is on and no operator sets it, that meanwhile no request passes below it
/// whose token no request has named as a permit beside its own, that the first answer does not depend on how
/// the requests arrive, and that the service still serves.
pub fn run(data: &[u8]) {
    let Some((&[flags, cuts], bytes)) = data.split_first_chunk() else { return };
    if flags & RAW != 0 {
        let answer = carried(flags, [bytes]);
        let of_pieces = carried(flags, cut(bytes, cuts.into()));
        // hyper may close a connection without an answer to what is no HTTP.
        if !answer.is_empty() && !of_pieces.is_empty() {
            assert_eq!(first_line(&answer), first_line(&of_pieces), "the answer depends on how it arrives");
        }
        messages::read(PORT, bytes, &answer);
    } else {
        let mut executor = Executor::new();
        let app = app(flags, &Local::new(executor.world()));
        let requests = bytes.split(|byte| *byte == 0).take(32).filter_map(request);
        let over = executor.block_on(answer_all(&app, flags, requests), Duration::from_secs(1));
        assert!(over.is_some(), "a request is never answered");
    }
}

fn app(flags: u8, machine: &Local) -> App {
    let store = match flags & LIMITED {
        0 => MemoryStore::new(),
        _ => MemoryStore::new().with_max_jump(MaxJump::new(1000, 1000)),
    };
    let store = Arc::new(store);
    let fencing = if flags & UNFENCED != 0 { Fencing::Off } else { Fencing::On };
    let config = Config { fencing, body_bytes_max: 64 };
    let admin = Admin { tokens: tokens(OPERATOR), clock: || 1_700_000_000_000 };
    let bearer = (flags & GUARDED != 0).then(|| tokens(BEARER));
    let rate = NonZeroU32::new(20).map(|rate| RateLimit::new(machine.clone(), rate));
    App::new(Arc::clone(&store), config).administered(store, admin).guarded(Guards { bearer, rate })
}

#[expect(clippy::expect_used, reason = "the texts are constants")]
fn tokens(text: &str) -> BearerTokens {
    BearerTokens::parse(text).expect("a token")
}

/// Returns what a new service answers to `segments` on one connection.
fn carried<'a>(flags: u8, segments: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut executor = Executor::new();
    let machine = Local::new(executor.world());
    let app = app(flags, &machine);
    let mut ask = |segments: &mut dyn Iterator<Item = &'a [u8]>| {
        let (far, near) = pipe();
        let peer = Peer { address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), certificate: None };
        let served = serve_peer(near, &app, peer);
        executor.world().spawn(async move {
            // A request that is no HTTP ends the connection.
            let _ = served.await;
        });
        for segment in segments {
            far.send(segment);
            executor.settle();
        }
        far.finish();
        executor.advance(Duration::from_secs(2), 1000);
        far.take()
    };
    let answer = ask(&mut segments.into_iter());
    let later = ask(&mut [&b"GET /fencing HTTP/1.1\r\nHost: r\r\n\r\n"[..]].into_iter());
    let expected: &[u8] = if flags & GUARDED != 0 { b"HTTP/1.1 401" } else { b"HTTP/1.1 200" };
    assert!(later.starts_with(expected), "{}", later.escape_ascii());
    answer
}

fn first_line(answer: &[u8]) -> String {
    answer.split(|byte| *byte == b'\n').next().unwrap_or_default().escape_ascii().to_string()
}

/// Reads a request from its text. `None` if `axum` could not have read it from a connection.
fn request(text: &[u8]) -> Option<Request<Body>> {
    let (head, body) = match text.windows(2).position(|pair| pair == b"\n\n") {
        Some(end) => (&text[..end], &text[end + 2..]),
        None => (text, &[][..]),
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let mut words = lines.next()?.splitn(2, |byte| *byte == b' ');
    let mut request = Request::builder().method(words.next()?).uri(words.next()?);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':')?;
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    request.body(Body::from(body.to_vec())).ok()
}

async fn answer_all(app: &App, flags: u8, requests: impl Iterator<Item = Request<Body>>) {
    let mut router = app.router();
    let mut seen = BTreeMap::<ResourceKey, Seen>::new();
    for request in requests {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let fence = Fence::of(request.headers());
        let Ok(response) = router.call(request).await;
        let status = response.status();
        assert!(is_documented(status), "{method} {path} gets {status}");
        let is_json = response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes() == b"application/json");
        let Ok(body) = response.into_body().collect().await else { panic!("{method} {path} has no body") };
        let body = body.to_bytes();
        assert!(is_json || path == "/metrics", "{method} {path} gets {}", body.escape_ascii());
        if !is_json || body.is_empty() {
            continue;
        }
        let Ok(body) = serde_json::from_slice::<serde_json::Value>(&body) else {
            panic!("{method} {path} gets no JSON: {}", body.escape_ascii())
        };
        assert_eq!(body.get("error").is_some(), status != StatusCode::OK, "{method} {path} gets {body}");
        if path.starts_with("/admin/") && method == "POST" {
            seen.values_mut().for_each(|seen| seen.token = 0);
        } else if flags & UNFENCED == 0
            && let Some(segment) = path.strip_prefix("/r/")
            && let Ok(key) = ResourceKey::from_path_segment(segment)
        {
            seen.entry(key).or_default().check(&method, &path, &fence, status, &body);
        }
    }
}

/// The token of a request, zero if there is none, and those beside it.
struct Fence {
    token: u64,
    beside: Vec<u64>,
}

impl Fence {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let tokens = text(FENCE_BESIDE).split(',').filter_map(|token| token.trim().parse().ok());
        Self { token: text(FENCE_TOKEN).parse().unwrap_or_default(), beside: tokens.collect() }
    }
}

/// The highest version and the last token in the answers about one key, and all permits that were named.
#[derive(Default)]
struct Seen {
    version: u64,
    token: u64,
    permits: BTreeSet<u64>,
}

impl Seen {
    /// Checks the answer to a request, whose method this is.
    fn check(
        &mut self,
        method: &Method,
        path: &str,
        fence: &Fence,
        status: StatusCode,
        body: &serde_json::Value,
    ) {
        self.permits.extend(&fence.beside);
        let number = |field| body.get(field).and_then(serde_json::Value::as_u64);
        if let Some(version) = number("version")
            && method == Method::PUT
        {
            if version <= self.version {
                // The write was applied before. It gets the answer of then, with the highest token of then.
                return;
            }
            self.version = version;
        }
        let passes = status != StatusCode::OK || fence.token == 0 || fence.token >= self.token;
        assert!(passes || self.permits.contains(&fence.token), "{} passes below {}", fence.token, self.token);
        if let Some(token) = number("max_fence") {
            let before = std::mem::replace(&mut self.token, token);
            assert!(token >= before, "the highest token of {path} goes from {before} back to {token}");
        }
    }
}

fn is_documented(status: StatusCode) -> bool {
    matches!(status.as_u16(), 200 | 400 | 401 | 404 | 405 | 409 | 412 | 413 | 422 | 429)
}
