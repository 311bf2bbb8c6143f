//! The scripts, and the commands that run them.

use std::io::Write;
use std::sync::LazyLock;
use std::time::Duration;

use redis::{Cmd, RedisError, RedisWrite, ServerErrorKind, ToRedisArgs, Value};

use super::connection::Connection;
use crate::backend::Claim;
use crate::key::{FENCE, FREED, LockKey, OWNER};
use crate::token::FencingToken;

/// Room for a command's text: a digest, two keys and an owner token of usual lengths.
pub(super) const COMMAND_BYTES: usize = 256;

/// What fencing tokens are counted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenSource {
    /// A counter beside the lock, one more with each grant. A server that loses it begins again at 1, below tokens in use.
    #[default]
    Counter,
    /// One more than the counter or the server's time in microseconds since 1970, whichever is the larger. A lost counter
    /// does no harm then, as long as the server's clock does not step back by more than the time since the last grant.
    /// With Redlock the largest clock of the majority counts, so the nodes' clocks must not differ by more than that
    /// either.
    ///
    /// Tokens are numbers of 16 digits from the first grant on: the resource must take them (64 bits do), and a lock
    /// that goes back to [`TokenSource::Counter`] counts on from there. Scripts count in doubles, which are exact until
    /// the year 2255. Needs Redis 5 or later: before, no script that asked for the time could write.
    ServerTime,
}

/// What a server is to do for a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Acquire(TokenSource),
    /// Redlock's first phase.
    Vote(TokenSource),
    /// Redlock's second phase.
    Raise(FencingToken),
    Renew,
    Release {
        /// Tells those who wait.
        calls: bool,
    },
}

impl Task {
    fn counts(self) -> bool {
        !matches!(self, Self::Renew | Self::Release { .. })
    }

    fn sets_ttl(self) -> bool {
        !matches!(self, Self::Raise(_) | Self::Release { .. })
    }
}

/// A script and its digest, by which a server that knows it runs it.
pub(super) struct Script {
    /// Counts the scripts, from 0.
    pub(super) number: u32,
    pub(super) body: &'static str,
    pub(super) digest: Box<str>,
}

/// The script of each task.
pub(super) struct Scripts {
    acquire: Script,
    acquire_many: Script,
    acquire_by_time: Script,
    vote: Script,
    raise: Script,
    renew: Script,
    release: Script,
}

/// Digested once in the life of the program.
static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| Scripts {
    acquire: Script::new(0, include_str!("acquire.lua")),
    acquire_by_time: Script::new(1, include_str!("acquire_by_time.lua")),
    vote: Script::new(2, include_str!("../redlock/vote.lua")),
    raise: Script::new(3, include_str!("../redlock/raise.lua")),
    renew: Script::new(4, include_str!("renew.lua")),
    release: Script::new(5, include_str!("release.lua")),
    acquire_many: Script::new(6, include_str!("acquire_many.lua")),
});

impl Scripts {
    pub(super) fn shared() -> &'static Self {
        &SCRIPTS
    }

    /// Runs the script of `task` by its digest, or by its text if the server does not know it; it does from then on.
    ///
    /// A connection's first call is by the text: whether the server knows the script, only a round trip could tell, and the
    /// first call of all would wait for two.
    pub(super) async fn run(&self, task: Task, claim: &Claim, by: &Connection) -> Result<Value, RedisError> {
        let script = self.of(task);
        if by.has_run(script.number) {
            let answer = by.send(&command("EVALSHA", &script.digest, task, claim)).await?;
            if !is_unknown(&answer) {
                return Ok(answer);
            }
        }
        self.run_text(task, claim, by).await
    }

    /// Runs the script of `task` by its text: where answers get lost, one that says that the digest is unknown does, too.
    pub(super) async fn run_text(
        &self,
        task: Task,
        claim: &Claim,
        by: &Connection,
    ) -> Result<Value, RedisError> {
        let script = self.of(task);
        let answer = by.send(&command("EVAL", script.body, task, claim)).await?;
        // A server that refuses to run a script may not have read it either.
        if !matches!(answer, Value::ServerError(_)) {
            by.set_run(script.number);
        }
        Ok(answer)
    }

    /// The script that acquires for several claims.
    pub(super) fn acquire_many(&self) -> &Script {
        &self.acquire_many
    }

    fn of(&self, task: Task) -> &Script {
        match task {
            Task::Acquire(TokenSource::Counter) => &self.acquire,
            Task::Acquire(TokenSource::ServerTime) => &self.acquire_by_time,
            Task::Vote(_) => &self.vote,
            Task::Raise(_) => &self.raise,
            Task::Renew => &self.renew,
            Task::Release { .. } => &self.release,
        }
    }
}

impl Script {
    fn new(number: u32, body: &'static str) -> Self {
        Self { number, body, digest: redis::Script::new(body).get_hash().into() }
    }
}

pub(super) fn is_unknown(answer: &Value) -> bool {
    matches!(answer, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::NoScript))
}

fn command(verb: &str, script: &str, task: Task, claim: &Claim) -> Cmd {
    let mut command = Cmd::with_capacity(8, COMMAND_BYTES);
    command.arg(verb).arg(script).arg(if task.counts() { "2" } else { "1" });
    command.arg(StoredKey { key: &claim.key, part: OWNER });
    if task.counts() {
        command.arg(StoredKey { key: &claim.key, part: FENCE });
    }
    command.arg(claim.owner.as_str());
    if task.sets_ttl() {
        command.arg(millis(claim.ttl));
    }
    match task {
        Task::Vote(TokenSource::ServerTime) => _ = command.arg("time"),
        Task::Raise(token) => _ = command.arg(token.as_u64()),
        Task::Release { calls: true } => _ = command.arg(StoredKey { key: &claim.key, part: FREED }),
        _ => {}
    }
    command
}

/// A TTL as the scripts take it.
pub(super) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

/// A key that is written into the command piece by piece.
pub(super) struct StoredKey<'a> {
    pub(super) key: &'a LockKey,
    pub(super) part: &'a str,
}

impl ToRedisArgs for StoredKey<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        let mut writer = out.writer_for_next_arg();
        for piece in self.key.stored(self.part) {
            // The writer appends to a buffer in memory.
            let _ = writer.write_all(piece.as_bytes());
        }
    }
}
