//! The service `KV`: keys, ranges, transactions, compaction.

use etcd_client::proto::{
    PbCompactionRequest, PbCompactionResponse, PbDeleteRequest, PbDeleteResponse, PbKvService, PbPutRequest,
    PbPutResponse, PbRangeRequest, PbRangeResponse, PbRangeStreamResponse, PbTxnRequest, PbTxnResponse,
};
use futures_util::stream::Empty;
use tonic::{Request, Response, Status};

use super::Endpoint;
use crate::servers::etcd::quorum::Need;
use crate::servers::etcd::store::check;
use crate::servers::etcd::store::read::View;
use crate::servers::etcd::store::write::Write;
use crate::world::machine::Machine;

#[tonic::async_trait]
impl<M: Machine> PbKvService for Endpoint<M> {
    type RangeStreamStream = Empty<Result<PbRangeStreamResponse, Status>>;

    async fn range(&self, request: Request<PbRangeRequest>) -> Result<Response<PbRangeResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        check::key(&request.key)?;
        let member = self.member;
        let read =
            |core: &mut super::Core| core.state.store.range(&request, View::at(core.members[member].applied));
        let mut response = match request.serializable {
            true => self.carry_out_locally("Range", read)?,
            false => self.carry_out("Range", Need::Read, &metadata, read).await?,
        };
        self.fill(&mut response.header);
        Ok(Response::new(response))
    }

    async fn range_stream(
        &self,
        _: Request<PbRangeRequest>,
    ) -> Result<Response<Self::RangeStreamStream>, Status> {
        Err(Status::unimplemented("unknown method RangeStream for service etcdserverpb.KV"))
    }

    async fn put(&self, request: Request<PbPutRequest>) -> Result<Response<PbPutResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        check::put(&request)?;
        let put = |core: &mut super::Core| {
            core.state.check_put(&request)?;
            let mut write = Write::begin(&mut core.state);
            let response = write.put(request);
            write.commit();
            Ok(response)
        };
        let mut response = self.carry_out("Put", Need::Write, &metadata, put).await?;
        self.fill(&mut response.header);
        Ok(Response::new(response))
    }

    async fn delete_range(
        &self,
        request: Request<PbDeleteRequest>,
    ) -> Result<Response<PbDeleteResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        check::key(&request.key)?;
        let delete = |core: &mut super::Core| {
            let mut write = Write::begin(&mut core.state);
            let response = write.delete_range(&request);
            write.commit();
            Ok(response)
        };
        let mut response = self.carry_out("DeleteRange", Need::Write, &metadata, delete).await?;
        self.fill(&mut response.header);
        Ok(Response::new(response))
    }

    async fn txn(&self, request: Request<PbTxnRequest>) -> Result<Response<PbTxnResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        check::txn(&request, self.cluster.shared.options.txn_ops_max)?;
        let mut response =
            self.carry_out("Txn", Need::Write, &metadata, |core| core.state.txn(request)).await?;
        self.fill(&mut response.header);
        Ok(Response::new(response))
    }

    async fn compact(
        &self,
        request: Request<PbCompactionRequest>,
    ) -> Result<Response<PbCompactionResponse>, Status> {
        let (metadata, _, request) = request.into_parts();
        let compact = |core: &mut super::Core| {
            let applied = core.members.iter().map(|member| member.applied).min().unwrap_or_default();
            core.state.store.compact(request.revision, applied)
        };
        self.carry_out("Compact", Need::Write, &metadata, compact).await?;
        Ok(Response::new(PbCompactionResponse { header: self.header() }))
    }
}
