//! The requests of operators: setting a fence, and reading who has set it.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use dlock::FencingToken;
use serde::{Deserialize, Serialize};

use super::answer::{self, Problem};
use super::guard::{ADMIN, Peer, holder};
use super::request;
use crate::bearer::BearerTokens;
use crate::hex::hex;
use crate::metrics::{Metrics, Plain};
use crate::store::{CHANGES_MAX, FenceAdmin, FenceChange, Read, ReadOutcome, SetOutcome};
use crate::{BodyDigest, Fencing, ResourceKey};

/// The largest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 4096;
/// The longest reason, in bytes.
const REASON_BYTES_MAX: usize = 1000;

const BODY_HELP: &str = "send {\"from\":N,\"to\":M,\"reason\":\"…\"}: the highest token seen, as GET shows it, \
     the one that is to replace it (0 for none), and why; a reason has 1 to 1000 bytes on one line";

/// Access for operators.
#[derive(Clone, Debug)]
pub struct Admin {
    /// The tokens of the operators. The name of each appears in the records of its holder's changes.
    pub tokens: BearerTokens,
    /// Returns the time of a record, in milliseconds since 1970: the service reads no clock of its own.
    pub clock: fn() -> u64,
}

/// The state behind the routes of operators.
#[derive(Debug)]
struct Operated<S> {
    store: Arc<S>,
    admin: Admin,
    metrics: Arc<Metrics>,
}

/// The body of a POST.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    from: u64,
    to: u64,
    reason: String,
}

/// The answer to a POST that was carried out.
#[derive(Debug, Serialize)]
struct Set {
    max_fence: u64,
}

/// The answer to a POST whose `from` is not the highest token seen.
#[derive(Debug, Serialize)]
struct Moved {
    error: &'static str,
    from: u64,
    current: u64,
}

/// The answer to a GET.
#[derive(Debug, Serialize)]
struct Fences {
    max_fence: u64,
    changes: Vec<Change>,
}

#[derive(Debug, Serialize)]
struct Change {
    from: u64,
    to: u64,
    who: String,
    reason: String,
    at_millis: u64,
}

/// Returns the routes of operators.
pub(super) fn routes<S: FenceAdmin>(store: Arc<S>, admin: Admin, metrics: Arc<Metrics>) -> Router {
    let route = get(fence::<S>).post(fence::<S>).fallback(not_allowed::<S>);
    Router::new().route("/admin/fence/{key}", route).with_state(Arc::new(Operated { store, admin, metrics }))
}

async fn fence<S: FenceAdmin>(State(operated): State<Arc<Operated<S>>>, request: Request) -> Response {
    let Some(operator) = holder(&operated.admin.tokens, request.headers()).map(str::to_owned) else {
        operated.metrics.count(Plain::Unauthorized);
        return Problem::UNAUTHORIZED.into_response();
    };
    let answer = if request.method() == Method::POST {
        operated.set(&operator, request).await
    } else {
        operated.show(key(&request)).await
    };
    answer.unwrap_or_else(|problem| operated.metrics.refuse(problem))
}

async fn not_allowed<S: FenceAdmin>(
    State(operated): State<Arc<Operated<S>>>,
    headers: HeaderMap,
) -> Response {
    if holder(&operated.admin.tokens, &headers).is_none() {
        operated.metrics.count(Plain::Unauthorized);
        return Problem::UNAUTHORIZED.into_response();
    }
    operated.metrics.refuse(Problem::ADMIN_METHOD_NOT_ALLOWED)
}

impl<S: FenceAdmin> Operated<S> {
    async fn set(&self, operator: &str, request: Request<Body>) -> Result<Response, Problem> {
        let key = key(&request)?;
        let who = who(operator, request.extensions().get::<Peer>());
        let body = request::body(request.into_body(), BODY_BYTES_MAX).await?;
        let Order { from, to, reason } = serde_json::from_slice(&body).map_err(|error| {
            Problem::bad_request(format!("the body is not understood: {error}"), BODY_HELP)
        })?;
        let reason = reason.trim();
        if reason.is_empty() || reason.len() > REASON_BYTES_MAX || reason.contains(char::is_control) {
            return Err(Problem::bad_request(
                "the reason is missing, too long or not on one line",
                BODY_HELP,
            ));
        }
        let change = FenceChange {
            from: FencingToken::new(from),
            to: FencingToken::new(to),
            who,
            reason: reason.to_owned(),
            at_millis: (self.admin.clock)(),
        };
        Ok(match self.store.set_fence(&key, &change).await? {
            SetOutcome::Set => {
                self.metrics.count(Plain::FencesSet);
                answer::ok(&Set { max_fence: to })
            }
            SetOutcome::Moved(moved) => {
                let error = "the fence is not at `from`";
                answer::conflict(&Moved { error, from, current: number(moved.current) })
            }
        })
    }

    async fn show(&self, key: Result<ResourceKey, Problem>) -> Result<Response, Problem> {
        let key = key?;
        let max_fence = match self.store.read(&key, &Read::default(), Fencing::On).await? {
            ReadOutcome::Read(snapshot) => number(snapshot.max_fence),
            ReadOutcome::Refused(refusal) => number(refusal.seen()),
        };
        let changes = self.store.fence_changes(&key).await?.into_iter().take(CHANGES_MAX);
        let changes = changes.map(|FenceChange { from, to, who, reason, at_millis }| Change {
            from: number(from),
            to: number(to),
            who,
            reason,
            at_millis,
        });
        Ok(answer::ok(&Fences { max_fence, changes: changes.collect() }))
    }
}

fn key(request: &Request<Body>) -> Result<ResourceKey, Problem> {
    let path = request.uri().path().strip_prefix(ADMIN).unwrap_or_default();
    request::key(path.strip_prefix("fence/").unwrap_or_default())
}

/// Returns the words for the operator in a record: the name of the token, the address, and the SHA-256 of the
/// client's certificate, as far as they are known.
fn who(operator: &str, peer: Option<&Peer>) -> String {
    let mut who = operator.to_owned();
    if let Some(address) = peer.and_then(|peer| peer.address) {
        who = format!("{who} at {address}");
    }
    if let Some(certificate) = peer.and_then(|peer| peer.certificate.as_deref()) {
        let digest = hex(BodyDigest::of(certificate).as_bytes());
        who = format!("{who} with the certificate sha256:{digest}");
    }
    who
}

fn number(token: Option<FencingToken>) -> u64 {
    token.map_or(0, FencingToken::as_u64)
}
