//! The service `Maintenance`, for `etcdctl endpoint status` and `move-leader`.

use etcd_client::proto::{
    PbAlarmRequest, PbAlarmResponse, PbDefragmentRequest, PbDefragmentResponse, PbDowngradeRequest,
    PbDowngradeResponse, PbHashKvRequest, PbHashKvResponse, PbHashRequest, PbHashResponse,
    PbMaintenanceService, PbMoveLeaderRequest, PbMoveLeaderResponse, PbSnapshotRequest, PbSnapshotResponse,
    PbStatusRequest, PbStatusResponse,
};
use futures_util::stream::Empty;
use tonic::{Request, Response, Status};

use super::Endpoint;
use crate::servers::etcd::core::member_id;
use crate::servers::etcd::error::Refusal;
use crate::world::machine::Machine;

const VERSION: &str = "3.4.23";
const NO_DATABASE: &str = "the simulated etcd keeps no database file";

#[tonic::async_trait]
impl<M: Machine> PbMaintenanceService for Endpoint<M> {
    type SnapshotStream = Empty<Result<PbSnapshotResponse, Status>>;

    /// Returns no alarms: there are none.
    async fn alarm(&self, _: Request<PbAlarmRequest>) -> Result<Response<PbAlarmResponse>, Status> {
        Ok(Response::new(PbAlarmResponse { header: self.header(), alarms: Vec::new() }))
    }

    async fn status(&self, _: Request<PbStatusRequest>) -> Result<Response<PbStatusResponse>, Status> {
        let core = self.cluster.core();
        let knows_leader = self.cluster.knows_leader(&core, self.member, 1);
        let index = u64::try_from(core.members[self.member].applied).unwrap_or_default();
        let status = PbStatusResponse {
            header: Some(core.header(self.member)),
            version: VERSION.to_owned(),
            leader: if knows_leader { member_id(core.leader) } else { 0 },
            raft_index: index,
            raft_applied_index: index,
            raft_term: core.term,
            errors: if knows_leader { Vec::new() } else { vec![Refusal::NoLeader.text().to_owned()] },
            ..PbStatusResponse::default()
        };
        Ok(Response::new(status))
    }

    async fn defragment(
        &self,
        _: Request<PbDefragmentRequest>,
    ) -> Result<Response<PbDefragmentResponse>, Status> {
        Ok(Response::new(PbDefragmentResponse { header: None }))
    }

    async fn hash(&self, _: Request<PbHashRequest>) -> Result<Response<PbHashResponse>, Status> {
        Err(Status::unimplemented(NO_DATABASE))
    }

    async fn hash_kv(&self, _: Request<PbHashKvRequest>) -> Result<Response<PbHashKvResponse>, Status> {
        Err(Status::unimplemented(NO_DATABASE))
    }

    async fn snapshot(
        &self,
        _: Request<PbSnapshotRequest>,
    ) -> Result<Response<Self::SnapshotStream>, Status> {
        Err(Status::unimplemented(NO_DATABASE))
    }

    async fn move_leader(
        &self,
        request: Request<PbMoveLeaderRequest>,
    ) -> Result<Response<PbMoveLeaderResponse>, Status> {
        if self.cluster.leader() != self.member {
            return Err(Refusal::NotLeader.into());
        }
        let target = request.into_inner().target_id;
        let count = self.cluster.shared.options.members.len();
        let member = (0..count).find(|&member| member_id(member) == target).ok_or(Refusal::BadTransferee)?;
        if !self.cluster.move_leader(member) {
            return Err(Refusal::Timeout.into());
        }
        Ok(Response::new(PbMoveLeaderResponse { header: self.header() }))
    }

    async fn downgrade(
        &self,
        _: Request<PbDowngradeRequest>,
    ) -> Result<Response<PbDowngradeResponse>, Status> {
        Err(Status::unimplemented(NO_DATABASE))
    }
}
