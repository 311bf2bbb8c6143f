//! The scripts, and the commands that run them.

use std::io::Write;
use std::sync::LazyLock;

use redis::{Cmd, RedisError, RedisWrite, ServerErrorKind, ToRedisArgs, Value};

use super::connection::Connection;
use crate::backend::Claim;
use crate::key::{FENCE, LockKey, OWNER};

/// Room for a command's text: a digest, two keys and an owner token of usual lengths.
const COMMAND_BYTES: usize = 256;

/// What a server is to do for a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Acquire,
    Renew,
    Release,
}

/// A script and its digest, by which a server that knows it runs it.
struct Script {
    body: &'static str,
    digest: Box<str>,
}

/// The script of each task.
pub(super) struct Scripts {
    acquire: Script,
    renew: Script,
    release: Script,
}

/// Digested once in the life of the program.
static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| Scripts {
    acquire: Script::new(include_str!("acquire.lua")),
    renew: Script::new(include_str!("renew.lua")),
    release: Script::new(include_str!("release.lua")),
});

impl Scripts {
    pub(super) fn shared() -> &'static Self {
        &SCRIPTS
    }

    /// Runs the script of `task` by its digest, or by its text if the server does not know it; it does from then on.
    pub(super) async fn run(&self, task: Task, claim: &Claim, by: &Connection) -> Result<Value, RedisError> {
        let script = match task {
            Task::Acquire => &self.acquire,
            Task::Renew => &self.renew,
            Task::Release => &self.release,
        };
        let answer = by.send(&command("EVALSHA", &script.digest, task, claim)).await?;
        if !is_unknown(&answer) {
            return Ok(answer);
        }
        by.send(&command("EVAL", script.body, task, claim)).await
    }
}

impl Script {
    fn new(body: &'static str) -> Self {
        Self { body, digest: redis::Script::new(body).get_hash().into() }
    }
}

fn is_unknown(answer: &Value) -> bool {
    matches!(answer, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::NoScript))
}

fn command(verb: &str, script: &str, task: Task, claim: &Claim) -> Cmd {
    let counts = task == Task::Acquire;
    let mut command = Cmd::with_capacity(7, COMMAND_BYTES);
    command.arg(verb).arg(script).arg(if counts { "2" } else { "1" });
    command.arg(StoredKey { key: &claim.key, part: OWNER });
    if counts {
        command.arg(StoredKey { key: &claim.key, part: FENCE });
    }
    command.arg(claim.owner.as_str());
    if task != Task::Release {
        command.arg(u64::try_from(claim.ttl.as_millis()).unwrap_or(u64::MAX));
    }
    command
}

/// A key that is written into the command piece by piece.
struct StoredKey<'a> {
    key: &'a LockKey,
    part: &'a str,
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
