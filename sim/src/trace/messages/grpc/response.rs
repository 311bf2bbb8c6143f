//! The words of etcd's answers, such as `Txn succeeded: put, 1 key, revision 7`.

use etcd_client::proto::{
    PbDeleteResponse, PbEvent, PbLeaseGrantResponse, PbLeaseKeepAliveResponse, PbLeaseRevokeResponse,
    PbLeaseTimeToLiveResponse, PbLockResponse, PbPutResponse, PbRangeResponse, PbResponseHeader,
    PbResponseOp, PbTxnOpResponse, PbTxnResponse, PbUnlockResponse, PbWatchResponse,
};

use super::super::words::joined;
use super::text::{key, lease, method, of, pair};

const WATCH: &str = "/etcdserverpb.Watch/Watch";

/// Formats the message `body` that answers a call of `path`.
pub(super) fn words(path: &str, body: &[u8]) -> String {
    let name = method(path);
    let answer = match path {
        "/etcdserverpb.KV/Range" => of(body, |range: PbRangeResponse| at(found(&range), &range.header)),
        "/etcdserverpb.KV/Put" => of(body, |put: PbPutResponse| at("done".to_owned(), &put.header)),
        "/etcdserverpb.KV/DeleteRange" => {
            of(body, |delete: PbDeleteResponse| at(format!("deleted {}", delete.deleted), &delete.header))
        }
        "/etcdserverpb.KV/Txn" => of(body, |answer: PbTxnResponse| at(txn(&answer), &answer.header)),
        "/etcdserverpb.Lease/LeaseGrant" => {
            of(body, |grant: PbLeaseGrantResponse| format!("{} ttl {}", lease(grant.id), grant.ttl))
        }
        "/etcdserverpb.Lease/LeaseRevoke" => of(body, |_: PbLeaseRevokeResponse| "done".to_owned()),
        "/etcdserverpb.Lease/LeaseKeepAlive" => {
            of(body, |alive: PbLeaseKeepAliveResponse| left(alive.id, alive.ttl))
        }
        "/etcdserverpb.Lease/LeaseTimeToLive" => {
            of(body, |alive: PbLeaseTimeToLiveResponse| left(alive.id, alive.ttl))
        }
        WATCH => of(body, |answer: PbWatchResponse| watch(&answer)),
        "/v3lockpb.Lock/Lock" => of(body, |lock: PbLockResponse| at(key(&lock.key), &lock.header)),
        "/v3lockpb.Lock/Unlock" => of(body, |unlock: PbUnlockResponse| at("done".to_owned(), &unlock.header)),
        _ => None,
    };
    let answer = answer.unwrap_or_else(|| format!("{} bytes", body.len()));
    joined([name, &answer])
}

/// Returns true if the message tells of changes that a client watches: it answers no message.
pub(super) fn is_event(path: &str, body: &[u8]) -> bool {
    path == WATCH && of(body, |answer: PbWatchResponse| !answer.events.is_empty()).unwrap_or(false)
}

/// Adds the revision of the store to an answer.
fn at(answer: String, header: &Option<PbResponseHeader>) -> String {
    match header {
        Some(header) => format!("{answer}, revision {}", header.revision),
        None => answer,
    }
}

/// Formats the TTL that a lease has left; 0 or less means that it is over.
fn left(number: i64, ttl: i64) -> String {
    if ttl > 0 { format!("{} ttl {ttl}", lease(number)) } else { format!("{} is over", lease(number)) }
}

fn found(range: &PbRangeResponse) -> String {
    match range.kvs.as_slice() {
        [] if range.count > 0 => format!("count {}", range.count),
        [] => "no key".to_owned(),
        pairs => pairs.iter().map(pair).collect::<Vec<_>>().join(", "),
    }
}

fn txn(answer: &PbTxnResponse) -> String {
    let outcome = if answer.succeeded { "succeeded" } else { "failed" };
    let answers: Vec<String> = answer.responses.iter().map(operation).collect();
    if answers.is_empty() { outcome.to_owned() } else { format!("{outcome}: {}", answers.join(", ")) }
}

fn operation(answer: &PbResponseOp) -> String {
    match &answer.response {
        Some(PbTxnOpResponse::ResponseRange(range)) => found(range),
        Some(PbTxnOpResponse::ResponsePut(_)) => "put".to_owned(),
        Some(PbTxnOpResponse::ResponseDeleteRange(delete)) => format!("deleted {}", delete.deleted),
        Some(PbTxnOpResponse::ResponseTxn(answer)) => txn(answer),
        None => "nothing".to_owned(),
    }
}

fn watch(answer: &PbWatchResponse) -> String {
    let number = answer.watch_id;
    let outcome = match answer {
        answer if answer.canceled => {
            joined(["cancelled", answer.cancel_reason.as_str()]).trim_end().to_owned()
        }
        answer if answer.created => "created".to_owned(),
        answer if answer.events.is_empty() => "progress".to_owned(),
        answer => answer.events.iter().map(event).collect::<Vec<_>>().join(", "),
    };
    at(format!("{number}: {outcome}"), &answer.header)
}

fn event(event: &PbEvent) -> String {
    // The numbers of etcd's `EventType`.
    let done = if event.r#type == 0 { "put" } else { "deleted" };
    let key = event.kv.as_ref().map(|pair| key(&pair.key)).unwrap_or_default();
    format!("{done} {key}")
}
