//! The service `Auth`. Authentication is off and can't be enabled.

use std::sync::Arc;

use etcd_client::proto::{
    PbAuthDisableResponse, PbAuthRoleListResponse, PbAuthUserListResponse, PbAuthenticateResponse,
    PbResponseHeader,
};
use hyper::Request;
use hyper::body::Incoming;
use tonic::Status;

use super::{Endpoint, Replying, raw, unknown_method};
use crate::servers::etcd::error::Refusal;
use crate::world::machine::Machine;

/// A request whose content is ignored.
#[derive(Clone, PartialEq, prost::Message)]
struct Anything {}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<PbResponseHeader>,
    #[prost(bool, tag = "2")]
    enabled: bool,
}

/// Answers a call of this service.
pub(super) fn call<M: Machine>(endpoint: &Arc<Endpoint<M>>, request: Request<Incoming>) -> Replying {
    let header = endpoint.header();
    match request.uri().path() {
        "/etcdserverpb.Auth/Authenticate" => raw::unary(request, |_: tonic::Request<Anything>| async {
            Err::<PbAuthenticateResponse, _>(Refusal::AuthNotEnabled.into())
        }),
        "/etcdserverpb.Auth/AuthStatus" => {
            raw::unary(request, move |_: tonic::Request<Anything>| async move {
                Ok(StatusResponse { header, enabled: false })
            })
        }
        "/etcdserverpb.Auth/UserList" => raw::unary(request, move |_: tonic::Request<Anything>| async move {
            Ok(PbAuthUserListResponse { header, ..Default::default() })
        }),
        "/etcdserverpb.Auth/RoleList" => raw::unary(request, move |_: tonic::Request<Anything>| async move {
            Ok(PbAuthRoleListResponse { header, ..Default::default() })
        }),
        "/etcdserverpb.Auth/AuthDisable" => {
            raw::unary(request, move |_: tonic::Request<Anything>| async move {
                Ok(PbAuthDisableResponse { header })
            })
        }
        path if path.starts_with("/etcdserverpb.Auth/") => {
            raw::refuse(Status::unimplemented("the simulated etcd has no users and no roles"))
        }
        _ => raw::refuse(unknown_method(&request)),
    }
}
