//! The operations of which many at the same time can share a call: their scripts, for one claim and for many.

use std::sync::LazyLock;

use redis::{Cmd, RedisError, Value};

use super::connection::Connection;
use super::eval;
use super::native;
use super::script::{Arg, Call, Own, Script, StoredKey};
use crate::backend::Claim;

static ACQUIRE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire.lua")));
static ACQUIRE_MANY: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("acquire_many.lua")));
static RELEASE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("release.lua")).with_own(Own::CompareAndDelete));
static RELEASE_MANY: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("release_many.lua")));

/// An operation on claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Requests leases with tokens from the counters.
    Acquire,
    /// Ends leases.
    Release {
        /// True if waiters are notified.
        is_announced: bool,
    },
}

/// The keys and arguments of an operation on one claim.
struct Parts<'a> {
    keys: [StoredKey<'a>; 2],
    args: [Arg<'a>; 2],
    /// The number of keys.
    key_count: usize,
}

impl Operation {
    /// Returns whether claims on this connection may share calls. Where the server has a command of its own
    /// that releases, or nobody knows yet, releases may not.
    pub(super) fn may_share(self, connection: &Connection) -> bool {
        self == Self::Acquire || connection.commands().are_scripts()
    }

    /// Executes the operation for `claim` in a call of its own.
    pub(super) async fn one(self, claim: &Claim, connection: &Connection) -> Result<Value, RedisError> {
        let parts = self.parts(claim);
        match self {
            Self::Acquire => eval::eval(connection, self.call(&parts)).await,
            Self::Release { .. } => native::run(connection, self.call(&parts)).await,
        }
    }

    /// Executes the operation for `claim` by the text of its script: see [`eval::eval_text`].
    pub(super) async fn one_by_text(
        self,
        claim: &Claim,
        connection: &Connection,
    ) -> Result<Value, RedisError> {
        eval::eval_text(connection, self.call(&self.parts(claim))).await
    }

    /// Returns the command that executes the operation for all of `claims`.
    pub(super) fn many<'a>(self, claims: impl Iterator<Item = &'a Claim>, connection: &Connection) -> Cmd {
        let (mut keys, mut args) = (Vec::new(), Vec::new());
        for claim in claims {
            let parts = self.parts(claim);
            keys.extend_from_slice(&parts.keys[..parts.key_count]);
            args.extend_from_slice(&parts.args);
        }
        let call = Call { script: self.script_of_many(), keys: &keys, args: &args };
        if connection.knows(call.script) { call.by_digest() } else { call.by_text() }
    }

    /// Returns the script that executes the operation for many claims.
    pub(super) fn script_of_many(self) -> &'static Script {
        match self {
            Self::Acquire => &ACQUIRE_MANY,
            Self::Release { .. } => &RELEASE_MANY,
        }
    }

    fn call<'a>(self, parts: &'a Parts<'a>) -> Call<'a> {
        let script: &'static Script = match self {
            Self::Acquire => &ACQUIRE,
            Self::Release { .. } => &RELEASE,
        };
        // Without a channel, the command of a newer server would publish to one without a name.
        let is_channel_missing = self == Self::Release { is_announced: false };
        let arg_count = if is_channel_missing { 1 } else { 2 };
        Call { script, keys: &parts.keys[..parts.key_count], args: &parts.args[..arg_count] }
    }

    fn parts(self, claim: &Claim) -> Parts<'_> {
        let (owner_key, owner) = (StoredKey::owner(&claim.key), Arg::Text(claim.owner.as_str()));
        match self {
            Self::Acquire => Parts {
                keys: [owner_key, StoredKey::fence(&claim.key)],
                args: [owner, Arg::Millis(claim.ttl)],
                key_count: 2,
            },
            Self::Release { is_announced } => Parts {
                keys: [owner_key, owner_key],
                args: [
                    owner,
                    if is_announced { Arg::Stored(StoredKey::freed(&claim.key)) } else { Arg::Text("") },
                ],
                key_count: 1,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    /// Returns the lines of a script without comments.
    fn code(text: &'static str) -> impl Iterator<Item = &'static str> {
        text.lines().filter(|line| !line.trim_start().starts_with("--"))
    }

    /// Returns the body of the function in the script for many.
    fn body(text: &'static str, head: &str) -> Vec<&'static str> {
        code(text).skip_while(|line| *line != head).skip(1).take_while(|line| *line != "end").collect()
    }

    #[test]
    fn the_scripts_for_one_and_for_many_acquires_agree() {
        let one = code(include_str!("acquire.lua")).skip(1).map(|line| {
            let second = line.replace("keys[2]", "keys[i + 1]").replace("args[2]", "args[i + 1]");
            format!("  {}", second.replace("keys[1]", "keys[i]").replace("args[1]", "args[i]"))
        });
        let many = body(include_str!("acquire_many.lua"), "local function acquire(i)");
        assert_eq!(many, one.collect::<Vec<_>>());
    }

    #[test]
    fn the_scripts_for_one_and_for_many_releases_agree() {
        let one = code(include_str!("release.lua")).skip_while(|line| !line.starts_with("if call"));
        let one = one.map(|line| {
            let one = line.replace("args[2] and args[2]", "args[2]").replace("answer(0)", "0");
            let one = one.replace("answer(1)", "1").replace("args[1]", "args[2 * i - 1]");
            format!("  {}", one.replace("args[2]", "args[2 * i]").replace("keys[1]", "keys[i]"))
        });
        let many = body(include_str!("release_many.lua"), "local function release(i)");
        assert_eq!(many, one.collect::<Vec<_>>());
    }
}
