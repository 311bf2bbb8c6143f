//! The words of a call to etcd, such as `Txn if orders:42/7f3c created at 0 then put …`.

use super::super::words::{joined, text};
use super::text::{key, keys, lease, method, of};
use etcd_client::proto::{
    PbCompare, PbDeleteRequest, PbLeaseGrantRequest, PbLeaseKeepAliveRequest, PbLeaseRevokeRequest,
    PbLeaseTimeToLiveRequest, PbPutRequest, PbRangeRequest, PbTargetUnion, PbTxnOpRequest, PbTxnRequest,
    PbTxnRequestOp, PbWatchRequest, PbWatchRequestUnion,
};

/// A call of etcd's service `Lock`, for which etcd-client has no public type (`v3lock.proto`).
#[derive(Clone, PartialEq, prost::Message)]
struct LockRequest {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
    #[prost(int64, tag = "2")]
    lease: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct UnlockRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

/// Formats the message `body` of a call of `path`.
pub(super) fn words(path: &str, body: &[u8]) -> String {
    let name = method(path);
    let arguments = match path {
        "/etcdserverpb.KV/Range" => of(body, range),
        "/etcdserverpb.KV/Put" => of(body, put),
        "/etcdserverpb.KV/DeleteRange" => of(body, delete),
        "/etcdserverpb.KV/Txn" => of(body, txn),
        "/etcdserverpb.Lease/LeaseGrant" => of(body, grant),
        "/etcdserverpb.Lease/LeaseRevoke" => of(body, |revoke: PbLeaseRevokeRequest| lease(revoke.id)),
        "/etcdserverpb.Lease/LeaseKeepAlive" => of(body, |alive: PbLeaseKeepAliveRequest| lease(alive.id)),
        "/etcdserverpb.Lease/LeaseTimeToLive" => of(body, |ttl: PbLeaseTimeToLiveRequest| lease(ttl.id)),
        "/etcdserverpb.Watch/Watch" => of(body, watch),
        "/v3lockpb.Lock/Lock" => {
            of(body, |lock: LockRequest| format!("{} {}", key(&lock.name), lease(lock.lease)))
        }
        "/v3lockpb.Lock/Unlock" => of(body, |unlock: UnlockRequest| key(&unlock.key)),
        _ if body.is_empty() => Some(String::new()),
        _ => None,
    };
    let arguments = arguments.unwrap_or_else(|| format!("{} bytes", body.len()));
    joined([name, &arguments]).trim_end().to_owned()
}

fn range(range: PbRangeRequest) -> String {
    let mut words = keys(&range.key, &range.range_end);
    if range.max_create_revision > 0 {
        words += &format!(" created up to {}", range.max_create_revision);
    }
    if range.revision > 0 {
        words += &format!(" at revision {}", range.revision);
    }
    if range.limit > 0 {
        words += &format!(" limit {}", range.limit);
    }
    if range.count_only {
        words += " count only";
    }
    words
}

fn put(put: PbPutRequest) -> String {
    let value = format!("{}={}", key(&put.key), text(&put.value));
    if put.lease == 0 { value } else { format!("{value} {}", lease(put.lease)) }
}

fn delete(delete: PbDeleteRequest) -> String {
    keys(&delete.key, &delete.range_end)
}

fn grant(grant: PbLeaseGrantRequest) -> String {
    let number = if grant.id == 0 { String::new() } else { format!(" {}", lease(grant.id)) };
    format!("ttl {}{number}", grant.ttl)
}

fn txn(txn: PbTxnRequest) -> String {
    let conditions: Vec<String> = txn.compare.iter().map(compare).collect();
    let mut words = Vec::new();
    if !conditions.is_empty() {
        words.push(format!("if {}", conditions.join(" and ")));
    }
    for (word, operations) in [("then", &txn.success), ("else", &txn.failure)] {
        if !operations.is_empty() {
            let operations: Vec<String> = operations.iter().map(operation).collect();
            words.push(format!("{word} {}", operations.join(", ")));
        }
    }
    words.join(" ")
}

/// Formats a condition: `orders:42/7f3c created at 0`, which means that the key does not exist.
fn compare(compare: &PbCompare) -> String {
    // The numbers of etcd's `CompareResult`.
    let sign = match compare.result {
        0 => "=",
        1 => ">",
        2 => "<",
        _ => "≠",
    };
    let key = keys(&compare.key, &compare.range_end);
    match &compare.target_union {
        Some(PbTargetUnion::CreateRevision(0)) if compare.result == 0 => format!("no {key}"),
        Some(PbTargetUnion::CreateRevision(revision)) => format!("created({key}) {sign} {revision}"),
        Some(PbTargetUnion::ModRevision(revision)) => format!("modified({key}) {sign} {revision}"),
        Some(PbTargetUnion::Version(version)) => format!("version({key}) {sign} {version}"),
        Some(PbTargetUnion::Value(value)) => format!("value({key}) {sign} {}", text(value)),
        Some(PbTargetUnion::Lease(number)) => format!("lease({key}) {sign} {number:x}"),
        None => key,
    }
}

fn operation(operation: &PbTxnRequestOp) -> String {
    match &operation.request {
        Some(PbTxnOpRequest::RequestRange(request)) => format!("range {}", range(request.clone())),
        Some(PbTxnOpRequest::RequestPut(request)) => format!("put {}", put(request.clone())),
        Some(PbTxnOpRequest::RequestDeleteRange(request)) => format!("delete {}", delete(request.clone())),
        Some(PbTxnOpRequest::RequestTxn(request)) => format!("txn {}", txn(request.clone())),
        None => "nothing".to_owned(),
    }
}

fn watch(watch: PbWatchRequest) -> String {
    match watch.request_union {
        Some(PbWatchRequestUnion::CreateRequest(create)) => {
            let from = match create.start_revision {
                0 => String::new(),
                revision => format!(" from revision {revision}"),
            };
            format!("{}{from}", keys(&create.key, &create.range_end))
        }
        Some(PbWatchRequestUnion::CancelRequest(cancel)) => format!("cancel {}", cancel.watch_id),
        Some(PbWatchRequestUnion::ProgressRequest(_)) => "progress".to_owned(),
        None => String::new(),
    }
}
