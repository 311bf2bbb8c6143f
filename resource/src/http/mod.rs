//! The service over HTTP.
//!
//! ```text
//! PUT /r/{key}   X-Fence-Token: N [X-Fence-Seq: S] [X-Lock-Owner: O]   writes the body
//! PUT /r/{key}   If-Match: "V" [X-Lock-Owner: O]                       writes if the version is still V
//! PUT /r/{key}   If-None-Match: * [X-Lock-Owner: O]                    the same for V = 0, never written
//! GET /r/{key}   [X-Fence-Token: N] [X-Lock-Owner: O]                  reads; with a token it claims N
//! GET /metrics                                                         Prometheus text
//! ```
//!
//! The answers, all JSON but for the metrics:
//!
//! | | |
//! |---|---|
//! | 200 to a write | `{"version":1,"max_fence":34}` |
//! | 200 to a read | `{"value":"…","max_fence":34,"version":1}`; a value that is not UTF-8 is in hexadecimal and `"encoding":"hex"` says so; never written: `null`, 0 (or the claim) and 0 |
//! | 200 to a conditional write | `{"version":2}` |
//! | 412 to a conditional write | `{"error":"the version has changed","expected":1,"current":2}`: read again |
//! | 409 to a conditional write | `{"error":"fencing token required","seen":34}`: the key is written by holders of a lock |
//! | 409 | `{"error":"stale fencing token","seen":34,"got":33}`, or `"fencing token of another owner"` |
//! | 400, 404, 405, 413 | `{"error":…,"help":…}`: nothing was stored, and asking again is of no use |
//! | 500, 503 | `{"error":…,"help":…}`: the store failed; the write may or may not be applied |
//!
//! Each 200, and the 412, has the version as its `ETag`. It is the version of the value alone: a claim does
//! not change it, though it raises `max_fence` beside the value. A write has either a token or a condition,
//! not both.
//!
//! A conditional write needs no lock, and does not bypass one: as long as fencing is on, a key that has seen
//! a token, in a write or in a fenced read, refuses it, whatever its version. With fencing off the version
//! alone decides.

pub(crate) mod answer;
mod request;

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};

use self::answer::Problem;
use crate::fence::Fencing;
pub use crate::metrics::Metrics;
use crate::store::Store;

/// The header with the fencing token: a whole number from 1 to 18446744073709551615.
pub const FENCE_TOKEN: &str = "x-fence-token";
/// The header with the number of a write among those of its grant: 1 to 18446744073709551614.
pub const FENCE_SEQ: &str = "x-fence-seq";
/// The header with the owner token of the grant; of a conditional write, any name that its writer gave to it.
pub const LOCK_OWNER: &str = "x-lock-owner";

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
#[derive(Clone, Debug)]
pub struct App {
    router: Router,
    metrics: Arc<Metrics>,
}

#[derive(Debug)]
struct Service<S> {
    store: Arc<S>,
    config: Config,
    metrics: Arc<Metrics>,
}

impl App {
    /// Creates a service on `store`, with counters of its own.
    pub fn new<S: Store>(store: Arc<S>, config: Config) -> Self {
        let metrics = Arc::new(Metrics::default());
        let service = Arc::new(Service { store, config, metrics: metrics.clone() });
        let router = Router::new()
            .route("/r/{key}", get(resource::<S>).put(resource::<S>).fallback(method_not_allowed::<S>))
            .route("/metrics", get(scrape::<S>).fallback(method_not_allowed::<S>))
            .fallback(not_found::<S>)
            .with_state(service);
        Self { router, metrics }
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

/// Serves one HTTP/1.1 connection on `stream` until the client closes it.
///
/// It sets no timer and sends no `Date`, since the service reads no clock. On the open internet, set a
/// timeout for connections outside.
///
/// # Errors
///
/// The error of the connection; the service itself is unharmed.
pub fn serve_connection<I>(
    stream: I,
    app: &App,
) -> impl Future<Output = Result<(), hyper::Error>> + Send + use<I>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    hyper::server::conn::http1::Builder::new()
        .header_read_timeout(None)
        .auto_date_header(false)
        // A client may close its half after its request: a request that arrived whole is answered.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app.router()))
}

async fn resource<S: Store>(State(service): State<Arc<Service<S>>>, request: Request) -> Response {
    let answer = if request.method() == Method::PUT {
        service.write(request).await
    } else {
        service.read(request).await
    };
    answer.unwrap_or_else(|problem| service.refuse(problem))
}

async fn scrape<S: Store>(State(service): State<Arc<Service<S>>>) -> Response {
    answer::metrics(service.metrics.render())
}

async fn not_found<S: Store>(State(service): State<Arc<Service<S>>>) -> Response {
    service.refuse(Problem::NOT_FOUND)
}

async fn method_not_allowed<S: Store>(State(service): State<Arc<Service<S>>>) -> Response {
    service.refuse(Problem::METHOD_NOT_ALLOWED)
}

impl<S: Store> Service<S> {
    async fn write(&self, request: Request<Body>) -> Result<Response, Problem> {
        let (key, write) = request::put(request, self.config.body_bytes_max).await?;
        let outcome = self.store.write(&key, &write, self.config.fencing).await?;
        self.metrics.write_answered(&outcome);
        Ok(answer::write(outcome))
    }

    async fn read(&self, request: Request<Body>) -> Result<Response, Problem> {
        let (key, read) = request::read(&request)?;
        let outcome = self.store.read(&key, &read, self.config.fencing).await?;
        self.metrics.read_answered(&outcome);
        Ok(answer::read(outcome))
    }

    fn refuse(&self, problem: Problem) -> Response {
        if problem.is_ours() {
            self.metrics.store_failed();
        } else {
            self.metrics.request_refused();
        }
        problem.into_response()
    }
}
