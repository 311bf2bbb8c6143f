//! The choices that all clients of the same locks should share.

/// How waiters learn that a lock was released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Waiting {
    /// A release publishes a message, and the first waiter of each client asks at once. All waiters also ask from time to
    /// time, since a lease may expire and a message may get lost. Needs Redis 6 or later, and a second connection while
    /// there are waiters; without them it works like [`Waiting::Polled`].
    #[default]
    Called,
    /// Waiters ask from time to time, by [`Options::backoff`](crate::Options::backoff), and a release publishes nothing.
    Polled,
}

/// The source of the fencing tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenSource {
    /// A counter beside the lock, incremented with each grant. A server that loses it begins again at 1, below tokens in
    /// use.
    #[default]
    Counter,
    /// One more than the counter, or the server's time in microseconds since 1970 if that is larger. A lost counter does no
    /// harm then, as long as the server's clock does not step back by more than the time since the last grant. With Redlock
    /// the largest clock of the majority counts, so the nodes' clocks must not differ by more than that either.
    ///
    /// Tokens are numbers of 16 digits from the first grant on: the resource must accept them (64 bits do), and a lock that
    /// goes back to [`TokenSource::Counter`] counts on from there. Scripts count in doubles, which are exact until the year
    /// 2255. Needs Redis 5 or later: before, a script that read the time could not write.
    ServerTime,
}
