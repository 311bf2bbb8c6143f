//! The measurements, and the terms of a lease that follow from them. Pure.

use dlock::Budget;
use sim::Span;

use super::work::Work;

/// The shortest TTL that is tried: half of it is still a TTL of a schedule.
const TTL_MIN: Span = Span::from_millis(20);
/// The longest: work that needs more is no critical section.
const TTL_MAX: Span = Span::from_secs(30 * 60);

/// The measurements of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The time of the critical section.
    pub work: Work,
    /// The time that 99 of 100 pauses of the process do not exceed.
    pub pause: Span,
    /// The time that 99 of 100 answers of the lock server do not exceed.
    pub network: Span,
    /// The share of sections in which the connection to the lock server breaks, from 0 to 1.
    pub loss: f64,
    /// True if the lease is renewed while the work goes on.
    pub renews: bool,
}

/// The terms of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The TTL.
    pub ttl: Span,
    /// The time between two renewals.
    pub renew_interval: Span,
    /// The remaining validity below which the work should begin no other step.
    pub stop_threshold: Span,
    /// The longest time for which the lease is renewed.
    pub cap: Span,
}

/// Measurements from which no lease follows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeasuredError {
    /// The TTL would be too short to try.
    #[error(
        "a TTL of {ttl} is too short for a lease ({TTL_MIN} at least): give the pause and the network time \
         that it must survive"
    )]
    TooShort {
        /// The TTL.
        ttl: Span,
    },
    /// The work is too long for a lease.
    #[error(
        "a TTL of {ttl} is too long for a lease ({TTL_MAX} at most): own work of this length durably, in a \
         table with a heartbeat, and lock only its steps"
    )]
    TooLong {
        /// The TTL.
        ttl: Span,
    },
}

impl Measured {
    /// Returns the terms by [`Budget`]. The cap is the TTL and once more the 99.9th percentile of the work:
    /// it ends sections that hang.
    ///
    /// # Errors
    ///
    /// [`MeasuredError`] if the TTL would be below 20 ms or above 30 minutes.
    pub fn terms(&self) -> Result<Terms, MeasuredError> {
        let (work, pause, network) = (self.work.p99_9(), self.pause, self.network);
        let budget = Budget { work: work.duration(), pause: pause.duration(), network: network.duration() };
        let ttl = Span(budget.ttl());
        if ttl < TTL_MIN {
            return Err(MeasuredError::TooShort { ttl });
        }
        if ttl > TTL_MAX {
            return Err(MeasuredError::TooLong { ttl });
        }
        let (renew_interval, stop_threshold) = (Span(budget.renew_interval()), Span(budget.stop_threshold()));
        Ok(Terms { ttl, renew_interval, stop_threshold, cap: ttl.plus(work) })
    }
}

impl Terms {
    /// Returns the TTLs to compare, each with its name: half of the advised one, itself, and twice as much.
    pub fn tried(self) -> [(&'static str, Span); 3] {
        let millis = self.ttl.as_nanos() / 1_000_000;
        [("half", Span::from_millis(millis / 2)), ("advised", self.ttl), ("double", self.ttl.times(2))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(work: &str, pause: u64, network: u64) -> Measured {
        let work = Work::percentiles(work).unwrap();
        let (pause, network) = (Span::from_millis(pause), Span::from_millis(network));
        Measured { work, pause, network, loss: 0.0, renews: true }
    }

    #[test]
    fn the_terms_are_those_of_the_budget() {
        let terms = measured("800ms,800ms", 2000, 200).terms().unwrap();
        assert_eq!((terms.ttl, terms.renew_interval), (Span::from_secs(3), Span::from_secs(1)));
        assert_eq!((terms.stop_threshold, terms.cap), (Span::from_millis(500), Span::from_millis(3800)));
        let ttls = terms.tried().map(|(_, ttl)| ttl);
        assert_eq!(ttls, [1500, 3000, 6000].map(Span::from_millis));
    }

    #[test]
    fn work_that_is_no_critical_section_is_refused() {
        let error = |work, pause| measured(work, pause, 0).terms().unwrap_err().to_string();
        assert!(error("1h,2h", 0).contains("is too long for a lease (30m at most)"), "{}", error("1h,2h", 0));
        assert!(error("1ms,1ms", 1).contains("a TTL of 2ms is too short"), "{}", error("1ms,1ms", 1));
        assert_eq!(measured("19ms,19ms", 1, 0).terms().unwrap().ttl, TTL_MIN);
    }
}
