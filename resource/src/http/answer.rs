//! The answers of the service, and their bodies in JSON.

use std::borrow::Cow;

use axum::http::StatusCode;
use axum::http::header::{
    ALLOW, CONNECTION, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use dlock::FencingToken;
use serde::{Deserialize, Serialize};

pub(crate) use crate::fence::http::Explained;
use crate::fence::http::{BadHeader, json};
use crate::fence::{Fencing, Receipt, WriteOutcome};
use crate::hex::{hex, unhex};
use crate::store::{ReadOutcome, Snapshot, StoreError};

const HEX: &str = "hex";

/// The body of a 200 to `/fencing`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Mode<'a> {
    pub(crate) fencing: Cow<'a, str>,
}

/// The body of a 200 to a write.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Written {
    pub(crate) version: u64,
    /// Left out of the answer to a conditional write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_fence: Option<u64>,
}

/// The body of a 200 to a read.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Value<'a> {
    value: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoding: Option<Cow<'a, str>>,
    max_fence: u64,
    version: u64,
}

/// Why a request could not reach the fence rule.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    error: Cow<'static, str>,
    help: &'static str,
    header: Option<(HeaderName, &'static str)>,
    retry_after: Option<u64>,
}

impl Problem {
    pub(super) const NOT_FOUND: Self = Self {
        status: StatusCode::NOT_FOUND,
        error: Cow::Borrowed("nothing is served at this path"),
        help: "use /r/{key}, /fencing or /metrics; write a slash within a key as %2F",
        ..Self::EMPTY
    };
    pub(super) const METHOD_NOT_ALLOWED: Self = Self {
        status: StatusCode::METHOD_NOT_ALLOWED,
        error: Cow::Borrowed("the method is not allowed here"),
        help: "write with PUT /r/{key}, read with GET /r/{key}, GET /fencing and GET /metrics",
        header: Some((ALLOW, "GET, HEAD, PUT")),
        ..Self::EMPTY
    };
    pub(super) const ADMIN_METHOD_NOT_ALLOWED: Self = Self {
        status: StatusCode::METHOD_NOT_ALLOWED,
        error: Cow::Borrowed("the method is not allowed here"),
        help: "show a fence with GET /admin/fence/{key}, set it with POST /admin/fence/{key}",
        header: Some((ALLOW, "GET, HEAD, POST")),
        ..Self::EMPTY
    };
    /// It says nothing of the token that was sent: anyone may read it.
    pub(super) const UNAUTHORIZED: Self = Self {
        status: StatusCode::UNAUTHORIZED,
        error: Cow::Borrowed("the request has no accepted bearer token"),
        help: "send one header `Authorization: Bearer TOKEN` with a token that this service was given",
        header: Some((WWW_AUTHENTICATE, "Bearer realm=\"resource\"")),
        ..Self::EMPTY
    };
    /// The answer to a connection beyond the limit.
    pub(super) const BUSY: Self = Self {
        status: StatusCode::SERVICE_UNAVAILABLE,
        error: Cow::Borrowed("the service has as many connections as it may have; nothing was applied"),
        help: "close idle connections, or try again later; the operator can raise --max-connections",
        header: Some((CONNECTION, "close")),
        retry_after: Some(1),
    };
    const EMPTY: Self = Self {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        error: Cow::Borrowed(""),
        help: "",
        header: None,
        retry_after: None,
    };

    pub(super) fn bad_request(error: impl Into<Cow<'static, str>>, help: &'static str) -> Self {
        Self { status: StatusCode::BAD_REQUEST, error: error.into(), help, ..Self::EMPTY }
    }

    /// Returns the refusal of a client that must wait `seconds`.
    pub(super) fn too_many_requests(seconds: u64) -> Self {
        Self {
            status: StatusCode::TOO_MANY_REQUESTS,
            error: "this address sends too many requests; nothing was applied".into(),
            help: "wait as long as Retry-After says; the operator can raise --rate",
            retry_after: Some(seconds),
            ..Self::EMPTY
        }
    }

    pub(super) fn oversized_body(bytes_max: usize) -> Self {
        Self {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            error: format!("the body is larger than {bytes_max} bytes").into(),
            help: "send a smaller value, or the name of where the large one is stored",
            ..Self::EMPTY
        }
    }

    /// Returns true if the fault is the service's, not the request's.
    pub(super) fn is_ours(&self) -> bool {
        self.status.is_server_error()
    }
}

impl From<BadHeader> for Problem {
    fn from(BadHeader { error, help }: BadHeader) -> Self {
        Self::bad_request(error, help)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self {
                status: StatusCode::SERVICE_UNAVAILABLE,
                error: error.to_string().into(),
                help: "the request may have been applied: repeat the very same one with its X-Lock-Owner",
                ..Self::EMPTY
            },
            StoreError::Corrupt(_) => Self {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                error: error.to_string().into(),
                help: "the stored record can't be read: restore the store from a backup",
                ..Self::EMPTY
            },
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, error, help, header, retry_after } = self;
        let mut response = json(status, &Explained { error, help: help.into(), retry_after });
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

pub(super) fn write(outcome: WriteOutcome) -> Response {
    match outcome {
        WriteOutcome::Accepted(receipt) | WriteOutcome::Repeated(receipt) => {
            let Receipt { version, max_fence } = receipt;
            let written = Written { version, max_fence: max_fence.map(FencingToken::as_u64) };
            tagged(version, json(StatusCode::OK, &written))
        }
        WriteOutcome::Refused(refusal) => refusal.into_response(),
    }
}

pub(super) fn read(outcome: ReadOutcome) -> Response {
    match outcome {
        ReadOutcome::Read(snapshot) => tagged(snapshot.version, json(StatusCode::OK, &Value::of(&snapshot))),
        ReadOutcome::Refused(refusal) => refusal.into_response(),
    }
}

/// Returns a 200 with this body.
pub(super) fn ok(body: &impl Serialize) -> Response {
    json(StatusCode::OK, body)
}

/// Returns a 409 with this body.
pub(super) fn conflict(body: &impl Serialize) -> Response {
    json(StatusCode::CONFLICT, body)
}

pub(super) fn fencing(fencing: Fencing) -> Response {
    json(StatusCode::OK, &Mode { fencing: fencing.as_str().into() })
}

pub(super) fn metrics(text: String) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"))], text)
        .into_response()
}

/// Adds the resource's version to the answer as its entity tag, for an `If-Match`.
fn tagged(version: u64, mut response: Response) -> Response {
    // A number in quotes is always a valid header value.
    if let Ok(tag) = HeaderValue::try_from(format!("\"{version}\"")) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

impl<'a> Value<'a> {
    fn of(snapshot: &'a Snapshot) -> Self {
        let (value, encoding) = match snapshot.value.as_deref().map(std::str::from_utf8) {
            None => (None, None),
            Some(Ok(text)) => (Some(text.into()), None),
            Some(Err(_)) => (snapshot.value.as_deref().map(|bytes| hex(bytes).into()), Some(HEX.into())),
        };
        let max_fence = snapshot.max_fence.map_or(0, FencingToken::as_u64);
        Self { value, encoding, max_fence, version: snapshot.version }
    }

    /// Returns the snapshot; `None` if the value is not in its stated encoding.
    pub(crate) fn into_snapshot(self) -> Option<Snapshot> {
        let value = match (self.value, self.encoding.as_deref()) {
            (None, _) => None,
            (Some(text), None) => Some(Bytes::from(text.into_owned())),
            (Some(text), Some(HEX)) => Some(unhex(&text)?.into()),
            (Some(_), Some(_)) => return None,
        };
        Some(Snapshot { value, version: self.version, max_fence: FencingToken::new(self.max_fence) })
    }
}
