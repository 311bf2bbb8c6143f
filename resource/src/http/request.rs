//! The requests to the service. A request is parsed whole before anything is judged or stored.

use std::error::Error;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, Uri};
use bytes::Bytes;
use dlock::FencingToken;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::answer::Problem;
use super::{FENCE_SEQ, FENCE_TOKEN, LOCK_OWNER};
use crate::OwnerToken;
use crate::ResourceKey;
use crate::fence::{Guard, WriteSeq};
use crate::store::{Read, Write};

const KEY_HELP: &str = "use 1 to 256 bytes of UTF-8 without control characters, percent-encoded";
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
const OWNER_HELP: &str = "leave X-Lock-Owner out, or send one of up to 256 bytes of plain text";

/// Parses a write.
pub(super) async fn put(
    request: Request<Body>,
    body_bytes_max: usize,
) -> Result<(ResourceKey, Write), Problem> {
    let key = key_of(request.uri())?;
    let headers = request.headers();
    let (token, expected) = (token(headers)?, expected(headers)?);
    let (seq, owner) = (seq(headers)?, owner(headers)?);
    // A contradictory request is refused before its body is read.
    let guard = match (token, expected, seq) {
        (None, None, _) => {
            return Err(Problem::bad_request("the header X-Fence-Token is missing", UNGUARDED_HELP));
        }
        (Some(_), Some(_), _) => {
            return Err(Problem::bad_request("both a fencing token and a condition were sent", ONE_HELP));
        }
        (None, Some(_), Some(_)) => {
            return Err(Problem::bad_request("X-Fence-Seq was sent without a fencing token", SEQ_HELP));
        }
        (Some(token), None, seq) => Guard::Token { token, seq },
        (None, Some(expected), None) => Guard::Version { expected },
    };
    let body = body(request.into_body(), body_bytes_max).await?;
    Ok((key, Write { guard, owner, body }))
}

/// Parses a read.
pub(super) fn read(request: &Request<Body>) -> Result<(ResourceKey, Read), Problem> {
    let headers = request.headers();
    Ok((key_of(request.uri())?, Read { claim: token(headers)?, owner: owner(headers)? }))
}

fn key_of(uri: &Uri) -> Result<ResourceKey, Problem> {
    key(uri.path().strip_prefix("/r/").unwrap_or_default())
}

/// Parses a segment of a path.
pub(super) fn key(segment: &str) -> Result<ResourceKey, Problem> {
    ResourceKey::from_path_segment(segment).map_err(|error| Problem::bad_request(error.to_string(), KEY_HELP))
}

fn token(headers: &HeaderMap) -> Result<Option<FencingToken>, Problem> {
    let Some(text) = single(headers, FENCE_TOKEN, TOKEN_HELP)? else { return Ok(None) };
    let token = text.parse().map_err(|_| invalid("X-Fence-Token", text, TOKEN_HELP))?;
    Ok(Some(token))
}

/// Returns the version that a conditional write names: that of `If-Match`, or zero for `If-None-Match: *`.
fn expected(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let matches = single(headers, IF_MATCH.as_str(), IF_MATCH_HELP)?;
    let none_matches = single(headers, IF_NONE_MATCH.as_str(), IF_NONE_MATCH_HELP)?;
    match (matches, none_matches) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => {
            Err(Problem::bad_request("both If-Match and If-None-Match were sent", IF_MATCH_HELP))
        }
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

fn seq(headers: &HeaderMap) -> Result<Option<WriteSeq>, Problem> {
    let Some(text) = single(headers, FENCE_SEQ, SEQ_HELP)? else { return Ok(None) };
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { text.parse().ok() } else { None };
    number.and_then(WriteSeq::new).map(Some).ok_or_else(|| invalid("X-Fence-Seq", text, SEQ_HELP))
}

fn owner(headers: &HeaderMap) -> Result<Option<OwnerToken>, Problem> {
    let Some(text) = single(headers, LOCK_OWNER, OWNER_HELP)? else { return Ok(None) };
    // The error never shows the token, since anyone who knows it can release the lock.
    OwnerToken::new(text).map(Some).map_err(|error| Problem::bad_request(error.to_string(), OWNER_HELP))
}

/// Returns the only value of the header `name`. Two values are refused: one of them could be a proxy's or an
/// attacker's.
fn single<'a>(headers: &'a HeaderMap, name: &str, help: &'static str) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Problem::bad_request(format!("the header {name} was sent more than once"), help));
    }
    let text = std::str::from_utf8(value.as_bytes());
    text.map(Some).map_err(|_| Problem::bad_request(format!("the header {name} is not UTF-8"), help))
}

fn invalid(name: &str, text: &str, help: &'static str) -> Problem {
    let shown: String = text.chars().take(40).collect();
    Problem::bad_request(format!("the header {name} can't be {shown:?}"), help)
}

/// Reads a body of at most `bytes_max` bytes.
pub(super) async fn body(body: Body, bytes_max: usize) -> Result<Bytes, Problem> {
    let collected = Limited::new(body, bytes_max).collect().await;
    collected.map(|body| body.to_bytes()).map_err(|error| unreadable(&*error, bytes_max))
}

fn unreadable(error: &(dyn Error + Send + Sync + 'static), bytes_max: usize) -> Problem {
    if error.is::<LengthLimitError>() {
        Problem::oversized_body(bytes_max)
    } else {
        Problem::bad_request("the body ended early", "send as many bytes as Content-Length says")
    }
}
