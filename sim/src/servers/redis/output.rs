//! Limits on the output that a client leaves unread. Source: `client-output-buffer-limit` of Redis 7.0, with
//! its defaults, and `checkClientOutputBufferLimits` in `networking.c`. Connections that only ask have none.

/// The time for which a connection may be above its soft limit, in microseconds.
const SOFT_MICROS: i64 = 60_000_000;
const MIB: usize = 1 << 20;

/// The limits of one kind of connection, in bytes: at the hard one it is closed at once, at the soft one
/// after 60 s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutputLimit {
    hard: usize,
    soft: usize,
}

/// Subscribers: `pubsub 32mb 8mb 60`.
pub(crate) const SUBSCRIBER: OutputLimit = OutputLimit { hard: 32 * MIB, soft: 8 * MIB };
/// Replicas: `replica 256mb 64mb 60`.
pub(crate) const REPLICA: OutputLimit = OutputLimit { hard: 256 * MIB, soft: 64 * MIB };

/// The output of one connection that is not sent yet.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    bytes: usize,
    /// When it reached the soft limit, in microseconds on the wall clock.
    soft_since: Option<i64>,
}

impl Backlog {
    /// Adds output. Returns whether the connection must be closed.
    pub(crate) fn add(&mut self, bytes: usize, limit: OutputLimit, now_micros: i64) -> bool {
        self.bytes += bytes;
        if self.bytes < limit.soft {
            self.soft_since = None;
            return false;
        }
        let since = *self.soft_since.get_or_insert(now_micros);
        self.bytes >= limit.hard || now_micros.saturating_sub(since) > SOFT_MICROS
    }

    /// Takes off output that was sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_limit_closes_at_once_and_the_soft_one_after_a_minute() {
        let mut backlog = Backlog::default();
        assert!(!backlog.add(8 * MIB - 1, SUBSCRIBER, 0));
        assert!(!backlog.add(1, SUBSCRIBER, 1));
        assert!(!backlog.add(1, SUBSCRIBER, 1 + SOFT_MICROS));
        assert!(backlog.add(1, SUBSCRIBER, 2 + SOFT_MICROS));
        assert!(Backlog::default().add(32 * MIB, SUBSCRIBER, 0));
        assert!(!Backlog::default().add(32 * MIB, REPLICA, 0));
    }

    #[test]
    fn output_that_is_read_starts_the_minute_anew() {
        let mut backlog = Backlog::default();
        assert!(!backlog.add(9 * MIB, SUBSCRIBER, 0));
        backlog.sent(9 * MIB);
        assert!(!backlog.add(1, SUBSCRIBER, SOFT_MICROS));
        assert!(!backlog.add(9 * MIB, SUBSCRIBER, 2 * SOFT_MICROS));
    }
}
