//! Refusals as answers over HTTP, and the refusals in answers.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, HeaderValue};
use axum::http::{Response as HttpResponse, StatusCode};
use axum::response::{IntoResponse, Response};
use dlock::FencingToken;
use serde::{Deserialize, Serialize};

use crate::Refusal;

const STALE: &str = "stale fencing token";
const FOREIGN_OWNER: &str = "fencing token of another owner";
const CONFLICT: &str = "the version has changed";
const FENCED: &str = "fencing token required";
const JUMP: &str = "fencing token too far above the highest seen";
const JUMP_HELP: &str = "send the token of your lock as it is; if the lock has granted it, an operator can set \
     the fence of this key nearer to it (POST /admin/fence/{key}), or start the resource with another --max-jump";

/// The body of a 409.
#[derive(Debug, Serialize, Deserialize)]
struct Refused<'a> {
    error: Cow<'a, str>,
    seen: u64,
    /// Left out of the answer to a conditional write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    got: Option<u64>,
}

/// The body of a 412.
#[derive(Debug, Serialize, Deserialize)]
struct Conflict<'a> {
    error: Cow<'a, str>,
    expected: u64,
    current: u64,
}

/// The body of a 422.
#[derive(Debug, Serialize, Deserialize)]
struct Jumped<'a> {
    error: Cow<'a, str>,
    /// Zero if there was none.
    seen: u64,
    got: u64,
    max: u64,
    help: Cow<'a, str>,
}

/// The body of every other answer that is an error.
#[derive(Debug, Serialize, Deserialize)]
pub struct Explained<'a> {
    /// The problem.
    pub error: Cow<'a, str>,
    /// The remedy.
    pub help: Cow<'a, str>,
    /// The seconds after which a retry is allowed, if the request was refused for the moment only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

impl IntoResponse for Refusal {
    /// Returns 409, for a conflict of versions 412 with the current one as `ETag`, and 422 for a token that
    /// can't come from the lock.
    fn into_response(self) -> Response {
        let conflict = |error: &'static str, seen: FencingToken, got: Option<FencingToken>| {
            let got = got.map(FencingToken::as_u64);
            json(StatusCode::CONFLICT, &Refused { error: error.into(), seen: seen.as_u64(), got })
        };
        match self {
            Self::Stale { seen, got } => conflict(STALE, seen, Some(got)),
            Self::ForeignOwner { seen, got } => conflict(FOREIGN_OWNER, seen, Some(got)),
            Self::Fenced { seen } => conflict(FENCED, seen, None),
            Self::Jump { seen, got, max } => {
                let (seen, got) = (seen.map_or(0, FencingToken::as_u64), got.as_u64());
                let jumped = Jumped { error: JUMP.into(), seen, got, max, help: JUMP_HELP.into() };
                json(StatusCode::UNPROCESSABLE_ENTITY, &jumped)
            }
            Self::Conflict { expected, current } => {
                let conflict = Conflict { error: CONFLICT.into(), expected, current };
                let mut response = json(StatusCode::PRECONDITION_FAILED, &conflict);
                // A number in quotes is always a valid header value.
                if let Ok(tag) = HeaderValue::try_from(format!("\"{current}\"")) {
                    response.headers_mut().insert(ETAG, tag);
                }
                response
            }
        }
    }
}

/// Reads the refusal in an answer; `None` if it is another answer, or not one of this shape.
///
/// # Example
///
/// ```
/// use axum::http::StatusCode;
/// use fence::Refusal;
///
/// let body = br#"{"error":"stale fencing token","seen":34,"got":33}"#;
/// let stale = Refusal::Stale { seen: "34".parse()?, got: "33".parse()? };
/// assert_eq!(fence::http::refusal(StatusCode::CONFLICT, body), Some(stale));
/// # Ok::<(), dlock::TokenError>(())
/// ```
pub fn refusal(status: StatusCode, body: &[u8]) -> Option<Refusal> {
    match status {
        StatusCode::CONFLICT => {
            let Refused { error, seen, got } = serde_json::from_slice(body).ok()?;
            let (seen, got) = (FencingToken::new(seen)?, got.and_then(FencingToken::new));
            match (&*error, got) {
                (STALE, Some(got)) => Some(Refusal::Stale { seen, got }),
                (FOREIGN_OWNER, Some(got)) => Some(Refusal::ForeignOwner { seen, got }),
                (FENCED, None) => Some(Refusal::Fenced { seen }),
                _ => None,
            }
        }
        StatusCode::PRECONDITION_FAILED => {
            let Conflict { expected, current, .. } = serde_json::from_slice(body).ok()?;
            Some(Refusal::Conflict { expected, current })
        }
        StatusCode::UNPROCESSABLE_ENTITY => {
            let jumped: Jumped<'_> = serde_json::from_slice(body).ok()?;
            let got = FencingToken::new(jumped.got).filter(|_| jumped.error == JUMP)?;
            Some(Refusal::Jump { seen: FencingToken::new(jumped.seen), got, max: jumped.max })
        }
        _ => None,
    }
}

/// Returns an answer with this body, which has only texts and numbers.
pub fn json(status: StatusCode, body: &impl Serialize) -> Response {
    // Such a body always has a JSON form.
    let body = serde_json::to_vec(body).unwrap_or_default();
    let mut response = HttpResponse::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
