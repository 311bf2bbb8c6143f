//! The service and its client as tonic's code generator would write them from
//!
//! ```proto
//! package trial;
//! service Bookings { rpc Book(Order) returns (Receipt); }
//! ```
//!
//! by hand, so that no build needs a protobuf compiler.

use std::convert::Infallible;

use tonic::body::Body as TonicBody;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::codegen::{Body, BoxFuture, Context, Poll, Service, StdError, http};
use tonic::server::{NamedService, UnaryService};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

const BOOK: &str = "/trial.Bookings/Book";

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Order {
    /// The same in each try of one order.
    #[prost(string, tag = "1")]
    pub idempotency_key: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Receipt {
    #[prost(uint64, tag = "1")]
    pub number: u64,
}

/// The service: a function from orders to receipts.
#[derive(Clone)]
pub struct Server<F>(pub F);

/// Its one method.
struct Book<F>(F);

impl<F> NamedService for Server<F> {
    const NAME: &'static str = "trial.Bookings";
}

impl<F: Fn(&Order) -> Receipt> UnaryService<Order> for Book<F> {
    type Response = Receipt;
    type Future = std::future::Ready<Result<Response<Receipt>, Status>>;

    fn call(&mut self, order: Request<Order>) -> Self::Future {
        std::future::ready(Ok(Response::new((self.0)(order.get_ref()))))
    }
}

impl<F, B> Service<http::Request<B>> for Server<F>
where
    F: Fn(&Order) -> Receipt + Clone + Send + Sync + 'static,
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<TonicBody>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let book = Book(self.0.clone());
        Box::pin(async move {
            if request.uri().path() != BOOK {
                return Ok(Status::unimplemented("no such method").into_http());
            }
            let mut grpc = tonic::server::Grpc::new(ProstCodec::default());
            Ok(grpc.unary(book, request).await)
        })
    }
}

/// A client of the service.
pub struct Client(tonic::client::Grpc<Channel>);

impl Client {
    pub fn new(channel: Channel) -> Self {
        Self(tonic::client::Grpc::new(channel))
    }

    /// Calls the method once.
    ///
    /// # Errors
    ///
    /// The status of the call.
    pub async fn book(&mut self, order: &Order) -> Result<Receipt, Status> {
        self.0.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let (path, codec) = (PathAndQuery::from_static(BOOK), ProstCodec::default());
        Ok(self.0.unary(Request::new(order.clone()), path, codec).await?.into_inner())
    }
}
