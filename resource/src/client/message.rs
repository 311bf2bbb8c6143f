//! The client's messages: requests as the service reads them, answers as it writes them.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HOST, IF_MATCH};
use hyper::http::request::Builder;
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;

use super::{ClientError, ConditionalAnswer, Failure, PutAnswer, ReadAnswer, not_sent};
use crate::fence::{Reason, Refusal, WriteSeq};
use crate::http::answer::{Conflict, Explained, Fenced, Refused, Updated, Value, Written};
use crate::http::{FENCE_SEQ, FENCE_TOKEN, LOCK_OWNER};
use crate::key::ResourceKey;
use crate::owner::OwnerToken;
use crate::store::{ConditionalWrite, Read, Write};

pub(super) fn put_request(
    address: &str,
    key: &ResourceKey,
    write: &Write,
) -> Result<Request<Full<Bytes>>, ClientError> {
    let mut request = base_request(Method::PUT, address, key, write.owner.as_ref());
    request = request.header(FENCE_TOKEN, write.token.as_u64());
    if let Some(seq) = write.seq {
        request = request.header(FENCE_SEQ, WriteSeq::as_u64(seq));
    }
    request.body(Full::new(write.body.clone())).map_err(not_sent)
}

pub(super) fn conditional_request(
    address: &str,
    key: &ResourceKey,
    write: &ConditionalWrite,
) -> Result<Request<Full<Bytes>>, ClientError> {
    let request = base_request(Method::PUT, address, key, write.owner.as_ref());
    let request = request.header(IF_MATCH, format!("\"{}\"", write.expected));
    request.body(Full::new(write.body.clone())).map_err(not_sent)
}

pub(super) fn read_request(
    address: &str,
    key: &ResourceKey,
    read: &Read,
) -> Result<Request<Full<Bytes>>, ClientError> {
    let mut request = base_request(Method::GET, address, key, read.owner.as_ref());
    if let Some(token) = read.claim {
        request = request.header(FENCE_TOKEN, token.as_u64());
    }
    request.body(Full::default()).map_err(not_sent)
}

fn base_request(method: Method, address: &str, key: &ResourceKey, owner: Option<&OwnerToken>) -> Builder {
    let path = format!("/r/{}", key.to_path_segment());
    let request = Request::builder().method(method).uri(path).header(HOST, address);
    match owner {
        Some(owner) => request.header(LOCK_OWNER, owner.as_str().as_bytes()),
        None => request,
    }
}

pub(super) fn put_answer(status: StatusCode, body: &[u8]) -> Result<PutAnswer, ClientError> {
    match status {
        StatusCode::OK => Ok(PutAnswer::Accepted { version: parse::<Written>(status, body)?.version }),
        StatusCode::CONFLICT => Ok(match refusal(body)? {
            Refusal { reason: Reason::Stale, seen, got } => PutAnswer::Stale { seen, got },
            Refusal { reason: Reason::ForeignOwner, seen, got } => PutAnswer::ForeignOwner { seen, got },
        }),
        _ => Err(failure(status, body)),
    }
}

pub(super) fn conditional_answer(status: StatusCode, body: &[u8]) -> Result<ConditionalAnswer, ClientError> {
    match status {
        StatusCode::OK => {
            Ok(ConditionalAnswer::Accepted { version: parse::<Updated>(status, body)?.version })
        }
        StatusCode::PRECONDITION_FAILED => {
            let Conflict { expected, current, .. } = parse(status, body)?;
            Ok(ConditionalAnswer::Conflict { expected, current })
        }
        StatusCode::CONFLICT => {
            let seen = parse::<Fenced<'_>>(status, body)?.seen().ok_or_else(|| garbled(status))?;
            Ok(ConditionalAnswer::Fenced { seen })
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
        StatusCode::CONFLICT => Ok(match refusal(body)? {
            Refusal { reason: Reason::Stale, seen, got } => ReadAnswer::Stale { seen, got },
            Refusal { reason: Reason::ForeignOwner, seen, got } => ReadAnswer::ForeignOwner { seen, got },
        }),
        _ => Err(failure(status, body)),
    }
}

fn refusal(body: &[u8]) -> Result<Refusal, ClientError> {
    let refused = parse::<Refused<'_>>(StatusCode::CONFLICT, body)?;
    refused.into_refusal().ok_or_else(|| garbled(StatusCode::CONFLICT))
}

/// What any status but 200 and 409 means. The service explains a request that it refuses, and stores nothing of it; any
/// other answer, a proxy's for one, does not say what became of the request.
fn failure(status: StatusCode, body: &[u8]) -> ClientError {
    match serde_json::from_slice::<Explained<'_>>(body) {
        Ok(Explained { error, help }) if status.is_client_error() => ClientError::Refused {
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
