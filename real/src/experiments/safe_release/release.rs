//! The Redis lock with two kinds of release: by GET and DEL, the mistake, or by the library's script.

use std::error::Error;
use std::future::Future;

use std::time::Duration;

use dlock::redis::{Redis, RedisOptions};
use dlock::{
    Acquisition, Answer, Backend, BackendError, Claim, Instant, Released, Renewal, Runtime, owner_prefix,
};
use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue};
use serde::{Deserialize, Serialize};

use crate::recording::speak_as;
use dlock::TokioRuntime;

/// The kind of release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Release {
    /// GET, then DEL if this client is the owner.
    GetThenDel,
    /// Compares and deletes in one script.
    Script,
}

impl Release {
    pub(super) const BOTH: [Self; 2] = [Self::GetThenDel, Self::Script];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::GetThenDel => "GET, DEL",
            Self::Script => "script",
        }
    }
}

/// A hook in the middle of a release: between GET and DEL, or before the script.
pub(super) trait Gap: Clone + Send + Sync + 'static {
    /// Completes when the release may continue.
    fn pass(&self) -> impl Future<Output = ()> + Send;
}

/// Does not wait.
impl Gap for () {
    async fn pass(&self) {}
}

/// A client of one Redis, which also records the server's events from its answers: the keys granted and
/// deleted.
#[derive(Clone)]
pub(super) struct Releasing<G> {
    redis: Redis<TokioRuntime>,
    raw: MultiplexedConnection,
    client: String,
    release: Release,
    gap: G,
}

impl<G: Gap> Releasing<G> {
    /// Connects to the server at `address`, for the process `client` of the history.
    pub(super) async fn connect(
        runtime: TokioRuntime,
        address: &str,
        client: &str,
        release: Release,
        gap: G,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let raw = redis::Client::open(format!("redis://{address}/"))?;
        let raw = raw.get_multiplexed_async_connection().await?;
        let redis = Redis::new(runtime, address, RedisOptions::default())?;
        Ok(Self { redis, raw, client: client.to_owned(), release, gap })
    }

    async fn get_then_del(&self, claim: &Claim) -> Result<Released, BackendError> {
        let key = claim.key.owner_key();
        let owner: Option<String> = self.ask(redis::cmd("GET").arg(&key)).await?;
        if owner.as_deref() != Some(claim.owner.as_str()) {
            return Ok(Released::NotOwner);
        }
        // Here the lease may expire, and another client may acquire the lock.
        self.gap.pass().await;
        // GETDEL deletes as DEL does, and returns the deleted value.
        let deleted: Option<String> = self.ask(redis::cmd("GETDEL").arg(&key)).await?;
        if let Some(owner) = deleted {
            self.tell_deleted(claim, &owner);
        }
        Ok(Released::Done)
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, BackendError> {
        let answer = command.query_async(&mut self.raw.clone()).await;
        answer.map_err(|error| BackendError::Disconnected { reason: error.to_string() })
    }

    fn tell_granted(&self, claim: &Claim, token: u64) {
        self.as_server(|| {
            tracing::info!(
                target: "server",
                event = "key_granted",
                resource_id_hash = claim.key.id_hash(),
                owner_token_prefix = claim.owner.prefix(),
                fencing_token = token,
                client = self.client,
            );
        });
    }

    fn tell_deleted(&self, claim: &Claim, owner: &str) {
        self.as_server(|| {
            tracing::info!(
                target: "server",
                event = "key_deleted",
                resource_id_hash = claim.key.id_hash(),
                owner_token_prefix = owner_prefix(owner),
                client = self.client,
            );
        });
    }

    /// Records an event under the server's name.
    fn as_server(&self, emit: impl FnOnce()) {
        speak_as("redis");
        emit();
        speak_as(&self.client);
    }
}

impl<G: Gap> Backend for Releasing<G> {
    type Runtime = TokioRuntime;
    type Acquisition = ReleasingAcquisition<G>;

    fn runtime(&self) -> &TokioRuntime {
        self.redis.runtime()
    }

    fn system(&self) -> &'static str {
        self.redis.system()
    }

    fn open(&self, claim: Claim) -> ReleasingAcquisition<G> {
        ReleasingAcquisition { client: self.clone(), redis: self.redis.open(claim.clone()), claim }
    }
}

/// An acquisition of the library with a release of this kind.
pub(super) struct ReleasingAcquisition<G> {
    client: Releasing<G>,
    redis: <Redis<TokioRuntime> as Backend>::Acquisition,
    claim: Claim,
}

impl<G: Gap> Acquisition for ReleasingAcquisition<G> {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = self.redis.request(deadline).await?;
        if let Answer::Granted { token, .. } = answer {
            self.client.tell_granted(&self.claim, token.as_u64());
        }
        Ok(answer)
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        self.client.runtime().sleep_until(deadline).await;
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        self.redis.renew(deadline).await
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        match self.client.release {
            Release::GetThenDel => self.client.get_then_del(&self.claim).await,
            Release::Script => {
                self.client.gap.pass().await;
                let released = self.redis.release(deadline).await?;
                if released == Released::Done {
                    self.client.tell_deleted(&self.claim, self.claim.owner.as_str());
                }
                Ok(released)
            }
        }
    }

    fn set_ttl(&mut self, ttl: Duration) {
        self.redis.set_ttl(ttl);
    }

    fn needs_cleanup(&self) -> bool {
        self.redis.needs_cleanup()
    }
}
