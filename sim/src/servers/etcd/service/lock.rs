//! The service `Lock`: a queue of keys `name/lease`, served in the order of their create revisions.
//!
//! Source: etcd's `server/etcdserver/api/v3lock/lock.go` and `client/v3/concurrency/mutex.go`.

use std::sync::Arc;

use etcd_client::proto::{PbLockResponse, PbPutRequest, PbUnlockResponse};
use hyper::Request;
use hyper::body::Incoming;
use tonic::Status;

use super::{Endpoint, Replying, needs_leader, raw, unknown_method};
use crate::servers::etcd::Cluster;
use crate::servers::etcd::core::Core;
use crate::servers::etcd::error::Refusal;
use crate::servers::etcd::quorum::Need;
use crate::servers::etcd::store::span::{Span, prefix_end};
use crate::servers::etcd::store::write::Write;
use crate::world::machine::Machine;

/// The TTL, in seconds, of the lease that a lock without a lease gets. It is not renewed
/// (concurrency/session.go).
const LEASE_SECONDS: i64 = 60;

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

/// Answers a call of this service.
pub(super) fn call<M: Machine>(endpoint: &Arc<Endpoint<M>>, request: Request<Incoming>) -> Replying {
    let endpoint = Arc::clone(endpoint);
    match request.uri().path() {
        "/v3lockpb.Lock/Lock" => {
            raw::unary(request, |request| async move { endpoint.lock(request).await.map_err(without_code) })
        }
        "/v3lockpb.Lock/Unlock" => {
            raw::unary(request, |request| async move { endpoint.unlock(request).await.map_err(without_code) })
        }
        _ => raw::refuse(unknown_method(&request)),
    }
}

/// Removes the code of an error: etcd's service passes on the errors of an internal client, without their
/// codes.
fn without_code(status: Status) -> Status {
    Status::unknown(status.message())
}

/// A caller's place in the queue. If it is dropped before the lock is granted, the caller leaves the queue.
struct Place<M: Machine> {
    cluster: Cluster<M>,
    member: usize,
    client: Arc<str>,
    key: Vec<u8>,
    is_kept: bool,
}

impl<M: Machine> Endpoint<M> {
    async fn lock(&self, request: tonic::Request<LockRequest>) -> Result<PbLockResponse, Status> {
        let needs_leader = needs_leader(request.metadata());
        let request = request.into_inner();
        self.cluster.ready(self.member, needs_leader, Need::Write).await?;
        let prefix = [&request.name[..], b"/"].concat();
        let (mut place, position) = self.enqueue(&prefix, request.lease)?;
        self.executed("Lock");
        let is_first = || {
            let core = self.cluster.core();
            (self.cluster.serves(&core, self.member) && is_first(&core, &prefix, position)).then_some(())
        };
        // There is no timeout: the client cancels the call.
        self.cluster.wait_until(self.member, u64::MAX, is_first).await?;
        let core = self.cluster.core();
        let kept = core.state.store.latest(&place.key).is_some_and(|kv| kv.create_revision == position);
        if !kept && self.cluster.shared.options.rechecks_waiters {
            place.is_kept = true;
            return Err(Status::unknown("mutex: session is expired"));
        }
        let header = Some(core.header(self.member));
        drop(core);
        place.is_kept = true;
        Ok(PbLockResponse { header, key: std::mem::take(&mut place.key) })
    }

    async fn unlock(&self, request: tonic::Request<UnlockRequest>) -> Result<PbUnlockResponse, Status> {
        let needs_leader = needs_leader(request.metadata());
        let key = request.into_inner().key;
        if key.is_empty() {
            return Err(Refusal::EmptyKey.into());
        }
        self.cluster.ready(self.member, needs_leader, Need::Write).await?;
        self.carry_out_locally("Unlock", |core| {
            delete(core, &key);
            Ok(())
        })?;
        Ok(PbUnlockResponse { header: self.header() })
    }

    /// Adds the caller's key to the queue, unless it is there already, and returns it with its create
    /// revision.
    fn enqueue(&self, prefix: &[u8], lease: i64) -> Result<(Place<M>, i64), Status> {
        let least = self.cluster.ttl_seconds_min();
        let (key, position) = self.cluster.apply(&self.client, |core| {
            core.members[self.member].executed += 1;
            let lease = match lease {
                0 => {
                    let (id, now) = (core.free_lease_id(), self.cluster.now(core.leader));
                    core.state.lessor.grant(id, LEASE_SECONDS, least, now)?;
                    id
                }
                lease => lease,
            };
            let key = [prefix, format!("{lease:x}").as_bytes()].concat();
            if let Some(kv) = core.state.store.latest(&key) {
                return Ok((key, kv.create_revision));
            }
            let put = PbPutRequest { key: key.clone(), lease, ..PbPutRequest::default() };
            core.state.check_put(&put)?;
            let mut write = Write::begin(&mut core.state);
            write.put(put);
            write.commit();
            Ok((key, core.state.store.revision()))
        })?;
        let (cluster, client) = (self.cluster.clone(), Arc::clone(&self.client));
        Ok((Place { cluster, member: self.member, client, key, is_kept: false }, position))
    }
}

impl<M: Machine> Drop for Place<M> {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let (cluster, member) = (self.cluster.clone(), self.member);
        let (client, key) = (Arc::clone(&self.client), std::mem::take(&mut self.key));
        self.cluster.spawn(member, async move {
            // Without a quorum the key stays until its lease ends.
            if cluster.ready(member, false, Need::Write).await.is_ok() {
                let _ = cluster.apply(&client, |core| {
                    delete(core, &key);
                    Ok(())
                });
            }
        });
    }
}

/// Returns true if no key of the queue has a lower position. The caller checks afterwards that its own key
/// still exists.
fn is_first(core: &Core, prefix: &[u8], position: i64) -> bool {
    let end = prefix_end(prefix);
    let span = Span::new(prefix, &end);
    core.state.store.keys_at(&span, i64::MAX).all(|kv| kv.create_revision >= position)
}

fn delete(core: &mut Core, key: &[u8]) {
    let mut write = Write::begin(&mut core.state);
    write.delete_key(key);
    write.commit();
}
