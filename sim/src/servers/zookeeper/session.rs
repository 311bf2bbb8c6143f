//! Sessions: their numbers, their passwords, and when they expire.

use std::time::Duration;

use dlock::zookeeper::wire::PASSWORD_BYTES;

/// A session, as the leader keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) timeout: Duration,
    /// When it ends, on the leader's clock: nanoseconds, at a whole tick.
    pub(crate) expires_at: u64,
    /// The connection that speaks for it, and the member that has it; it may be gone already.
    pub(crate) connection: u64,
    pub(crate) member: usize,
}

/// When a session that was heard of at `now` (nanoseconds) expires: sessions end in batches, at the tick after their
/// timeout.
///
/// Source: `ExpiryQueue.roundToNextInterval`.
pub(crate) fn expiry(now: u64, timeout: Duration, tick: Duration) -> u64 {
    let tick = nanos(tick).max(1);
    ((now + nanos(timeout)) / tick + 1) * tick
}

/// The timeout that a client gets which asks for `millis`: between 2 and 20 ticks.
pub(crate) fn negotiate(millis: i32, tick: Duration) -> Duration {
    let wish = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
    wish.clamp(tick * 2, tick * 20)
}

/// The first session number of a member that starts when its clock shows `now` (nanoseconds): eight bits of the
/// member's number, forty of milliseconds, the rest to count on.
///
/// Source: `SessionTrackerImpl.initializeNextSessionId`.
pub(crate) fn first_id(member: usize, now: u64) -> i64 {
    let millis = now / 1_000_000;
    let server = u64::try_from(member).unwrap_or_default() + 1;
    i64::from_be_bytes(((server << 56) | ((millis << 24) >> 8)).to_be_bytes())
}

/// The password of a session: every member can work it out.
///
/// Source: `ZooKeeperServer.generatePasswd`, on Java's `Random`.
pub(crate) fn password(id: i64) -> [u8; PASSWORD_BYTES] {
    const SECRET: i64 = 0xB341_5C00;
    const MULTIPLIER: i64 = 0x5_DEEC_E66D;
    const MASK: i64 = (1 << 48) - 1;
    let mut seed = (id ^ SECRET ^ MULTIPLIER) & MASK;
    let mut password = [0; PASSWORD_BYTES];
    for four in password.chunks_exact_mut(4) {
        seed = seed.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        // The upper 32 of 48 bits.
        let number = seed >> 16;
        four.copy_from_slice(&number.to_le_bytes()[..4]);
    }
    password
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
