//! Scripts, and the commands that run them.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use redis::{Cmd, RedisWrite, ToRedisArgs};

use crate::key::{FENCE, FREED, LockKey, OWNER, PERMITS, TOKENS, stored_as};
use crate::share::{READERS, READS, WRITERS};
use crate::waiting::{PATIENCE, WAITERS};

/// The scripts of locks on one Redis: the name and the text of each.
pub(crate) const SCRIPTS: &[(&str, &str)] = &[
    ("acquire", include_str!("acquire.lua")),
    ("acquire_many", include_str!("acquire_many.lua")),
    ("acquire_by_time", include_str!("acquire_by_time.lua")),
    ("renew", include_str!("renew.lua")),
    ("release", include_str!("release.lua")),
    ("release_many", include_str!("release_many.lua")),
    ("acquire_permit", include_str!("permit/acquire_permit.lua")),
    ("renew_permit", include_str!("permit/renew_permit.lua")),
    ("release_permit", include_str!("permit/release_permit.lua")),
    ("holder", include_str!("holder.lua")),
    ("acquire_reader", include_str!("readers/acquire_reader.lua")),
    ("renew_reader", include_str!("readers/renew_reader.lua")),
    ("release_reader", include_str!("readers/release_reader.lua")),
    ("acquire_writer", include_str!("readers/acquire_writer.lua")),
    ("release_writer", include_str!("readers/release_writer.lua")),
    ("acquire_shared", include_str!("shared/acquire_shared.lua")),
    ("release_shared", include_str!("shared/release_shared.lua")),
    ("acquire_in_turn", include_str!("queue/acquire_in_turn.lua")),
    ("release_in_turn", include_str!("queue/release_in_turn.lua")),
    ("acquire_permit_in_turn", include_str!("queue/acquire_permit_in_turn.lua")),
    ("release_permit_in_turn", include_str!("queue/release_permit_in_turn.lua")),
    ("enqueue_job", include_str!("jobs/enqueue_job.lua")),
    ("claim_job", include_str!("jobs/claim_job.lua")),
    ("extend_job", include_str!("jobs/extend_job.lua")),
    ("retry_job", include_str!("jobs/retry_job.lua")),
    ("finish_job", include_str!("jobs/finish_job.lua")),
    ("bury_job", include_str!("jobs/bury_job.lua")),
    ("requeue_job", include_str!("jobs/requeue_job.lua")),
    ("dead_jobs", include_str!("jobs/dead_jobs.lua")),
];

/// Room for the text of a command: a digest, two keys and an owner token of usual lengths.
const COMMAND_BYTES: usize = 256;

/// A script and its digest. A server that knows the script runs it by its digest.
pub(crate) struct Script {
    /// Counts the scripts of this program, from 0.
    number: u32,
    body: &'static str,
    digest: Box<str>,
    /// The command of newer servers that does the same.
    own: Option<Own>,
}

/// A command that does what a script does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// Renews, as `renew.lua`.
    CompareAndSet,
    /// Releases, as `release.lua`.
    CompareAndDelete,
}

/// A script with its keys and arguments.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) script: &'a Script,
    pub(crate) keys: &'a [StoredKey<'a>],
    pub(crate) args: &'a [Arg<'a>],
}

/// A key of a lock. It is written into the command piece by piece, without a string of its own.
#[derive(Clone, Copy)]
pub(crate) struct StoredKey<'a> {
    name: &'a str,
    part: &'static str,
}

/// An argument of a script.
#[derive(Clone, Copy)]
pub(crate) enum Arg<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    Number(u64),
    /// A duration, in milliseconds.
    Millis(Duration),
    Stored(StoredKey<'a>),
}

impl Script {
    /// Digests a script: once in the life of the program, so keep it in a static.
    pub(crate) fn new(body: &'static str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self { number, body, digest: redis::Script::new(body).get_hash().into(), own: None }
    }

    /// Adds the command of newer servers that does the same. The script must tell whether the server has it.
    pub(super) fn with_own(self, own: Own) -> Self {
        Self { own: Some(own), ..self }
    }

    /// Returns the command of newer servers that does the same.
    pub(super) fn own(&self) -> Option<Own> {
        self.own
    }

    /// Returns the bit of this script in a set of 32; no bit for a script beyond the 32nd.
    pub(super) fn bit(&self) -> u32 {
        1u32.checked_shl(self.number).unwrap_or(0)
    }
}

impl Call<'_> {
    /// Returns the command that runs the script by its digest, for a server that knows it.
    pub(super) fn by_digest(&self) -> Cmd {
        self.command("EVALSHA", &self.script.digest)
    }

    /// Returns the command that runs the script by its text. The server knows it afterwards.
    pub(super) fn by_text(&self) -> Cmd {
        self.command("EVAL", self.script.body)
    }

    fn command(&self, verb: &str, script: &str) -> Cmd {
        let Self { keys, args, .. } = self;
        // A call with many arguments is one for many claims, each with two of them.
        let claims = (args.len() / 2).max(1);
        let mut command = Cmd::with_capacity(3 + keys.len() + args.len(), COMMAND_BYTES * claims);
        command.arg(verb).arg(script).arg(keys.len()).arg(*keys).arg(*args);
        command
    }
}

impl<'a> StoredKey<'a> {
    /// Returns the part of the lock whose name ends with `part`, which begins with `}:`.
    pub(crate) fn new(key: &'a LockKey, part: &'static str) -> Self {
        Self::named(key.name(), part)
    }

    /// As [`StoredKey::new`], of what is called `name`.
    pub(crate) const fn named(name: &'a str, part: &'static str) -> Self {
        Self { name, part }
    }

    /// Returns the key with the owner token of the present lease.
    pub(crate) fn owner(key: &'a LockKey) -> Self {
        Self::new(key, OWNER)
    }

    /// Returns the key that counts the grants.
    pub(crate) fn fence(key: &'a LockKey) -> Self {
        Self::new(key, FENCE)
    }

    /// Returns the key with the owners of the permits.
    pub(crate) fn permits(key: &'a LockKey) -> Self {
        Self::new(key, PERMITS)
    }

    /// Returns the key with the tokens of the permits.
    pub(crate) fn tokens(key: &'a LockKey) -> Self {
        Self::new(key, TOKENS)
    }

    /// Returns the key with the owners of the leases for reading.
    pub(crate) fn readers(key: &'a LockKey) -> Self {
        Self::new(key, READERS)
    }

    /// Returns the key with the tokens of the leases for reading.
    pub(crate) fn reads(key: &'a LockKey) -> Self {
        Self::new(key, READS)
    }

    /// Returns the key with the writers that wait.
    pub(crate) fn writers(key: &'a LockKey) -> Self {
        Self::new(key, WRITERS)
    }

    /// Returns the key with the waiters by their places.
    pub(crate) fn waiters(key: &'a LockKey) -> Self {
        Self::new(key, WAITERS)
    }

    /// Returns the key with the waiters by the time at which each must have asked again.
    pub(crate) fn patience(key: &'a LockKey) -> Self {
        Self::new(key, PATIENCE)
    }

    /// Returns the channel on which releases are published.
    pub(crate) fn freed(key: &'a LockKey) -> Self {
        Self::new(key, FREED)
    }
}

impl ToRedisArgs for StoredKey<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        let mut writer = out.writer_for_next_arg();
        for piece in stored_as(self.name, self.part) {
            // The writer appends to a buffer in memory.
            let _ = writer.write_all(piece.as_bytes());
        }
    }
}

impl ToRedisArgs for Arg<'_> {
    fn write_redis_args<W: ?Sized + RedisWrite>(&self, out: &mut W) {
        match self {
            Self::Text(text) => text.write_redis_args(out),
            Self::Bytes(bytes) => out.write_arg(bytes),
            Self::Number(number) => number.write_redis_args(out),
            Self::Millis(duration) => {
                u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).write_redis_args(out);
            }
            Self::Stored(key) => key.write_redis_args(out),
        }
    }
}
