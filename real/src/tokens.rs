//! The source of the fencing tokens of a command's locks, which Redis and Redlock can choose.

use clap::ValueEnum;
use dlock::redis::TokenSource;
use serde::{Deserialize, Serialize};

use crate::primitive::Primitive;
use crate::systems::System;

/// A source of fencing tokens, under the name of its [`TokenSource`].
///
/// # Example
///
/// ```
/// use dlock::redis::TokenSource;
/// use real::tokens::Tokens;
///
/// assert_eq!(Tokens::ServerTime.as_str(), "server-time");
/// assert_eq!(Tokens::default().source(), TokenSource::Counter);
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Tokens {
    /// A counter of each key's own.
    #[default]
    Counter,
    /// The server's time in microseconds, or one more than the key's counter if that is larger.
    ServerTime,
    /// A counter for each hash slot, which its keys share. Not for redlock.
    Shared,
}

impl Tokens {
    /// Returns its name, as the flag `--tokens` takes it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns whether it is the default, which reports leave out.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns it as a further item of a list, such as `, tokens shared`; nothing for the default.
    pub fn note(self) -> String {
        if self.is_default() { String::new() } else { format!(", tokens {}", self.as_str()) }
    }

    /// Returns it as an option of the lock.
    pub const fn source(self) -> TokenSource {
        match self {
            Self::Counter => TokenSource::Counter,
            Self::ServerTime => TokenSource::ServerTime,
            Self::Shared => TokenSource::Shared,
        }
    }

    /// Returns whether `primitive` on `system` can take its tokens from this source.
    ///
    /// # Errors
    ///
    /// The reason, if it can't: the flag would change nothing, or the lock refuses it.
    pub fn check(self, system: System, primitive: Primitive) -> Result<(), String> {
        use Primitive::{Bounded, Jobs, Readers, Semaphore};
        let (tokens, of) = (self.as_str(), system.as_str());
        match (self, system, primitive) {
            (_, System::Etcd | System::Zookeeper, _) => Err(format!(
                "--tokens {tokens}: {of} numbers the grants itself: leave it out, or give --system redis or \
                 redlock"
            )),
            (Self::Shared, System::Redlock, _) => Err(format!(
                "--tokens {tokens}: {of} counts for each key: give --tokens counter or server-time, or \
                 --system redis"
            )),
            (Self::Shared, System::Redis, Bounded { .. } | Semaphore { .. } | Readers) => Err(format!(
                "--tokens {tokens}: {primitive} counts for each key: give --tokens counter or server-time, \
                 or another --primitive"
            )),
            (Self::Shared | Self::ServerTime, _, Jobs) => Err(format!(
                "--tokens {tokens}: a job queue counts its own claims: leave it out, or give another \
                 --primitive"
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_read_as_it_is_written() {
        for (text, source) in [
            ("counter", TokenSource::Counter),
            ("server-time", TokenSource::ServerTime),
            ("shared", TokenSource::Shared),
        ] {
            let tokens = Tokens::from_str(text, false).unwrap();
            assert_eq!((tokens.as_str(), tokens.source()), (text, source));
            let json = serde_json::to_string(&tokens).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Tokens>(&json).unwrap(), tokens);
        }
        assert!(Tokens::from_str("time", false).is_err());
    }

    #[test]
    fn the_default_is_that_of_the_lock() {
        assert_eq!(Tokens::default().source(), TokenSource::default());
        assert_eq!(Tokens::value_variants().iter().filter(|tokens| tokens.is_default()).count(), 1);
    }

    #[test]
    fn a_source_that_would_change_nothing_is_refused() {
        let refusal = |tokens: Tokens, system, primitive| tokens.check(system, primitive).unwrap_err();
        for system in [System::Etcd, System::Zookeeper] {
            for tokens in Tokens::value_variants() {
                let error = refusal(*tokens, system, Primitive::Mutex);
                assert!(error.contains(tokens.as_str()) && error.contains(system.as_str()), "{error}");
                assert!(error.contains("--system redis"), "{error}");
            }
        }
        let error = refusal(Tokens::Shared, System::Redlock, Primitive::Mutex);
        assert!(error.contains("redlock") && error.contains("--system redis"), "{error}");
        for primitive in
            [Primitive::Semaphore { permits: 2 }, Primitive::Bounded { waiters: 1 }, Primitive::Readers]
        {
            let error = refusal(Tokens::Shared, System::Redis, primitive);
            assert!(error.contains(&primitive.to_string()), "{error}");
            assert_eq!(Tokens::ServerTime.check(System::Redis, primitive), Ok(()));
        }
        assert!(refusal(Tokens::ServerTime, System::Redis, Primitive::Jobs).contains("job queue"));
    }

    #[test]
    fn locks_on_redis_and_redlock_choose_their_source() {
        let several = Primitive::Several { keys: 2 };
        for primitive in [Primitive::Mutex, several, Primitive::Election, Primitive::SingleFlight] {
            assert_eq!(Tokens::Shared.check(System::Redis, primitive), Ok(()));
            assert_eq!(Tokens::ServerTime.check(System::Redlock, primitive), Ok(()));
        }
        assert_eq!(Tokens::Counter.check(System::Redis, Primitive::Jobs), Ok(()));
    }
}
