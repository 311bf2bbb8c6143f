//! The results of flights ([`dlock::flight`]) in the guarded resource: its fence refuses the result of a
//! process that paused and was replaced.

use std::sync::Arc;

use bytes::Bytes;
use dlock::flight::{Claimed, FlightResult, Results, Stored};
use dlock::{FencingToken, Instant, LockKey, Owner, Runtime};

use crate::client::{Client, ClientError, PutAnswer, ReadAnswer, Retry};
use crate::fence::Guard;
use crate::store::{Read, Snapshot, Write};
use crate::{KeyError, OwnerToken, ResourceKey};

/// Keeps results in the resource that has the name of the lock's key: give flights keys of their own. Clones
/// share the client.
///
/// A result is stored as its token, `value` or `failure`, and then the bytes.
pub struct ResourceResults<R: Runtime> {
    client: Arc<Client<R>>,
    runtime: R,
    retry: Retry,
}

/// Why the resource could not keep or return a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The lock's name can't name a resource.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The resource gave no answer; a result may have been stored.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The resource has a value that is no result of a flight.
    #[error("the resource {key} has a value that is no result of a flight: give the flight a key of its own")]
    Foreign {
        /// The key.
        key: String,
    },
    /// The resource refused the token, which is far above those that it has seen.
    #[error(
        "the resource refused the token {token}: it accepts up to {max}; see `fence set` of the resource"
    )]
    Jump {
        /// The token.
        token: FencingToken,
        /// The largest token that it accepts.
        max: u64,
    },
}

impl<R: Runtime> ResourceResults<R> {
    /// Keeps results in the resource of `client`; `runtime` is that of the client.
    pub fn new(runtime: R, client: Client<R>) -> Self {
        Self { client: Arc::new(client), runtime, retry: Retry::default() }
    }

    /// Reads the resource until it answers; a read may be repeated.
    async fn read(&self, key: &LockKey, read: &Read, deadline: Instant) -> Result<ReadAnswer, ResultsError> {
        let resource = ResourceKey::try_from(key)?;
        loop {
            let attempt = deadline.min(self.runtime.now() + self.retry.attempt);
            match self.client.read_as(&resource, read, attempt).await {
                Err(ClientError::NotSent(_) | ClientError::Unknown(_))
                    if self.runtime.now() + self.retry.pause < deadline =>
                {
                    self.runtime.sleep_until(self.runtime.now() + self.retry.pause).await;
                }
                answer => return Ok(answer?),
            }
        }
    }
}

impl<R: Runtime> Results for ResourceResults<R> {
    type Error = ResultsError;

    async fn get(&self, key: &LockKey, deadline: Instant) -> Result<Option<FlightResult>, ResultsError> {
        match self.read(key, &Read::default(), deadline).await? {
            ReadAnswer::Read(snapshot) => decode(key, snapshot),
            // A read without a token is not judged.
            ReadAnswer::Stale { .. } | ReadAnswer::ForeignOwner { .. } | ReadAnswer::Jump { .. } => Ok(None),
        }
    }

    async fn claim(
        &self,
        key: &LockKey,
        token: FencingToken,
        owner: &Owner,
        deadline: Instant,
    ) -> Result<Claimed, ResultsError> {
        let read = Read { claim: Some(token), owner: OwnerToken::try_from(owner).ok() };
        match self.read(key, &read, deadline).await? {
            ReadAnswer::Read(snapshot) => decode(key, snapshot).map(Claimed::Yes),
            ReadAnswer::Stale { .. } | ReadAnswer::ForeignOwner { .. } => Ok(Claimed::Stale),
            ReadAnswer::Jump { got, max, .. } => Err(ResultsError::Jump { token: got, max }),
        }
    }

    async fn put(
        &self,
        key: &LockKey,
        result: &FlightResult,
        owner: &Owner,
        deadline: Instant,
    ) -> Result<Stored, ResultsError> {
        let owner = OwnerToken::try_from(owner).ok();
        let write = Write { guard: Guard::token(result.token), owner, body: encode(result) };
        let resource = ResourceKey::try_from(key)?;
        match self.client.put_with_retry(&resource, &write, deadline, self.retry).await? {
            PutAnswer::Accepted { .. } => Ok(Stored::Accepted),
            PutAnswer::Refused(_) => Ok(Stored::Stale),
        }
    }
}

impl<R: Runtime> Clone for ResourceResults<R> {
    fn clone(&self) -> Self {
        let Self { client, runtime, retry } = self;
        Self { client: Arc::clone(client), runtime: runtime.clone(), retry: *retry }
    }
}

fn encode(result: &FlightResult) -> Bytes {
    let (kind, bytes) = match &result.value {
        Ok(value) => ("value", value.as_slice()),
        Err(failure) => ("failure", failure.as_bytes()),
    };
    let mut body = format!("{} {kind}\n", result.token).into_bytes();
    body.extend_from_slice(bytes);
    body.into()
}

/// Reads a result; there is none if the resource was never written, or has a token without a value.
fn decode(key: &LockKey, snapshot: Snapshot) -> Result<Option<FlightResult>, ResultsError> {
    let Some(body) = snapshot.value else { return Ok(None) };
    parse(&body).map(Some).ok_or_else(|| ResultsError::Foreign { key: key.name().to_owned() })
}

fn parse(body: &[u8]) -> Option<FlightResult> {
    let end = body.iter().position(|byte| *byte == b'\n')?;
    let (token, kind) = std::str::from_utf8(&body[..end]).ok()?.split_once(' ')?;
    let bytes = &body[end + 1..];
    let value = match kind {
        "value" => Ok(bytes.to_vec()),
        "failure" => Err(String::from_utf8(bytes.to_vec()).ok()?),
        _ => return None,
    };
    Some(FlightResult { token: token.parse().ok()?, value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_result_reads_as_it_was_written(
            token in 1..u64::MAX,
            value in prop::result::maybe_ok(prop::collection::vec(any::<u8>(), 0..20), "\\PC{0,20}"),
        ) {
            let token = FencingToken::new(token).unwrap();
            let result = FlightResult { token, value };
            prop_assert_eq!(parse(&encode(&result)), Some(result));
        }

        #[test]
        fn any_other_value_is_refused_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = parse(&body);
        }
    }

    #[test]
    fn a_value_of_another_program_names_the_key() {
        let snapshot = Snapshot { value: Some("paid".into()), version: 1, max_fence: None };
        let error = decode(&LockKey::new("orders", "42").unwrap(), snapshot).unwrap_err();
        assert!(error.to_string().contains("orders:42"), "{error}");
    }
}
