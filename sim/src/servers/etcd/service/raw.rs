//! Procedures of the services for which etcd-client generates no server.

use std::future::Future;
use std::pin::Pin;

use hyper::Request;
use hyper::body::Incoming;
use prost::Message;
use tonic::server::{Grpc, UnaryService};
use tonic::{Response, Status};
use tonic_prost::ProstCodec;

use super::Replying;

/// Answers one call of a procedure that takes one message and returns one.
pub(super) fn unary<Q, A, F>(
    request: Request<Incoming>,
    procedure: impl FnOnce(tonic::Request<Q>) -> F + Send + 'static,
) -> Replying
where
    Q: Message + Default + 'static,
    A: Message + Default + 'static,
    F: Future<Output = Result<A, Status>> + Send + 'static,
{
    Box::pin(async move {
        let mut grpc = Grpc::new(ProstCodec::<A, Q>::default());
        Ok(grpc.unary(Once(Some(procedure)), request).await)
    })
}

/// Answers with an error.
pub(super) fn refuse(status: Status) -> Replying {
    Box::pin(async move { Ok(status.into_http()) })
}

/// A procedure that can be called once.
struct Once<P>(Option<P>);

impl<Q, A, F, P> UnaryService<Q> for Once<P>
where
    A: Send + 'static,
    F: Future<Output = Result<A, Status>> + Send + 'static,
    P: FnOnce(tonic::Request<Q>) -> F,
{
    type Response = A;
    type Future = Pin<Box<dyn Future<Output = Result<Response<A>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Q>) -> Self::Future {
        let call = self.0.take().map(|procedure| procedure(request));
        Box::pin(async move {
            match call {
                Some(call) => call.await.map(Response::new),
                None => Err(Status::internal("called twice")),
            }
        })
    }
}
