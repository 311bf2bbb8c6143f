//! One connection to the service.

use bytes::Bytes;
use dlock::Runtime;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use super::{ClientError, Failure, not_sent};

pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// The error that ended the connection, once it has ended.
    error: oneshot::Receiver<hyper::Error>,
}

impl Connection {
    /// Begins HTTP on `stream`.
    pub(super) async fn open<R, S>(runtime: &R, stream: S) -> Result<Self, ClientError>
    where
        R: Runtime,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.map_err(not_sent)?;
        let (ended, error) = oneshot::channel();
        runtime.spawn(async move {
            if let Err(error) = driver.await {
                // Nobody asks for it any more if the connection was given up.
                let _ = ended.send(error);
            }
        });
        Ok(Self { sender, error })
    }

    /// Waits until a request may be sent; false if the connection has ended.
    pub(super) async fn is_ready(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends `request`, and returns the whole answer.
    pub(super) async fn round_trip(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), ClientError> {
        let response = match self.sender.try_send_request(request).await {
            Ok(response) => response,
            // hyper gives the request back if it has not begun to write it.
            Err(mut error) => {
                let unsent = error.take_message().is_some();
                let failure = Failure::of(&error.into_error());
                return Err(if unsent {
                    ClientError::NotSent(failure)
                } else {
                    ClientError::Unknown(failure)
                });
            }
        };
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| ClientError::Unknown(Failure::of(&error)))?;
        Ok((head.status, body.to_bytes()))
    }

    /// Returns the error that ended the connection before a request was sent, if one did. hyper tells it only
    /// to a request that is waiting. With TLS 1.3 the service refuses a client's certificate after the
    /// client's handshake: the connection may end between the handshake and the request.
    pub(super) async fn failure(self) -> Option<Failure> {
        self.error.await.ok().map(|error| Failure::of(&error))
    }
}
