//! The wire: HTTP/2 and gRPC by hyper and tonic, the services that etcd-client generates from etcd's
//! protocol.

mod auth;
mod cluster;
mod kv;
mod lease;
mod lock;
mod maintenance;
mod raw;
mod watch;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use etcd_client::proto::{
    PbClusterServer, PbKvServer, PbLeaseServer, PbMaintenanceServer, PbResponseHeader, PbWatchServer,
};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tower_service::Service as _;

use super::Cluster;
use super::core::Core;
use super::error::Refusal;
use super::quorum::Need;
use crate::world::machine::Machine;

type Replying = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// The most open streams of one connection, as in etcd.
const STREAMS_MAX: u32 = u32::MAX;

/// Serves one connection until it ends.
pub(super) async fn serve<M: Machine>(
    cluster: Cluster<M>,
    member: usize,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    client: &str,
) {
    let executor = OnMember { cluster: cluster.clone(), member };
    let endpoint = Arc::new(Endpoint { cluster, member, client: client.into() });
    let mut builder = http2::Builder::new(executor);
    // etcd sends no date, and hyper would take it from the real clock.
    builder.auto_date_header(false).max_concurrent_streams(STREAMS_MAX);
    // A broken stream ends the connection as a closed one does.
    let _ = builder.serve_connection(TokioIo::new(stream), Services::new(endpoint)).await;
}

/// The endpoint of one connection: the member and the client.
pub(super) struct Endpoint<M> {
    cluster: Cluster<M>,
    member: usize,
    client: Arc<str>,
}

impl<M: Machine> Endpoint<M> {
    /// Carries out a request that needs a quorum, and notifies the observer.
    async fn carry_out<T>(
        &self,
        call: &'static str,
        need: Need,
        metadata: &MetadataMap,
        request: impl FnOnce(&mut Core) -> Result<T, Refusal>,
    ) -> Result<T, Status> {
        self.cluster.ready(self.member, needs_leader(metadata), need).await?;
        self.carry_out_locally(call, request)
    }

    /// Carries out a request without a quorum.
    fn carry_out_locally<T>(
        &self,
        call: &'static str,
        request: impl FnOnce(&mut Core) -> Result<T, Refusal>,
    ) -> Result<T, Status> {
        let answer = self.cluster.apply(&self.client, |core| {
            core.members[self.member].executed += 1;
            request(core)
        })?;
        self.executed(call);
        Ok(answer)
    }

    fn executed(&self, call: &'static str) {
        self.cluster.shared.options.observer.executed(self.member, &self.client, call);
        if let Some(machine) = self.cluster.machine(self.member) {
            machine.point(call);
        }
    }

    fn header(&self) -> Option<PbResponseHeader> {
        Some(self.cluster.core().header(self.member))
    }

    /// Completes a header that has only a revision.
    fn fill(&self, header: &mut Option<PbResponseHeader>) {
        let revision = header.as_ref().map(|header| header.revision);
        *header = self.header();
        if let (Some(header), Some(revision)) = (header, revision) {
            header.revision = revision;
        }
    }
}

impl<M> Clone for Endpoint<M> {
    fn clone(&self) -> Self {
        Self { cluster: self.cluster.clone(), member: self.member, client: Arc::clone(&self.client) }
    }
}

/// Returns true if the client wants an error at once while there is no leader.
fn needs_leader(metadata: &MetadataMap) -> bool {
    metadata.get("hasleader").is_some_and(|value| value.as_bytes() == b"true")
}

/// The services of one connection. The first part of a request's path selects the service.
struct Services<M: Machine> {
    endpoint: Arc<Endpoint<M>>,
    kv: PbKvServer<Endpoint<M>>,
    lease: PbLeaseServer<Endpoint<M>>,
    watch: PbWatchServer<Endpoint<M>>,
    cluster: PbClusterServer<Endpoint<M>>,
    maintenance: PbMaintenanceServer<Endpoint<M>>,
}

impl<M: Machine> Services<M> {
    fn new(endpoint: Arc<Endpoint<M>>) -> Self {
        Self {
            kv: PbKvServer::from_arc(Arc::clone(&endpoint)),
            lease: PbLeaseServer::from_arc(Arc::clone(&endpoint)),
            watch: PbWatchServer::from_arc(Arc::clone(&endpoint)),
            cluster: PbClusterServer::from_arc(Arc::clone(&endpoint)),
            maintenance: PbMaintenanceServer::from_arc(Arc::clone(&endpoint)),
            endpoint,
        }
    }
}

impl<M: Machine> hyper::service::Service<Request<Incoming>> for Services<M> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering<M>;

    fn call(&self, request: Request<Incoming>) -> Answering<M> {
        let (endpoint, uri) = (Arc::clone(&self.endpoint), request.uri().clone());
        Answering { endpoint, uri, reply: self.reply(request) }
    }
}

impl<M: Machine> Services<M> {
    fn reply(&self, request: Request<Incoming>) -> Replying {
        let service = request.uri().path().trim_start_matches('/').split('/').next();
        match service.unwrap_or_default() {
            "etcdserverpb.KV" => self.kv.clone().call(request),
            "etcdserverpb.Lease" => self.lease.clone().call(request),
            "etcdserverpb.Watch" => self.watch.clone().call(request),
            "etcdserverpb.Cluster" => self.cluster.clone().call(request),
            "etcdserverpb.Maintenance" => self.maintenance.clone().call(request),
            "etcdserverpb.Auth" => auth::call(&self.endpoint, request),
            "v3lockpb.Lock" => lock::call(&self.endpoint, request),
            _ => raw::refuse(unknown_method(&request)),
        }
    }
}

/// The answer to one call. Notes the call if it is refused as unknown.
struct Answering<M> {
    endpoint: Arc<Endpoint<M>>,
    uri: hyper::Uri,
    reply: Replying,
}

impl<M: Machine> Future for Answering<M> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let reply = ready!(self.reply.as_mut().poll(cx));
        let status = reply.as_ref().ok().and_then(|reply| Status::from_header_map(reply.headers()));
        if status.is_some_and(|status| status.code() == Code::Unimplemented) {
            let Endpoint { cluster, member, .. } = &*self.endpoint;
            cluster.note(*member, |machine| machine.refused_unknown(self.uri.path().trim_start_matches('/')));
        }
        Poll::Ready(reply)
    }
}

/// Creates the error for an unknown procedure, in the words of etcd.
fn unknown_method(request: &Request<Incoming>) -> Status {
    let path = request.uri().path().trim_start_matches('/');
    match path.split_once('/') {
        Some((service, method)) if is_known(service) => {
            Status::new(Code::Unimplemented, format!("unknown method {method} for service {service}"))
        }
        _ => Status::new(
            Code::Unimplemented,
            format!("unknown service {}", path.split('/').next().unwrap_or(path)),
        ),
    }
}

fn is_known(service: &str) -> bool {
    matches!(service, "etcdserverpb.Auth" | "v3lockpb.Lock")
}

/// Runs hyper's tasks in the member's process.
struct OnMember<M> {
    cluster: Cluster<M>,
    member: usize,
}

impl<M> Clone for OnMember<M> {
    fn clone(&self) -> Self {
        Self { cluster: self.cluster.clone(), member: self.member }
    }
}

impl<M: Machine, F> hyper::rt::Executor<F> for OnMember<M>
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, future: F) {
        self.cluster.spawn(self.member, async move {
            future.await;
        });
    }
}
