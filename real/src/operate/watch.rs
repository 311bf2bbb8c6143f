//! Watches a holder for one interval of its renewals, to find out if it still renews.

use std::time::Duration;

use dlock::{Instant, Runtime};

use super::{Holder, Inspection, OperateError, Servers};

/// The time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The time for a holder whose interval is unknown: its lease never ends, or no server tells of its session.
const UNKNOWN: Duration = Duration::from_secs(10);

/// Time beyond an interval for a renewal to arrive at Redis.
const MARGIN: Duration = Duration::from_millis(500);

/// The same for a cluster. etcd tells what is left in whole seconds, rounded down: a renewal shows by then.
const CLUSTER_MARGIN: Duration = Duration::from_millis(2500);

/// The difference that clocks of client and server may have within a watch, in milliseconds.
const SLACK_MS: u64 = 50;

/// The result of watching a holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// It renewed, this long after the watch began.
    Renewed(Duration),
    /// Its lease ended by itself, or another owner has the lock.
    Ended,
    /// It did not renew.
    Silent,
    /// Its lease is there, and no server tells if it renews.
    Unknown,
}

/// Returns the time within which a holder that lives renews once.
///
/// It renews after a third of its TTL, so what is left never falls below two thirds by much: the next renewal
/// comes within a third of what is left. Half of it also covers a renewal that is late.
pub fn watch_time(holder: &Holder) -> Duration {
    let session = holder.claim.as_ref().and_then(|claim| claim.session.as_ref());
    match (session.and_then(|session| session.ttl_ms), holder.left_ms) {
        (Some(ttl), _) => Duration::from_millis(ttl / 2) + CLUSTER_MARGIN,
        (None, Some(left)) => Duration::from_millis(left / 2) + MARGIN,
        (None, None) => UNKNOWN,
    }
}

/// Watches one holder.
pub struct Watch {
    holder: Holder,
    /// After the reading that found the holder.
    began: Instant,
    pulse: Pulse,
}

impl Watch {
    /// Begins to watch `holder`, which was found by a reading before.
    pub fn begin(servers: &Servers, holder: Holder) -> Self {
        Self { began: servers.runtime().now(), pulse: Pulse::of(&holder), holder }
    }

    /// Returns the holder, as it was found.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Reads the lock again and again for `time`, until the holder renews or its lease is over.
    ///
    /// # Errors
    ///
    /// [`OperateError`] if no server answers any more.
    pub async fn run(&mut self, servers: &mut Servers, time: Duration) -> Result<Watched, OperateError> {
        let runtime = servers.runtime().clone();
        let end = runtime.now() + time;
        loop {
            runtime.sleep_until((runtime.now() + LOOK_EVERY).min(end)).await;
            let is_last = runtime.now() >= end;
            let watched = self.look(servers).await?;
            if is_last || matches!(watched, Watched::Renewed(_) | Watched::Ended) {
                return Ok(watched);
            }
        }
    }

    /// Reads the lock once more, and compares it with the first reading.
    ///
    /// # Errors
    ///
    /// [`OperateError`] if no server answers any more.
    pub async fn look(&mut self, servers: &mut Servers) -> Result<Watched, OperateError> {
        // From before the request is sent: what is left then is less by at least this.
        let elapsed = servers.runtime().now().saturating_since(self.began);
        let Some(now) = find(&servers.read().await?, &self.holder) else { return Ok(Watched::Ended) };
        let Some(pulse) = Pulse::of(&now).since(self.pulse, elapsed) else {
            return Ok(Watched::Renewed(elapsed));
        };
        self.pulse = pulse;
        let is_known = pulse.is_known() || is_without_session(&self.holder);
        Ok(if is_known { Watched::Silent } else { Watched::Unknown })
    }
}

/// Returns the same holder in a later reading.
fn find(inspection: &Inspection, holder: &Holder) -> Option<Holder> {
    inspection.claimants(&holder.owner.0).into_iter().next()
}

/// Returns true if nothing renews the lease: that of Redis without an expiry, or a claim without a session or
/// with one that has no connection.
fn is_without_session(holder: &Holder) -> bool {
    match &holder.claim {
        None => true,
        Some(claim) => claim.session.as_ref().is_none_or(|session| session.is_gone == Some(true)),
    }
}

/// The signs by which a renewal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pulse {
    /// The time that is left, in milliseconds.
    left_ms: Option<u64>,
    /// The unit in which the server tells it, rounded down, in milliseconds.
    unit_ms: u64,
    /// The number of messages on the connection of the session.
    received: Option<u64>,
}

impl Pulse {
    fn of(holder: &Holder) -> Self {
        let session = holder.claim.as_ref().and_then(|claim| claim.session.as_ref());
        let unit_ms = if session.is_some() { 1000 } else { 1 };
        Self { left_ms: holder.left_ms, unit_ms, received: session.and_then(|session| session.received) }
    }

    fn is_known(self) -> bool {
        self.left_ms.is_some() || self.received.is_some()
    }

    /// Returns the pulse to compare the next one with, if the holder has not renewed since `first`, which was
    /// read at least `elapsed` ago; `None` if it has. A new connection, which counts from zero, is a sign of
    /// life, too.
    fn since(self, first: Self, elapsed: Duration) -> Option<Self> {
        let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX / 2);
        let rose = match (first.left_ms, self.left_ms) {
            (Some(before), Some(now)) => now + elapsed > before + self.unit_ms + SLACK_MS,
            (before, now) => before.is_none() && now.is_some(),
        };
        let heard = match (first.received, self.received) {
            (Some(before), Some(now)) => now != before,
            (before, now) => before.is_none() && now.is_some(),
        };
        let renewed = rose || heard;
        (!renewed).then_some(Self { received: self.received, ..first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::{Claim, Owner, Path, Session};

    /// Returns true if `now` shows a renewal since `first`, which was read `elapsed` milliseconds ago.
    fn renewed(unit_ms: u64, first: [Option<u64>; 2], now: [Option<u64>; 2], elapsed: u64) -> bool {
        let pulse = |[left_ms, received]: [Option<u64>; 2]| Pulse { left_ms, unit_ms, received };
        pulse(now).since(pulse(first), Duration::from_millis(elapsed)).is_none()
    }

    #[test]
    fn a_renewal_at_redis_leaves_more_than_the_time_that_passed() {
        let of_redis = |first, now, elapsed| renewed(1, [first, None], [now, None], elapsed);
        assert!(!of_redis(Some(900), Some(600), 300));
        assert!(!of_redis(Some(900), Some(500), 300));
        assert!(of_redis(Some(900), Some(900), 300));
        assert!(of_redis(None, Some(900), 300));
        assert!(!of_redis(None, None, 300));
    }

    #[test]
    fn a_renewal_at_etcd_shows_beyond_the_rounding() {
        let of_etcd = |first, now, elapsed| renewed(1000, [Some(first), None], [Some(now), None], elapsed);
        // 1.9 s and then 1.1 s are both told as 1 s.
        assert!(!of_etcd(1000, 1000, 800));
        assert!(of_etcd(1000, 1000, 1100));
        // A session of 1 s is always told to have 0 s left.
        assert!(!of_etcd(0, 0, 900) && of_etcd(0, 0, 1100));
    }

    #[test]
    fn a_message_of_the_session_is_a_sign_of_life() {
        let heard = |first, now| renewed(1000, [None, first], [None, now], 100);
        assert!(!heard(Some(7), Some(7)) && !heard(Some(7), None) && !heard(None, None));
        assert!(heard(Some(7), Some(8)) && heard(Some(7), Some(1)) && heard(None, Some(1)));
    }

    #[test]
    fn a_watch_is_longer_than_the_interval_of_renewals() {
        let holder = |left_ms, ttl_ms: Option<u64>| Holder {
            owner: Owner("a".to_owned()),
            servers: Vec::new(),
            claim: ttl_ms.map(|ttl| Claim {
                name: String::new(),
                owner: Owner("a".to_owned()),
                token: 1,
                session: Some(Session { ttl_ms: Some(ttl), ..Session::default() }),
                is_used_up: false,
                version: 0,
                path: Path::default(),
            }),
            left_ms,
        };
        // A TTL of 3 s: a holder that lives has more than 2 s left, and renews within the second after that.
        for left in [2001, 2500, 3000] {
            assert!(watch_time(&holder(Some(left), None)) > Duration::from_millis(left - 2000), "{left}");
        }
        // The rest of a session may be read just before a renewal.
        assert!(watch_time(&holder(Some(0), Some(3000))) > Duration::from_secs(1));
        assert_eq!(watch_time(&holder(None, None)), UNKNOWN);
    }
}
