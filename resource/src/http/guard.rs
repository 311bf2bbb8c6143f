//! The guards in front of the service: who may use it, and how often.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::answer::Problem;
use super::rate::RateLimit;
use crate::bearer::BearerTokens;
use crate::metrics::{Metrics, Plain};

/// The paths that demand a token of an operator instead of a client's.
pub(super) const ADMIN: &str = "/admin/";

/// The guards of a service. By default there are none.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
///
/// use resource::bearer::BearerTokens;
/// use resource::http::{App, Config, Guards};
/// use resource::store::MemoryStore;
///
/// let bearer = Some(BearerTokens::parse("billing 9f86d081884c7d659a2feaa0c55ad015")?);
/// let app = App::new(Arc::new(MemoryStore::new()), Config::default());
/// let app = app.guarded(Guards { bearer, ..Guards::default() });
/// # Ok::<(), resource::bearer::BearerError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Guards {
    /// Serves only requests with one of these tokens, `Authorization: Bearer TOKEN`. The paths of operators
    /// have tokens of their own.
    pub bearer: Option<BearerTokens>,
    /// Limits the requests of each client address, before their token is checked.
    pub rate: Option<RateLimit>,
}

/// The client at the other end of a connection, as far as the server knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub address: Option<IpAddr>,
    /// The certificate that it showed (mutual TLS), in DER.
    pub certificate: Option<Arc<[u8]>>,
}

/// The state of the guards of one service.
#[derive(Debug)]
pub(super) struct Guarding {
    pub(super) guards: Guards,
    pub(super) metrics: Arc<Metrics>,
}

/// Passes a request on, or refuses it.
pub(super) async fn guard(State(guarding): State<Arc<Guarding>>, request: Request, next: Next) -> Response {
    let Guarding { guards: Guards { bearer, rate }, metrics } = &*guarding;
    let address = request.extensions().get::<Peer>().and_then(|peer| peer.address);
    if let Some(Err(wait)) = rate.as_ref().map(|rate| rate.admit(address)) {
        metrics.count(Plain::RateLimited);
        return Problem::too_many_requests(whole_seconds(wait)).into_response();
    }
    if let Some(bearer) = bearer
        && !request.uri().path().starts_with(ADMIN)
        && holder(bearer, request.headers()).is_none()
    {
        metrics.count(Plain::Unauthorized);
        return Problem::UNAUTHORIZED.into_response();
    }
    next.run(request).await
}

/// Returns the name of the token's holder, if the request has one token, and it is accepted.
pub(super) fn holder<'a>(tokens: &'a BearerTokens, headers: &HeaderMap) -> Option<&'a str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    // Two values are refused: a proxy may have judged the other one.
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") { tokens.holder(token.trim_start()) } else { None }
}

/// Returns the time in seconds, rounded up: a retry after them is allowed.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}
