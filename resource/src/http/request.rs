//! The requests to the service. A request is parsed whole before anything is judged or stored.

use std::error::Error;

use axum::body::Body;
use axum::extract::Request;
use axum::http::Uri;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::answer::Problem;
use crate::ResourceKey;
use crate::fence::Beside;
use crate::fence::http::{Guarded, beside, lock_owner, token};
use crate::store::{Read, Write};

const KEY_HELP: &str = "use 1 to 256 bytes of UTF-8 without control characters, percent-encoded";

/// Parses a write, and the permits beside its own.
pub(super) async fn put(
    request: Request<Body>,
    body_bytes_max: usize,
) -> Result<(ResourceKey, Write, Beside), Problem> {
    let key = key_of(request.uri())?;
    // A contradictory request is refused before its body is read.
    let Guarded { guard, beside, owner } = Guarded::from_headers(request.headers())?;
    let body = body(request.into_body(), body_bytes_max).await?;
    Ok((key, Write { guard, owner, body }, beside))
}

/// Parses a read, and the permits beside the claimed one.
pub(super) fn read(request: &Request<Body>) -> Result<(ResourceKey, Read, Beside), Problem> {
    let headers = request.headers();
    let read = Read { claim: token(headers)?, owner: lock_owner(headers)? };
    Ok((key_of(request.uri())?, read, beside(headers)?))
}

fn key_of(uri: &Uri) -> Result<ResourceKey, Problem> {
    key(uri.path().strip_prefix("/r/").unwrap_or_default())
}

/// Parses a segment of a path.
pub(super) fn key(segment: &str) -> Result<ResourceKey, Problem> {
    ResourceKey::from_path_segment(segment).map_err(|error| Problem::bad_request(error.to_string(), KEY_HELP))
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
