//! The next step after an answer of the service, or after none.

use dlock::{Instant, Runtime};

use super::{Client, ClientError, Failure, PutAnswer, ReadAnswer};
use crate::ResourceKey;
use crate::fence::http::NotDone;
use crate::fence::{NextStep, Policy, Proof, Refusal};

impl PutAnswer {
    /// Returns the step after this answer, for work with the properties of `policy`. A stale write may begin
    /// anew; [`Client::proof`] finds out if it is superseded.
    pub const fn next_step(&self, policy: Policy) -> NextStep {
        match self {
            Self::Accepted { .. } => NextStep::Done,
            Self::Refused(refusal) => policy.after(refusal.proof()),
        }
    }
}

impl ClientError {
    /// Returns the step after this error. After [`ClientError::Unknown`] nothing is proved, so nothing may
    /// be compensated yet: send the very same write again.
    pub const fn next_step(&self) -> NextStep {
        match self {
            Self::NotSent(Failure::RateLimited(wait)) => NextStep::Busy { retry_after: Some(*wait) },
            Self::NotSent(_) => NextStep::Busy { retry_after: None },
            Self::Unknown(_) => NextStep::RepeatSameWrite,
            Self::Refused { .. } => NextStep::Repair,
        }
    }
}

impl From<ClientError> for NotDone {
    fn from(error: ClientError) -> Self {
        let text = match &error {
            ClientError::NotSent(_) => "the resource can't be reached",
            ClientError::Unknown(_) => "the resource did not answer",
            ClientError::Refused { .. } => "the resource did not understand the request of this service",
        };
        Self::of(text, error.next_step())
    }
}

impl<R: Runtime> Client<R> {
    /// Finds out what `refusal` of a write to `key` proves: reads the resource without a claim, and compares
    /// its version with `known`, that of the last own write, or of the read before the work. A stale write is
    /// [`Proof::Superseded`] if the version has grown; other refusals need no read.
    ///
    /// [`Proof::Stale`] means that nobody had written at the time of the read. Somebody may since: only the
    /// write under a new lease decides.
    ///
    /// # Errors
    ///
    /// [`ClientError`]; it may be asked again.
    ///
    /// # Example
    ///
    /// ```
    /// # mod service { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/service.rs")); }
    /// # service::run(async |runtime, client| {
    /// # use std::time::Duration;
    /// # use dlock::Runtime;
    /// # use resource::ResourceKey;
    /// # use resource::client::PutAnswer;
    /// # use resource::fence::{Guard, NextStep, Policy, Proof};
    /// # use resource::store::Write;
    /// # let (key, deadline) = (ResourceKey::new("seats:12A")?, runtime.now() + Duration::from_secs(5));
    /// # let write = |token, body| Write { guard: Guard::token(token), owner: None, body };
    /// // Ada read version 0 and paid. Meanwhile her lease ended, and Bob, with token 34, has the seat.
    /// client.put(&key, &write("34".parse()?, "Bob".into()), deadline).await?;
    /// let answer = client.put(&key, &write("33".parse()?, "Ada".into()), deadline).await?;
    /// let PutAnswer::Refused(refusal) = answer else { panic!("{answer:?}") };
    /// let proof = client.proof(&key, refusal, 0, deadline).await?;
    /// assert_eq!(proof, Proof::Superseded);
    /// let paid = Policy { has_outside_effects: true, may_begin_anew: true };
    /// assert_eq!(paid.after(proof), NextStep::Compensate);
    /// # Ok(()) });
    /// ```
    pub async fn proof(
        &self,
        key: &ResourceKey,
        refusal: Refusal,
        known: u64,
        deadline: Instant,
    ) -> Result<Proof, ClientError> {
        if refusal.proof() != Proof::Stale {
            return Ok(refusal.proof());
        }
        match self.read(key, deadline).await? {
            ReadAnswer::Read(snapshot) => Ok(refusal.proof_by_version(known, snapshot.version)),
            // A read without a claim is not refused.
            _ => Ok(refusal.proof()),
        }
    }
}
