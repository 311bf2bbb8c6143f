//! The requests of a semaphore's permit: they name the other permits that were live at its grant.

use std::fmt;

use dlock::{FencingToken, Instant, Runtime};

use super::message::{put_answer, put_request, read_answer, read_request};
use super::{Client, ClientError, PutAnswer, ReadAnswer, Repeated, Retry};
use crate::fence::Beside;
use crate::store::{Read, Write};
use crate::{OwnerToken, ResourceKey};

/// Sends requests for a permit of a semaphore, through a [`Client`]: see [`Client::beside`].
pub struct PermitClient<'a, R: Runtime> {
    client: &'a Client<R>,
    beside: &'a Beside,
}

impl<R: Runtime> Client<R> {
    /// Returns the client of a permit that was granted beside the permits `beside`: it sends their tokens
    /// with each write and each fenced read, so that the resource does not refuse them while they live. Send
    /// all requests of the permit with the same set, since the first one of its token counts.
    ///
    /// # Example
    ///
    /// ```
    /// # mod service { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/service.rs")); }
    /// # service::run(async |runtime, client| {
    /// # use std::time::Duration;
    /// # use dlock::Runtime;
    /// # use resource::client::PutAnswer;
    /// # use resource::fence::{Beside, Guard, Refusal};
    /// # use resource::{ResourceKey, store::Write};
    /// # let (key, deadline) = (ResourceKey::new("orders:42")?, runtime.now() + Duration::from_secs(5));
    /// # let write = |token, body| Write { guard: Guard::token(token), owner: None, body };
    /// let (a, b, c) = ("7".parse()?, "8".parse()?, "9".parse()?);
    /// // c has a permit of a semaphore. When it was granted, a had one, too, and b had none any more.
    /// let beside = Beside::new([a])?;
    /// let answer = client.beside(&beside).put(&key, &write(c, "by c".into()), deadline).await?;
    /// assert_eq!(answer, PutAnswer::Accepted { version: 1 });
    /// let answer = client.put(&key, &write(a, "by a".into()), deadline).await?;
    /// assert_eq!(answer, PutAnswer::Accepted { version: 2 });
    /// let answer = client.put(&key, &write(b, "by b".into()), deadline).await?;
    /// assert_eq!(answer, PutAnswer::Refused(Refusal::Stale { seen: c, got: b }));
    /// # Ok(()) });
    /// ```
    pub const fn beside<'a>(&'a self, beside: &'a Beside) -> PermitClient<'a, R> {
        PermitClient { client: self, beside }
    }
}

impl<R: Runtime> PermitClient<'_, R> {
    /// Writes as [`Client::put`] does.
    ///
    /// # Errors
    ///
    /// As [`Client::put`].
    pub async fn put(
        &self,
        key: &ResourceKey,
        write: &Write,
        deadline: Instant,
    ) -> Result<PutAnswer, ClientError> {
        let request = || put_request(&self.client.address, key, write, self.beside);
        let (status, body) = self.client.exchange(request, deadline).await?;
        put_answer(status, &body)
    }

    /// Writes as [`Client::put_with_retry`] does. A retry that comes after a write of another permit is
    /// refused as stale, though its first attempt may have been applied: the resource knows the last write
    /// alone.
    ///
    /// # Errors
    ///
    /// As [`Client::put_with_retry`].
    pub async fn put_with_retry(
        &self,
        key: &ResourceKey,
        write: &Write,
        deadline: Instant,
        retry: Retry,
    ) -> Result<PutAnswer, ClientError> {
        Ok(self.put_repeatedly(key, write, deadline, retry).await?.answer)
    }

    pub(crate) async fn put_repeatedly(
        &self,
        key: &ResourceKey,
        write: &Write,
        deadline: Instant,
        retry: Retry,
    ) -> Result<Repeated<PutAnswer>, ClientError> {
        let request = || put_request(&self.client.address, key, write, self.beside);
        self.client.repeat(request, put_answer, deadline, retry).await
    }

    /// Reads and claims as [`Client::fenced_read`] does: from then on no permit can write that had ended
    /// before this one was granted.
    ///
    /// # Errors
    ///
    /// As [`Client::fenced_read`].
    pub async fn fenced_read(
        &self,
        key: &ResourceKey,
        token: FencingToken,
        owner: Option<&OwnerToken>,
        deadline: Instant,
    ) -> Result<ReadAnswer, ClientError> {
        self.read_as(key, &Read { claim: Some(token), owner: owner.cloned() }, deadline).await
    }

    /// Reads as [`Client::read_as`] does. A read without a claim does not send the set.
    ///
    /// # Errors
    ///
    /// As [`Client::read_as`].
    pub async fn read_as(
        &self,
        key: &ResourceKey,
        read: &Read,
        deadline: Instant,
    ) -> Result<ReadAnswer, ClientError> {
        let request = || read_request(&self.client.address, key, read, self.beside);
        let (status, body) = self.client.exchange(request, deadline).await?;
        read_answer(status, &body)
    }
}

impl<R: Runtime> fmt::Debug for PermitClient<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PermitClient").field("client", self.client).field("beside", self.beside).finish()
    }
}
