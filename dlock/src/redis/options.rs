//! The options of a Redis client.

use std::fmt;

use redis::RedisConnectionInfo;

/// The options of a Redis client. Begin with [`RedisOptions::default`] and change what must differ.
///
/// All clients that lock the same keys should agree on `tokens` and `waiting`.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RedisOptions {
    /// The user to log in as; without one, the default user.
    pub username: Option<String>,
    /// The password; without one, the client does not log in.
    pub password: Option<String>,
    /// The number of the database.
    pub database: u32,
    /// The source of the fencing tokens.
    pub tokens: TokenSource,
    /// The mechanism by which waiters notice a release.
    pub waiting: Waiting,
}

impl RedisOptions {
    pub(crate) fn login(&self) -> RedisConnectionInfo {
        let mut info = RedisConnectionInfo::default().set_db(i64::from(self.database));
        if let Some(username) = &self.username {
            info = info.set_username(username);
        }
        if let Some(password) = &self.password {
            info = info.set_password(password);
        }
        info
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("username", &self.username)
            .field("database", &self.database)
            .field("tokens", &self.tokens)
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

/// The mechanism by which waiters notice a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// A release publishes a message, and the first waiter of each client asks at once. All waiters also ask
    /// from time to time, since a lease may expire and a message may get lost. Needs Redis 6 or later, and a
    /// second connection while there are waiters; without them it works like [`Waiting::Polled`].
    #[default]
    Called,
    /// Waiters ask from time to time, by [`Options::backoff`](crate::Options::backoff), and a release
    /// publishes nothing.
    Polled,
}

/// The source of the fencing tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenSource {
    /// A counter beside the lock, incremented with each grant. A server that loses it begins again at 1,
    /// below tokens in use.
    #[default]
    Counter,
    /// One more than the counter, or the server's time in microseconds since 1970 if that is larger. A lost
    /// counter does no harm then, as long as the server's clock does not step back by more than the time
    /// since the last grant. With Redlock the largest clock of the majority counts, so the nodes' clocks must
    /// not differ by more than that either.
    ///
    /// Tokens are numbers of 16 digits from the first grant on: the resource must accept them (64 bits do),
    /// and a lock that goes back to [`TokenSource::Counter`] counts on from there. Scripts count in doubles,
    /// which are exact until the year 2255. Needs Redis 5 or later: before, a script that read the time could
    /// not write.
    ServerTime,
    /// A counter that all keys of a hash slot of Redis Cluster share: there are 16,384, however many keys are
    /// locked. A counter of each key's own stays behind for good, some 100 bytes a key. The tokens of a key
    /// grow with gaps: `MaxJump` of the resource must allow for the grants of the other keys. A lost counter
    /// does the harm of [`TokenSource::Counter`] to all keys of its slot.
    ///
    /// A key that has a counter of its own is moved by its next grant, and its counter deleted. So all who
    /// share a key must change at once: a client that still counts by key begins again at 1, and the resource
    /// refuses its tokens. Semaphores, locks for readers, queues with a limit and leases without a token stay
    /// as they are. Not for Redlock.
    Shared,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_printed() {
        let options = RedisOptions { password: Some("secret".into()), ..RedisOptions::default() };
        assert!(!format!("{options:?}").contains("secret"));
    }
}
