//! The service over HTTP.
//!
//! ```text
//! PUT /r/{key}   X-Fence-Token: N [X-Fence-Seq: S] [X-Lock-Owner: O]   writes the body
//! PUT /r/{key}   If-Match: "V" [X-Lock-Owner: O]                       writes if the version is still V
//! PUT /r/{key}   If-None-Match: * [X-Lock-Owner: O]                    the same for V = 0, never written
//! GET /r/{key}   [X-Fence-Token: N] [X-Lock-Owner: O]                  reads; with a token it claims N
//! GET /fencing                                                         whether stale tokens are refused
//! GET /metrics                                                         Prometheus text
//! GET, POST /admin/fence/{key}                                         shows or sets a fence: see [`Admin`]
//! ```
//!
//! The answers, all JSON but for the metrics:
//!
//! | | |
//! |---|---|
//! | 200 to a write | `{"version":1,"max_fence":34}` |
//! | 200 to a read | `{"value":"…","max_fence":34,"version":1}`; a value that is not UTF-8 is in hexadecimal and `"encoding":"hex"` says so; never written: `null`, 0 (or the claim) and 0 |
//! | 200 to `/fencing` | `{"fencing":"on"}`, or `"off"` |
//! | 200 to a conditional write | `{"version":2}` |
//! | 412 to a conditional write | `{"error":"the version has changed","expected":1,"current":2}`: read again |
//! | 409 to a conditional write | `{"error":"fencing token required","seen":34}`: the key is written by holders of a lock |
//! | 409 | `{"error":"stale fencing token","seen":34,"got":33}`, or `"fencing token of another owner"` |
//! | 422 | `{"error":"fencing token too far above the highest seen","seen":34,"got":9999999,"max":1000034,"help":…}`, if the store has a [`MaxJump`](crate::MaxJump) |
//! | 401, 429 | `{"error":…,"help":…}`: nothing was stored; the [`Guards`] want a bearer token, or fewer requests, from `Retry-After` seconds on |
//! | 400, 404, 405, 413 | `{"error":…,"help":…}`: nothing was stored, and asking again is of no use |
//! | 500, 503 | `{"error":…,"help":…}`: the store failed; the write may or may not be applied. With `Retry-After` it is a connection beyond the limit, and nothing was applied |
//!
//! Each 200, and the 412, has the version as its `ETag`. It is the version of the value alone: a claim does
//! not change it, though it raises `max_fence` beside the value. A write has either a token or a condition,
//! not both.
//!
//! A write or a claim of a semaphore's permit has `X-Fence-Beside: 7,9`, too: the tokens of the other permits
//! that were live when it was granted. Those of the highest token may write below it; no other token may. See
//! [`Fence::write_beside`](crate::fence::Fence::write_beside).
//!
//! A conditional write needs no lock, and does not bypass one: as long as fencing is on, a key that has seen
//! a token, in a write or in a fenced read, refuses it, whatever its version. With fencing off the version
//! alone decides.

mod admin;
pub(crate) mod answer;
mod guard;
mod rate;
mod request;
mod serve;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use dlock_runtime::{Probed, always, probes, sometimes};

pub use self::admin::Admin;
use self::answer::Problem;
use self::guard::{Guarding, guard};
pub use self::guard::{Guards, Peer};
pub use self::rate::RateLimit;
pub use self::serve::{refuse_connection, serve_connection, serve_peer};
use crate::fence::{Fencing, Guard, Refusal, WriteOutcome};
pub use crate::metrics::Metrics;
use crate::metrics::Plain;
use crate::store::{FenceAdmin, ReadOutcome, Store, Write};

/// The header with the fencing token: a whole number from 1 to 18446744073709551615.
pub const FENCE_TOKEN: &str = crate::fence::http::FENCE_TOKEN;
/// The header with the number of a write among those of its grant: 1 to 18446744073709551614.
pub const FENCE_SEQ: &str = crate::fence::http::FENCE_SEQ;
/// The header with the tokens of the other permits that were live when the permit of the request was granted,
/// in ascending order with commas: `7,9`. Left out for a mutex.
pub const FENCE_BESIDE: &str = crate::fence::http::FENCE_BESIDE;
/// The header with the owner token of the grant; of a conditional write, any name that its writer gave to it.
pub const LOCK_OWNER: &str = crate::fence::http::LOCK_OWNER;

/// The configuration of a service.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The switch for refusing stale tokens.
    pub fencing: Fencing,
    /// The largest body of a write, in bytes.
    pub body_bytes_max: usize,
}

impl Default for Config {
    /// Returns the usual configuration: fencing on, bodies of up to 64 KiB.
    fn default() -> Self {
        Self { fencing: Fencing::On, body_bytes_max: 64 * 1024 }
    }
}

/// A service. A clone is the same service: build one, and serve every connection from it.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
///
/// use resource::Fencing;
/// use resource::http::{App, Config};
/// use resource::store::MemoryStore;
///
/// let config = Config { fencing: Fencing::Off, ..Config::default() };
/// let app = App::new(Arc::new(MemoryStore::new()), config);
/// // Your own server may have other routes beside those of the resource.
/// let routes = app.router().route("/health", axum::routing::get(|| async { "up" }));
/// assert!(routes.has_routes());
/// ```
#[derive(Clone, Debug)]
pub struct App {
    /// The routes without the guards.
    routes: Router,
    guarding: Option<Arc<Guarding>>,
    router: Router,
    metrics: Arc<Metrics>,
}

#[derive(Debug)]
struct Service<S, P> {
    store: Arc<S>,
    /// Hears of the probes; `()` outside a simulator.
    probed: P,
    config: Config,
    metrics: Arc<Metrics>,
}

impl App {
    /// Creates a service on `store`, with counters of its own.
    pub fn new<S: Store>(store: Arc<S>, config: Config) -> Self {
        Self::with_probes(store, config, ())
    }

    /// Creates a service as [`App::new`] does, whose probes `probed` hears of: for a simulator.
    #[doc(hidden)]
    pub fn with_probes<S: Store>(store: Arc<S>, config: Config, probed: impl Probed) -> Self {
        let metrics = Arc::new(Metrics::default());
        let routes = router(Service { store, probed, config, metrics: metrics.clone() });
        Self { router: routes.clone(), routes, guarding: None, metrics }
    }

    /// Puts guards in front of all routes, those of operators included. The [`Peer`] of a request is that of
    /// its connection: [`serve_peer`].
    #[must_use]
    pub fn guarded(self, guards: Guards) -> Self {
        let guarding = Guarding { guards, metrics: Arc::clone(&self.metrics) };
        Self { guarding: Some(Arc::new(guarding)), ..self }.assembled()
    }

    /// Adds the routes of operators, who set the fences of `store`, which is that of the service:
    ///
    /// ```text
    /// GET /admin/fence/{key}                                             {"max_fence":34,"changes":[…]}
    /// POST /admin/fence/{key}  {"from":99,"to":34,"reason":"a test"}     {"max_fence":34}
    /// ```
    ///
    /// A change is refused with 409 if the highest token seen is not `from`, and each one is recorded: see
    /// [`FenceAdmin`], and when it is safe [`Fence::set`](crate::fence::Fence::set).
    #[must_use]
    pub fn administered<S: FenceAdmin>(self, store: Arc<S>, admin: Admin) -> Self {
        let routes = self.routes.merge(admin::routes(store, admin, Arc::clone(&self.metrics)));
        Self { routes, ..self }.assembled()
    }

    fn assembled(self) -> Self {
        let routes = self.routes.clone();
        let router = match &self.guarding {
            None => routes,
            Some(guarding) => routes.layer(from_fn_with_state(Arc::clone(guarding), guard)),
        };
        Self { router, ..self }
    }

    /// Returns the routes, for a server of your own.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Returns the service's counters.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}

fn router<S: Store, P: Probed>(service: Service<S, P>) -> Router {
    let not_allowed = method_not_allowed::<S, P>;
    Router::new()
        .route("/r/{key}", get(resource::<S, P>).put(resource::<S, P>).fallback(not_allowed))
        .route("/fencing", get(fencing::<S, P>).fallback(not_allowed))
        .route("/metrics", get(scrape::<S, P>).fallback(not_allowed))
        .fallback(not_found::<S, P>)
        .with_state(Arc::new(service))
}

async fn resource<S: Store, P: Probed>(
    State(service): State<Arc<Service<S, P>>>,
    request: Request,
) -> Response {
    let answer = if request.method() == Method::PUT {
        service.write(request).await
    } else {
        service.read(request).await
    };
    answer.unwrap_or_else(|problem| service.metrics.refuse(problem))
}

async fn fencing<S: Store, P: Probed>(State(service): State<Arc<Service<S, P>>>) -> Response {
    answer::fencing(service.config.fencing)
}

async fn scrape<S: Store, P: Probed>(State(service): State<Arc<Service<S, P>>>) -> Response {
    answer::metrics(service.metrics.render())
}

async fn not_found<S: Store, P: Probed>(State(service): State<Arc<Service<S, P>>>) -> Response {
    service.metrics.refuse(Problem::NOT_FOUND)
}

async fn method_not_allowed<S: Store, P: Probed>(State(service): State<Arc<Service<S, P>>>) -> Response {
    service.metrics.refuse(Problem::METHOD_NOT_ALLOWED)
}

impl<S: Store, P: Probed> Service<S, P> {
    async fn write(&self, request: Request<Body>) -> Result<Response, Problem> {
        let (key, write, beside) = request::put(request, self.config.body_bytes_max).await?;
        let outcome = self.store.write_beside(&key, &write, &beside, self.config.fencing).await?;
        self.note_write(&write, &outcome);
        self.metrics.write_answered(&key, &outcome);
        Ok(answer::write(outcome))
    }

    async fn read(&self, request: Request<Body>) -> Result<Response, Problem> {
        let (key, read, beside) = request::read(&request)?;
        let outcome = self.store.read_beside(&key, &read, &beside, self.config.fencing).await?;
        sometimes!(self.probed, claim_refused, matches!(outcome, ReadOutcome::Refused(_)));
        self.metrics.read_answered(&key, &outcome);
        Ok(answer::read(outcome))
    }

    /// Evaluates the probes of a write.
    #[inline(always)]
    fn note_write(&self, write: &Write, outcome: &WriteOutcome) {
        let probed = &self.probed;
        let refused = |is: fn(&Refusal) -> bool| matches!(outcome, WriteOutcome::Refused(why) if is(why));
        sometimes!(
            probed,
            smaller_token_refused,
            refused(|why| why.tokens().is_some_and(|(seen, got)| got < seen))
        );
        sometimes!(
            probed,
            equal_token_refused,
            refused(|why| why.tokens().is_some_and(|(seen, got)| got == seen))
        );
        sometimes!(probed, token_of_two_owners, refused(|why| matches!(why, Refusal::ForeignOwner { .. })));
        sometimes!(probed, conflict_refused, refused(|why| matches!(why, Refusal::Conflict { .. })));
        sometimes!(probed, write_without_token_refused, refused(|why| matches!(why, Refusal::Fenced { .. })));
        sometimes!(probed, write_repeated, matches!(outcome, WriteOutcome::Repeated(_)));
        sometimes!(
            probed,
            first_write_since_restart,
            match outcome {
                WriteOutcome::Accepted(receipt) => receipt.version > 1 && self.metrics.writes_accepted() == 0,
                _ => false,
            }
        );
        always!(
            probed,
            accepted_token_is_remembered,
            match (write.guard, outcome) {
                (Guard::Token { token, .. }, WriteOutcome::Accepted(receipt)) => {
                    self.config.fencing == Fencing::Off || receipt.max_fence >= Some(token)
                }
                _ => true,
            }
        );
        always!(
            probed,
            stale_means_not_above,
            refused(|why| why.tokens().is_none_or(|(seen, got)| got <= seen))
                || !matches!(outcome, WriteOutcome::Refused(_))
        );
    }
}

impl Metrics {
    /// Counts a request that did not reach the fence rule, and returns its answer.
    fn refuse(&self, problem: Problem) -> Response {
        self.count(if problem.is_ours() { Plain::StoreFailures } else { Plain::BadRequests });
        problem.into_response()
    }
}

probes! {
    /// A write was refused, since a larger token had been seen.
    sometimes smaller_token_refused;
    /// A write was refused at the highest token itself.
    sometimes equal_token_refused;
    /// A write was refused, since its token had been given to another owner too.
    sometimes token_of_two_owners;
    /// A conditional write was refused, since the version had changed.
    sometimes conflict_refused;
    /// A conditional write was refused, since the key is written under a lock.
    sometimes write_without_token_refused;
    /// A claim was refused.
    sometimes claim_refused;
    /// A retry of a write that had been applied was recognised.
    sometimes write_repeated;
    /// The first write that a service accepts goes to a key written before: the store outlived a restart.
    sometimes first_write_since_restart;
    /// With fencing on, the store remembers the token of a write that it accepts, or a larger one. Whether it
    /// should have accepted it is for the audit to say.
    always accepted_token_is_remembered;
    /// A write that is refused for its token does not exceed the highest seen.
    always stale_means_not_above;
}
