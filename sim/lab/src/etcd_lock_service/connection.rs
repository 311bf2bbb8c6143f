//! A connection to one member, until it is given up.

use std::pin::pin;

use dlock::BackendError;
use etcd_client::{Client, Error};
use futures_util::future::{Either, select};

use super::watched::Watched;

/// A connection to one member. Clones share its state.
#[derive(Clone)]
pub(super) struct Connection {
    client: Client,
    /// True once the connection has been given up.
    is_over: Watched<bool>,
}

impl Connection {
    pub(super) fn new(client: Client) -> Self {
        Self { client, is_over: Watched::new(false) }
    }

    pub(super) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Gives the connection up after an error that another member may not give.
    pub(super) fn judge(&self, error: &BackendError) {
        if !matches!(error, BackendError::SessionLost { .. }) && error.is_passing() {
            self.is_over.change(|is_over| *is_over = true);
        }
    }

    /// Runs `call` until the connection is given up.
    pub(super) async fn unless_over<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let over = pin!(self.is_over.until(|is_over| is_over));
        match select(pin!(call), over).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => Err(Error::EndpointError("the connection was given up".to_owned())),
        }
    }
}
