//! The ticks of a cron at the resource, by its client.

use bytes::Bytes;
use dlock::{Instant, Runtime};

use crate::client::{Client, ClientError, PutAnswer, ReadAnswer, Retry};
use crate::fence::cron::{Grant, Seen, Tick, Ticks, TicksError};
use crate::fence::{Guard, Refusal, WriteSeq};
use crate::store::{Read, Write};

/// The record of ticks at the resource: its value is the last tick that is done, a blank, and the result of
/// that tick's work. A claim is a fenced read, a commit a write with the token. Since no lower token is taken
/// after the claim, the value that it has read is the latest when the commit is accepted.
///
/// Nothing else may write to the resource of that name.
pub struct ResourceTicks<R: Runtime> {
    client: Client<R>,
    retry: Option<Retry>,
}

impl<R: Runtime> ResourceTicks<R> {
    /// Creates a record that retries a commit whose answer is lost.
    pub fn new(client: Client<R>) -> Self {
        Self { client, retry: Some(Retry::default()) }
    }

    /// Sets the retries of a commit whose answer is lost; none if `None`.
    #[must_use]
    pub fn with_retry(self, retry: Option<Retry>) -> Self {
        Self { retry, ..self }
    }
}

impl<R: Runtime> Ticks for ResourceTicks<R> {
    type Error = ClientError;

    async fn claim(&mut self, grant: &Grant, deadline: Instant) -> Result<Seen, TicksError<ClientError>> {
        let read = Read { claim: Some(grant.token), owner: grant.owner.clone() };
        let (seen, got) = match self.client.read_as(&grant.key, &read, deadline).await {
            Ok(ReadAnswer::Read(snapshot)) => {
                let last = snapshot.value.as_deref().map(last_of).transpose().map_err(TicksError::Corrupt)?;
                return Ok(Seen { last, now_ms: None });
            }
            Ok(ReadAnswer::Stale { seen, got }) => (seen, got),
            Ok(ReadAnswer::ForeignOwner { seen, got }) => {
                return Err(TicksError::Refused(Refusal::ForeignOwner { seen, got }));
            }
            Ok(ReadAnswer::Jump { seen, got, max }) => {
                return Err(TicksError::Refused(Refusal::Jump { seen, got, max }));
            }
            Err(error) => return Err(TicksError::Failed(error)),
        };
        Err(TicksError::Refused(Refusal::Stale { seen, got }))
    }

    async fn commit(
        &mut self,
        grant: &Grant,
        number: WriteSeq,
        tick: Tick,
        result: &[u8],
        deadline: Instant,
    ) -> Result<(), TicksError<ClientError>> {
        let mut body = format!("{tick} ").into_bytes();
        body.extend_from_slice(result);
        let write = Write {
            guard: Guard::Token { token: grant.token, seq: Some(number) },
            owner: grant.owner.clone(),
            body: Bytes::from(body),
        };
        let answer = match self.retry {
            Some(retry) => self.client.put_with_retry(&grant.key, &write, deadline, retry).await,
            None => self.client.put(&grant.key, &write, deadline).await,
        };
        match answer {
            Ok(PutAnswer::Accepted { .. }) => Ok(()),
            Ok(PutAnswer::Refused(refusal)) => Err(TicksError::Refused(refusal)),
            Err(error) => Err(TicksError::Failed(error)),
        }
    }
}

/// Reads the last tick that is done from the value of the resource.
fn last_of(value: &[u8]) -> Result<Tick, String> {
    let digits = value.split(|byte| *byte == b' ').next().unwrap_or_default();
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    number.map(Tick::new).ok_or_else(|| {
        let begin = String::from_utf8_lossy(&value[..value.len().min(20)]).into_owned();
        format!(
            "the value begins with {begin:?}, and not with a tick: let nothing else write to this resource"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_begins_with_the_last_tick() {
        assert_eq!(last_of(b"3600000 report"), Ok(Tick::new(3_600_000)));
        assert_eq!(last_of(b"3600000 "), Ok(Tick::new(3_600_000)));
        for other in [&b""[..], b"report", b"-1 x", b"99999999999999999999 x"] {
            assert!(last_of(other).is_err(), "{other:?}");
        }
    }
}
