//! The service `Lease`.

use std::pin::Pin;

use etcd_client::proto::{
    PbLeaseGrantRequest, PbLeaseGrantResponse, PbLeaseKeepAliveRequest, PbLeaseKeepAliveResponse,
    PbLeaseLeasesRequest, PbLeaseLeasesResponse, PbLeaseRevokeRequest, PbLeaseRevokeResponse, PbLeaseService,
    PbLeaseStatus, PbLeaseTimeToLiveRequest, PbLeaseTimeToLiveResponse,
};
use futures_util::Stream;
use futures_util::stream::unfold;
use tonic::{Request, Response, Status, Streaming};

use super::{Endpoint, needs_leader};
use crate::servers::etcd::apply::revoke;
use crate::servers::etcd::quorum::Need;
use crate::world::machine::Machine;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl<M: Machine> PbLeaseService for Endpoint<M> {
    type LeaseKeepAliveStream = Answers<PbLeaseKeepAliveResponse>;

    async fn lease_grant(
        &self,
        request: Request<PbLeaseGrantRequest>,
    ) -> Result<Response<PbLeaseGrantResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let least = self.cluster.ttl_seconds_min();
        let grant = |core: &mut super::Core| {
            let id = if request.id == 0 { core.free_lease_id() } else { request.id };
            let now = self.cluster.now(core.leader);
            core.state.lessor.grant(id, request.ttl, least, now).map(|ttl| (id, ttl))
        };
        let (id, ttl) = self.carry_out("LeaseGrant", Need::Write, &metadata, grant).await?;
        Ok(Response::new(PbLeaseGrantResponse { header: self.header(), id, ttl, error: String::new() }))
    }

    async fn lease_revoke(
        &self,
        request: Request<PbLeaseRevokeRequest>,
    ) -> Result<Response<PbLeaseRevokeResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        self.carry_out("LeaseRevoke", Need::Write, &metadata, |core| revoke(&mut core.state, request.id))
            .await?;
        Ok(Response::new(PbLeaseRevokeResponse { header: self.header() }))
    }

    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<PbLeaseKeepAliveRequest>>,
    ) -> Result<Response<Self::LeaseKeepAliveStream>, Status> {
        let needs_leader = needs_leader(request.metadata());
        let requests = Some(request.into_inner());
        let endpoint = self.clone();
        // The stream ends after an error, or when the client ends it.
        let answers = unfold((endpoint, requests), move |(endpoint, requests)| async move {
            let mut requests = requests?;
            match requests.message().await {
                Ok(request) => {
                    let answer = endpoint.renew(request?.id, needs_leader).await;
                    let requests = answer.is_ok().then_some(requests);
                    Some((answer, (endpoint, requests)))
                }
                Err(_) => None,
            }
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn lease_time_to_live(
        &self,
        request: Request<PbLeaseTimeToLiveRequest>,
    ) -> Result<Response<PbLeaseTimeToLiveResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let look = |core: &mut super::Core| {
            let now = self.cluster.now(core.leader);
            // A lease that has ended is there until the leader revokes it.
            let lease = core.state.lessor.find(request.id).ok();
            let absent = PbLeaseTimeToLiveResponse { id: request.id, ttl: -1, ..Default::default() };
            Ok(lease.map_or(absent, |lease| PbLeaseTimeToLiveResponse {
                header: None,
                id: request.id,
                ttl: lease.remaining_seconds(now),
                granted_ttl: lease.ttl_seconds,
                keys: if request.keys { lease.keys.iter().cloned().collect() } else { Vec::new() },
            }))
        };
        let mut response = self.carry_out("LeaseTimeToLive", Need::Lease, &metadata, look).await?;
        response.header = self.header();
        Ok(Response::new(response))
    }

    async fn lease_leases(
        &self,
        request: Request<PbLeaseLeasesRequest>,
    ) -> Result<Response<PbLeaseLeasesResponse>, Status> {
        let leases = self
            .carry_out("LeaseLeases", Need::Read, request.metadata(), |core| Ok(core.state.lessor.by_end()));
        let leases = leases.await?.into_iter().map(|id| PbLeaseStatus { id }).collect();
        Ok(Response::new(PbLeaseLeasesResponse { header: self.header(), leases }))
    }
}

impl<M: Machine> Endpoint<M> {
    /// Answers one keepalive. A lease that does not exist gets the time to live 0.
    async fn renew(&self, id: i64, needs_leader: bool) -> Result<PbLeaseKeepAliveResponse, Status> {
        // etcd takes the header before it renews.
        let header = self.header();
        let ttl = self.cluster.keep_alive(self.member, &self.client, id, needs_leader).await?;
        self.cluster.core().members[self.member].executed += 1;
        self.executed("LeaseKeepAlive");
        Ok(PbLeaseKeepAliveResponse { header, id, ttl: ttl.unwrap_or(0) })
    }
}
