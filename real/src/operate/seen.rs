//! The highest token that the protected resource has seen.

use dlock::{Runtime, TokioRuntime};
use resource::ResourceKey;
use resource::client::{Client, ClientError, ReadAnswer};
use serde::Serialize;

use super::{Names, TIMEOUT};

/// The state of the resource, as far as the lock depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// The highest token that it has seen; `None` if there was none.
    pub highest_token: Option<u64>,
    /// The number of writes that it has accepted.
    pub writes: u64,
}

/// The resource can't be read.
#[derive(Debug, thiserror::Error)]
pub enum SeenError {
    /// The name is no key of a resource.
    #[error("the resource has no such key: {0}")]
    Key(#[from] resource::KeyError),
    /// The resource does not answer.
    #[error("the resource can't be read: {0}; check the address in --resource")]
    Client(#[from] ClientError),
    /// The resource refused a read without a token, which it never does.
    #[error("the resource refused a read without a token: another program listens at --resource")]
    Refused,
}

impl Seen {
    /// Reads it from the resource, without a claim.
    ///
    /// # Errors
    ///
    /// [`SeenError`].
    pub async fn read(
        runtime: &TokioRuntime,
        client: &Client<TokioRuntime>,
        names: &Names,
    ) -> Result<Self, SeenError> {
        let key = ResourceKey::new(names.name())?;
        match client.read(&key, runtime.now() + TIMEOUT).await? {
            ReadAnswer::Read(snapshot) => Ok(Self {
                highest_token: snapshot.max_fence.map(dlock::FencingToken::as_u64),
                writes: snapshot.version,
            }),
            ReadAnswer::Stale { .. } | ReadAnswer::ForeignOwner { .. } | ReadAnswer::Jump { .. } => {
                Err(SeenError::Refused)
            }
        }
    }
}
