//! The headers of a guarded request, and their extractor.

use std::borrow::Cow;
use std::fmt;

use axum::extract::FromRequestParts;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use dlock::FencingToken;

use super::{Explained, FENCE_BESIDE, FENCE_SEQ, FENCE_TOKEN, LOCK_OWNER, json};
use crate::{Beside, Guard, OwnerToken, WriteSeq};

const TOKEN_HELP: &str =
    "send one X-Fence-Token with the token of your lock: a whole number from 1 to 18446744073709551615";
const UNGUARDED_HELP: &str = "send X-Fence-Token with the token of your lock (a whole number from 1 to \
     18446744073709551615), or without a lock If-Match with the ETag that you read";
const ONE_HELP: &str =
    "send X-Fence-Token if you hold the lock, If-Match or If-None-Match if you do without one";
const IF_MATCH_HELP: &str =
    "send one If-Match with one version in quotes, as the ETag of a read gave it: \"3\"";
const IF_NONE_MATCH_HELP: &str = "send If-None-Match: * to write only what was never written, else If-Match";
const SEQ_HELP: &str = "leave X-Fence-Seq out, or send one that counts the writes of a grant from 1";
const BESIDE_HELP: &str = "leave X-Fence-Beside out, or send beside X-Fence-Token one with the tokens of the \
     other permits of the semaphore that were live at the grant: up to 1000, ascending, with commas";
const OWNER_HELP: &str = "leave X-Lock-Owner out, or send one of up to 256 bytes of plain text";

/// The guard of a write and its writer, from the headers of its request. An extractor of axum: a request
/// whose headers make no guard is answered with 400.
///
/// # Example
///
/// ```
/// use axum::http::HeaderMap;
/// use fence::Guard;
/// use fence::http::Guarded;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("x-fence-token", "34".parse()?);
/// headers.insert("x-lock-owner", "b:28999649".parse()?);
/// assert_eq!(Guarded::from_headers(&headers)?.guard, Guard::token("34".parse()?));
///
/// let error = Guarded::from_headers(&HeaderMap::new()).unwrap_err();
/// assert!(error.to_string().starts_with("the header X-Fence-Token is missing: send X-Fence-Token"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// The guard: the token and number of a grant, or the version of a conditional write.
    pub guard: Guard,
    /// The other permits that were live beside that of the guard; none for a mutex and a conditional write.
    pub beside: Beside,
    /// The writer, if the request names it. Only then is a retry recognised.
    pub owner: Option<OwnerToken>,
}

/// Headers that make no guard. The answer is 400; nothing was stored, and the same request fails again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadHeader {
    /// The problem, with the name of the header.
    pub error: Cow<'static, str>,
    /// The remedy.
    pub help: &'static str,
}

impl Guarded {
    /// Reads the guard and the owner of a write.
    ///
    /// # Errors
    ///
    /// [`BadHeader`] if there is no guard, if there are two, or if a header is not valid.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self, BadHeader> {
        let (token, expected) = (token(headers)?, expected(headers)?);
        let (seq, beside, owner) = (seq(headers)?, beside(headers)?, lock_owner(headers)?);
        let guard = match (token, expected, seq) {
            (None, None, _) => Err(bad("the header X-Fence-Token is missing", UNGUARDED_HELP)),
            (Some(_), Some(_), _) => Err(bad("both a fencing token and a condition were sent", ONE_HELP)),
            (None, Some(_), Some(_)) => Err(bad("X-Fence-Seq was sent without a fencing token", SEQ_HELP)),
            (Some(token), None, seq) => Ok(Guard::Token { token, seq }),
            (None, Some(expected), None) => Ok(Guard::Version { expected }),
        };
        Ok(Self { guard: guard?, beside, owner })
    }
}

impl<S: Sync> FromRequestParts<S> for Guarded {
    type Rejection = BadHeader;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, BadHeader> {
        Self::from_headers(&parts.headers)
    }
}

impl fmt::Display for BadHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.error, self.help)
    }
}

impl std::error::Error for BadHeader {}

impl IntoResponse for BadHeader {
    fn into_response(self) -> Response {
        let explained = Explained { error: self.error, help: self.help.into(), retry_after: None };
        json(StatusCode::BAD_REQUEST, &explained)
    }
}

fn bad(error: impl Into<Cow<'static, str>>, help: &'static str) -> BadHeader {
    BadHeader { error: error.into(), help }
}

/// Reads the fencing token of a request, if it has one: that of a write, or the claim of a read.
///
/// # Errors
///
/// [`BadHeader`] if the header is not valid.
pub fn token(headers: &HeaderMap) -> Result<Option<FencingToken>, BadHeader> {
    let Some(text) = single(headers, FENCE_TOKEN, TOKEN_HELP)? else { return Ok(None) };
    let token = text.parse().map_err(|_| invalid("X-Fence-Token", text, TOKEN_HELP))?;
    Ok(Some(token))
}

/// Reads the tokens of the permits beside that of a request, of a write or a fenced read; none without the
/// header, or if its list is empty.
///
/// # Errors
///
/// [`BadHeader`] if the header is not valid, or if the request has no token.
pub fn beside(headers: &HeaderMap) -> Result<Beside, BadHeader> {
    let Some(text) = single(headers, FENCE_BESIDE, BESIDE_HELP)? else { return Ok(Beside::NONE) };
    if !headers.contains_key(FENCE_TOKEN) {
        return Err(bad("X-Fence-Beside was sent without X-Fence-Token", BESIDE_HELP));
    }
    text.parse().map_err(|error| bad(format!("the header X-Fence-Beside is not valid: {error}"), BESIDE_HELP))
}

/// Reads the owner of a request, if it names one.
///
/// # Errors
///
/// [`BadHeader`] if the header is not valid.
pub fn lock_owner(headers: &HeaderMap) -> Result<Option<OwnerToken>, BadHeader> {
    let Some(text) = single(headers, LOCK_OWNER, OWNER_HELP)? else { return Ok(None) };
    // The error never shows the token, since anyone who knows it can release the lock.
    OwnerToken::new(text).map(Some).map_err(|error| bad(error.to_string(), OWNER_HELP))
}

/// Returns the version that a conditional write names: that of `If-Match`, or zero for `If-None-Match: *`.
fn expected(headers: &HeaderMap) -> Result<Option<u64>, BadHeader> {
    let matches = single(headers, IF_MATCH.as_str(), IF_MATCH_HELP)?;
    let none_matches = single(headers, IF_NONE_MATCH.as_str(), IF_NONE_MATCH_HELP)?;
    match (matches, none_matches) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(bad("both If-Match and If-None-Match were sent", IF_MATCH_HELP)),
        (None, Some("*")) => Ok(Some(0)),
        (None, Some(text)) => Err(invalid("If-None-Match", text, IF_NONE_MATCH_HELP)),
        (Some(text), None) => {
            let version = version(text).ok_or_else(|| invalid("If-Match", text, IF_MATCH_HELP))?;
            Ok(Some(version))
        }
    }
}

/// Parses an entity tag that the service has sent. Strong: a weak tag matches nothing (RFC 9110, section
/// 13.1.1).
fn version(tag: &str) -> Option<u64> {
    let digits = tag.strip_prefix('"')?.strip_suffix('"')?;
    let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if number { digits.parse().ok() } else { None }
}

fn seq(headers: &HeaderMap) -> Result<Option<WriteSeq>, BadHeader> {
    let Some(text) = single(headers, FENCE_SEQ, SEQ_HELP)? else { return Ok(None) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { text.parse().ok() } else { None };
    number.and_then(WriteSeq::new).map(Some).ok_or_else(|| invalid("X-Fence-Seq", text, SEQ_HELP))
}

/// Returns the only value of the header `name`. Two values are refused: one of them could be a proxy's or an
/// attacker's.
fn single<'a>(headers: &'a HeaderMap, name: &str, help: &'static str) -> Result<Option<&'a str>, BadHeader> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(bad(format!("the header {name} was sent more than once"), help));
    }
    let text = std::str::from_utf8(value.as_bytes());
    text.map(Some).map_err(|_| bad(format!("the header {name} is not UTF-8"), help))
}

fn invalid(name: &str, text: &str, help: &'static str) -> BadHeader {
    let shown: String = text.chars().take(40).collect();
    bad(format!("the header {name} can't be {shown:?}"), help)
}
