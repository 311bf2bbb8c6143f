//! The service `Cluster`. The members can't be changed.

use etcd_client::proto::{
    PbClusterService, PbMember, PbMemberAddRequest, PbMemberAddResponse, PbMemberListRequest,
    PbMemberListResponse, PbMemberPromoteRequest, PbMemberPromoteResponse, PbMemberRemoveRequest,
    PbMemberRemoveResponse, PbMemberUpdateRequest, PbMemberUpdateResponse,
};
use tonic::{Request, Response, Status};

use super::Endpoint;
use crate::servers::etcd::core::member_id;
use crate::world::machine::Machine;

const FIXED: &str = "the simulated etcd's members are fixed";

#[tonic::async_trait]
impl<M: Machine> PbClusterService for Endpoint<M> {
    async fn member_add(
        &self,
        _: Request<PbMemberAddRequest>,
    ) -> Result<Response<PbMemberAddResponse>, Status> {
        Err(Status::unimplemented(FIXED))
    }

    async fn member_remove(
        &self,
        _: Request<PbMemberRemoveRequest>,
    ) -> Result<Response<PbMemberRemoveResponse>, Status> {
        Err(Status::unimplemented(FIXED))
    }

    async fn member_update(
        &self,
        _: Request<PbMemberUpdateRequest>,
    ) -> Result<Response<PbMemberUpdateResponse>, Status> {
        Err(Status::unimplemented(FIXED))
    }

    async fn member_list(
        &self,
        _: Request<PbMemberListRequest>,
    ) -> Result<Response<PbMemberListResponse>, Status> {
        let members = self.cluster.shared.options.members.iter().enumerate();
        let members = members.map(|(member, (name, address))| PbMember {
            id: member_id(member),
            name: name.clone(),
            client_ur_ls: vec![address.clone()],
            ..PbMember::default()
        });
        let members = members.collect();
        // etcd names no revision here.
        let header =
            self.header().map(|header| etcd_client::proto::PbResponseHeader { revision: 0, ..header });
        Ok(Response::new(PbMemberListResponse { header, members }))
    }

    async fn member_promote(
        &self,
        _: Request<PbMemberPromoteRequest>,
    ) -> Result<Response<PbMemberPromoteResponse>, Status> {
        Err(Status::unimplemented(FIXED))
    }
}
