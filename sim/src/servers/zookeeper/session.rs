//! Sessions: their numbers, passwords and expiry.

use std::ops::RangeInclusive;
use std::time::Duration;

use dlock_zookeeper::wire::PASSWORD_BYTES;
use history::Span;

/// A session, as the leader keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) timeout: Duration,
    /// Its end on the leader's clock: nanoseconds, at a whole tick.
    pub(crate) expires_at: u64,
    /// The connection that the session uses, which may be closed already, and its member.
    pub(crate) connection: u64,
    pub(crate) member: usize,
}

/// Returns the expiry of a session whose last message came at `now` (nanoseconds): sessions end in batches,
/// at the tick after their timeout.
///
/// Source: `ExpiryQueue.roundToNextInterval`.
pub(crate) fn expiry(now: u64, timeout: Duration, tick: Duration) -> u64 {
    let tick = Span(tick).as_nanos().max(1);
    ((now + Span(timeout).as_nanos()) / tick + 1) * tick
}

/// Returns the timeout within `bounds` that is nearest to `millis`.
pub(crate) fn negotiate(millis: i32, bounds: &RangeInclusive<Duration>) -> Duration {
    let wish = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
    wish.max(*bounds.start()).min(*bounds.end())
}

/// Returns the first session number of a member that starts when its clock shows `now` (nanoseconds): eight
/// bits of the member's number, forty bits of milliseconds, and a counter.
///
/// Source: `SessionTrackerImpl.initializeNextSessionId`.
pub(crate) fn first_id(member: usize, now: u64) -> i64 {
    let millis = now / 1_000_000;
    let server = u64::try_from(member).unwrap_or_default() + 1;
    i64::from_be_bytes(((server << 56) | ((millis << 24) >> 8)).to_be_bytes())
}

/// Returns the password of a session, which every member can compute.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_the_real_servers() {
        let captured = 0x0562_73d8_89a9_9624_d48f_d6c7_1775_9303_u128;
        assert_eq!(password(0x0100_0054_bc62_0008), captured.to_be_bytes());
    }

    #[test]
    fn sessions_expire_at_the_tick_after_their_timeout() {
        let tick = Duration::from_millis(100);
        let millis =
            |now: u64, timeout| expiry(now * 1_000_000, Duration::from_millis(timeout), tick) / 1_000_000;
        assert_eq!(
            (millis(0, 1000), millis(1, 1000), millis(99, 1000), millis(100, 1000)),
            (1100, 1100, 1100, 1200)
        );
    }

    #[test]
    fn session_numbers_name_their_member() {
        let (first, third) = (first_id(0, 5_000_000_000), first_id(2, 5_000_000_000));
        assert_eq!((first >> 56, third >> 56), (1, 3));
        assert_eq!(first & 0xff_ffff_ffff_ffff, 5000 << 16);
    }
}
