//! The flags of the guards in front of the resource: who may use it, how often, and with which tokens.

use std::error::Error;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use dlock::TokioRuntime;
use real::clock::wall_unix_millis;
use resource::bearer::{BearerError, BearerToken, BearerTokens};
use resource::http::{Admin, App, Guards, RateLimit};
use resource::store::FenceAdmin;
use resource::{Fencing, MaxJump};
use tokio::runtime::Handle;

use super::span;

/// The guards of `resource`.
#[derive(Args)]
pub(crate) struct GuardArgs {
    /// Refuses a fencing token that is too far above the highest seen to come from the lock, by its source:
    /// counter (Redis, Redlock), revision (etcd), zxid (ZooKeeper) or time. With a step of your own:
    /// counter:GRANTS, revision:WRITES, zxid:ELECTIONS or time:SPAN, such as time:720h.
    #[arg(long, env = "DLOCK_MAX_JUMP", value_name = "SOURCE[:STEP]", value_parser = max_jump)]
    max_jump: Option<MaxJump>,
    /// Serves only requests with a bearer token of this file, which has one on each line: alone, or after a
    /// name and one space.
    #[arg(long, env = "DLOCK_BEARER_TOKEN_FILE", value_name = "FILE")]
    bearer_token_file: Option<PathBuf>,
    /// Lets operators with a token of this file set fences (/admin/fence/KEY); its lines are NAME TOKEN.
    #[arg(long, env = "DLOCK_ADMIN_TOKEN_FILE", value_name = "FILE")]
    admin_token_file: Option<PathBuf>,
    /// The largest number of connections; further ones are answered with 503 and closed.
    #[arg(long, env = "DLOCK_MAX_CONNECTIONS", value_name = "N")]
    max_connections: Option<NonZeroU32>,
    /// The requests a second of each client address; further ones are answered with 429.
    #[arg(long, env = "DLOCK_RATE", value_name = "N")]
    rate: Option<NonZeroU32>,
}

impl GuardArgs {
    /// Returns the limit on a token's jump.
    pub(crate) fn max_jump(&self, fencing: Fencing) -> Result<Option<MaxJump>, String> {
        match (self.max_jump, fencing) {
            (Some(_), Fencing::Off) => {
                Err("--max-jump needs --fence on: without fencing every token is accepted".to_owned())
            }
            (max_jump, _) => Ok(max_jump),
        }
    }

    /// Returns the largest number of connections.
    pub(crate) fn max_connections(&self) -> Option<usize> {
        self.max_connections.map(|number| usize::try_from(number.get()).unwrap_or(usize::MAX))
    }

    /// Puts the guards in front of `app`, and adds the paths of operators on its `store`.
    pub(crate) fn guard<S: FenceAdmin>(&self, app: App, store: Arc<S>) -> Result<App, Box<dyn Error>> {
        let app = match &self.admin_token_file {
            None => app,
            Some(path) => app.administered(store, Admin { tokens: tokens(path)?, clock: wall_unix_millis }),
        };
        let bearer = self.bearer_token_file.as_deref().map(tokens).transpose()?;
        let limit = |rate| RateLimit::new(TokioRuntime::new(Handle::current()), rate);
        let rate = self.rate.map(limit);
        Ok(if bearer.is_some() || rate.is_some() { app.guarded(Guards { bearer, rate }) } else { app })
    }
}

/// Reads the token of a client from a file.
pub(crate) fn token(path: &Path) -> Result<BearerToken, Box<dyn Error>> {
    parse(path, BearerToken::from_str)
}

fn tokens(path: &Path) -> Result<BearerTokens, Box<dyn Error>> {
    parse(path, BearerTokens::parse)
}

/// Reads a file of secrets. No error shows any of its text.
fn parse<T>(path: &Path, parse: impl FnOnce(&str) -> Result<T, BearerError>) -> Result<T, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn max_jump(text: &str) -> Result<MaxJump, String> {
    let (source, step) = match text.split_once(':') {
        None => (text, None),
        Some((source, step)) => (source, Some(step)),
    };
    let number = |step: &str| match step.parse::<u64>() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("the step `{step}` is no whole number above 0")),
    };
    match (source, step) {
        ("counter", None) => Ok(MaxJump::COUNTER),
        ("counter", Some(step)) => number(step).map(MaxJump::counter),
        ("revision", None) => Ok(MaxJump::REVISION),
        ("revision", Some(step)) => number(step).map(MaxJump::revision),
        ("zxid", None) => Ok(MaxJump::ZXID),
        ("zxid", Some(step)) => number(step).map(MaxJump::zxid),
        ("time", None) => Ok(MaxJump::TIME),
        ("time", Some(step)) => micros(step).map(MaxJump::time),
        _ => Err(format!("`{source}` is no source of tokens: give counter, revision, zxid or time")),
    }
}

fn micros(text: &str) -> Result<u64, String> {
    let span = span::parse(text).map_err(|error| error.to_string())?;
    if span < Duration::from_micros(1) {
        return Err("the step must be at least 1us".to_owned());
    }
    u64::try_from(span.as_micros()).map_err(|_| format!("the step {text} is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_a_default_step_and_a_step_of_the_users() {
        let parsed = |text: &str| max_jump(text).unwrap();
        assert_eq!(parsed("counter"), MaxJump::COUNTER);
        assert_eq!(parsed("counter:50"), MaxJump::new(50, 50));
        assert_eq!(parsed("revision:50"), MaxJump::new(1 << 48, 50));
        assert_eq!(parsed("zxid:2"), MaxJump::new((1 << 52) - 1, 2 << 32));
        assert_eq!(parsed("time:2s"), MaxJump::new((1 << 53) - 1, 2_000_000));
        let wrong = [("clock", "counter, revision, zxid or time"), ("counter:0", "above 0"), ("time:x", "x")];
        for (text, words) in wrong {
            let error = max_jump(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
