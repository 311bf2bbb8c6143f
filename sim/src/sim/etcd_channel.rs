//! A channel to one member over the simulated network, and the meaning of its errors for a lock.

use std::io;
use std::task::{Context, Poll};

use dlock::{BackendError, Runtime};
use etcd_client::{Channel, Error};
use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use tonic::transport::{Endpoint, Uri};
use tonic::{Code, Status};

use crate::world::runtime::SimRuntime;

/// Returns a channel that connects to `address` with the first request.
///
/// # Errors
///
/// [`tonic::transport::Error`] if `address` is not valid.
pub fn channel(runtime: &SimRuntime, address: &str) -> Result<Channel, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?.executor(Spawner(runtime.clone()));
    let connector = Connector(runtime.clone(), address.to_owned());
    Ok(Channel::Tonic(endpoint.connect_with_connector_lazy(connector)))
}

/// Returns what an error means for a lock. Texts: etcd's `api/v3rpc/rpctypes/error.go`.
pub fn meaning(error: Error) -> BackendError {
    let lost = BackendError::SessionLost { reported: true };
    match error {
        Error::GRpcStatus(status) => refusal(&status),
        Error::LeaseKeepAliveError(reason) if reason == "lease not found" => lost,
        error => BackendError::Disconnected { reason: error.to_string() },
    }
}

fn refusal(status: &Status) -> BackendError {
    let message = status.message().to_owned();
    if message.contains("lease not found") || message == "mutex: session is expired" {
        return BackendError::SessionLost { reported: true };
    }
    // Only this client makes a status with a source: for a connection that failed.
    if std::error::Error::source(status).is_some() {
        return BackendError::Disconnected { reason: message };
    }
    if status.code() == Code::Unavailable || message == "context deadline exceeded" {
        return BackendError::Isolated { message };
    }
    BackendError::Refused { message, passing: !matches!(status.code(), Code::InvalidArgument) }
}

/// Connects to one member.
struct Connector(SimRuntime, String);

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<<SimRuntime as Runtime>::Stream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Self(runtime, address) = self;
        let (runtime, address) = (runtime.clone(), address.clone());
        Box::pin(async move { runtime.connect(&address).await.map(TokioIo::new) })
    }
}

/// Runs tonic's tasks.
struct Spawner(SimRuntime);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Spawner {
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}
