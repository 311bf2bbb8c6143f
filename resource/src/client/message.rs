//! The client's messages: requests as the service reads them, answers as it writes them.

use bytes::Bytes;
use dlock::FencingToken;
use http_body_util::Full;
use hyper::header::{HOST, IF_MATCH};
use hyper::http::request::Builder;
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;

use std::time::Duration;

use super::{ClientError, Failure, PutAnswer, ReadAnswer, not_sent};
use crate::OwnerToken;
use crate::ResourceKey;
use crate::fence::http::refusal;
use crate::fence::{Beside, Fencing, Guard, Refusal};
use crate::http::answer::{Explained, Mode, Value, Written};
use crate::http::{FENCE_BESIDE, FENCE_SEQ, FENCE_TOKEN, LOCK_OWNER};
use crate::store::{Read, Write};

pub(super) fn put_request(
    address: &str,
    key: &ResourceKey,
    write: &Write,
    beside: &Beside,
) -> Result<Request<Full<Bytes>>, ClientError> {
    let mut request = base_request(Method::PUT, address, key, write.owner.as_ref());
    match write.guard {
        Guard::Token { token, seq } => {
            request = fence(request, token, beside);
            if let Some(seq) = seq {
                request = request.header(FENCE_SEQ, seq.as_u64());
            }
        }
        Guard::Version { expected } => request = request.header(IF_MATCH, format!("\"{expected}\"")),
    }
    request.body(Full::new(write.body.clone())).map_err(not_sent)
}

pub(super) fn read_request(
    address: &str,
    key: &ResourceKey,
    read: &Read,
    beside: &Beside,
) -> Result<Request<Full<Bytes>>, ClientError> {
    let mut request = base_request(Method::GET, address, key, read.owner.as_ref());
    if let Some(token) = read.claim {
        request = fence(request, token, beside);
    }
    request.body(Full::default()).map_err(not_sent)
}

/// Adds a token and the permits beside it.
fn fence(request: Builder, token: FencingToken, beside: &Beside) -> Builder {
    let request = request.header(FENCE_TOKEN, token.as_u64());
    if beside.is_empty() { request } else { request.header(FENCE_BESIDE, beside.to_string()) }
}

fn base_request(method: Method, address: &str, key: &ResourceKey, owner: Option<&OwnerToken>) -> Builder {
    let path = format!("/r/{}", key.to_path_segment());
    let request = Request::builder().method(method).uri(path).header(HOST, address);
    match owner {
        Some(owner) => request.header(LOCK_OWNER, owner.as_str().as_bytes()),
        None => request,
    }
}

pub(super) fn fencing_request(address: &str) -> Result<Request<Full<Bytes>>, ClientError> {
    Request::get("/fencing").header(HOST, address).body(Full::default()).map_err(not_sent)
}

pub(super) fn fencing_answer(status: StatusCode, body: &[u8]) -> Result<Fencing, ClientError> {
    if status != StatusCode::OK {
        return Err(failure(status, body));
    }
    match &*parse::<Mode<'_>>(status, body)?.fencing {
        "on" => Ok(Fencing::On),
        "off" => Ok(Fencing::Off),
        _ => Err(garbled(status)),
    }
}

pub(super) fn put_answer(status: StatusCode, body: &[u8]) -> Result<PutAnswer, ClientError> {
    match status {
        StatusCode::OK => Ok(PutAnswer::Accepted { version: parse::<Written>(status, body)?.version }),
        StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED | StatusCode::UNPROCESSABLE_ENTITY => {
            refused(status, body).map(PutAnswer::Refused)
        }
        _ => Err(failure(status, body)),
    }
}

pub(super) fn read_answer(status: StatusCode, body: &[u8]) -> Result<ReadAnswer, ClientError> {
    match status {
        StatusCode::OK => {
            let snapshot = parse::<Value<'_>>(status, body)?.into_snapshot();
            snapshot.map(ReadAnswer::Read).ok_or_else(|| garbled(status))
        }
        StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => match refused(status, body)? {
            Refusal::Stale { seen, got } => Ok(ReadAnswer::Stale { seen, got }),
            Refusal::ForeignOwner { seen, got } => Ok(ReadAnswer::ForeignOwner { seen, got }),
            Refusal::Jump { seen, got, max } => Ok(ReadAnswer::Jump { seen, got, max }),
            // A claim has a token, and names no version.
            _ => Err(garbled(status)),
        },
        _ => Err(failure(status, body)),
    }
}

fn refused(status: StatusCode, body: &[u8]) -> Result<Refusal, ClientError> {
    refusal(status, body).ok_or_else(|| garbled(status))
}

/// Returns the error for any status but 200, 409, 412 and 422. The service explains a request that it
/// refuses, and stores nothing of it; after any other answer, a proxy's for example, the fate of the request
/// is unknown.
fn failure(status: StatusCode, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<Explained<'_>>(body) {
        // The service refuses such a request before it looks at it: a retry is safe, and may succeed.
        Ok(Explained { retry_after: Some(seconds), .. }) if status == StatusCode::TOO_MANY_REQUESTS => {
            ClientError::NotSent(Failure::RateLimited(Duration::from_secs(seconds)))
        }
        Ok(Explained { error, help, .. }) if status.is_client_error() => ClientError::Refused {
            status: status.as_u16(),
            error: error.into_owned(),
            help: help.into_owned(),
        },
        Ok(Explained { error, .. }) => {
            ClientError::Unknown(Failure::Service(format!("status {status}: {error}")))
        }
        Err(_) => garbled(status),
    }
}

fn parse<'a, T: Deserialize<'a>>(status: StatusCode, body: &'a [u8]) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|_| garbled(status))
}

fn garbled(status: StatusCode) -> ClientError {
    ClientError::Unknown(Failure::Service(format!(
        "status {status} with a body that is no answer of the service"
    )))
}
