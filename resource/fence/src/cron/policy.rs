//! The ticks to run: pure.

use std::time::Duration;

use super::{Schedule, Tick};

/// The most ticks that one firing runs, whatever the policy says: the older ones are skipped.
pub const RUNS_MAX: usize = 1000;

/// The policy for ticks that are missed: nobody ran them within [`Policy::late_max`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// They are never run.
    Skip,
    /// The latest is run, unless a tick on time is due, which does for it. The others are never run.
    #[default]
    Latest,
    /// The latest `limit` are run, in their order. The older ones are never run.
    All {
        /// The most missed ticks to run.
        limit: u32,
    },
}

/// The policy for ticks that are late or missed.
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use fence::cron::{Every, Missed, Policy, Tick};
///
/// let schedule = Every::new(Duration::from_secs(60), Duration::ZERO)?;
/// let policy = Policy { late_max: Duration::from_secs(10), missed: Missed::All { limit: 2 } };
/// // The tick at 60 s is done; the next runner comes at 305 s. That of 300 s is on time.
/// let due = policy.due(&schedule, Some(Tick::new(60_000)), 305_000);
/// assert_eq!(due.run, [180_000, 240_000, 300_000].map(Tick::new));
/// assert_eq!(due.skipped, Some(Tick::new(120_000)));
/// # Ok::<(), fence::cron::EveryError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The time after its scheduled one for which a tick is on time: it is run then, whatever `missed` says.
    pub late_max: Duration,
    /// The policy for older ticks.
    pub missed: Missed,
}

/// The ticks of one firing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// The ticks to run, the oldest first.
    pub run: Vec<Tick>,
    /// All ticks after the last done one up to this one are skipped, of a new cron all up to this one; `None`
    /// if none is.
    pub skipped: Option<Tick>,
}

impl Policy {
    /// Returns the ticks to run at `now_ms` (milliseconds of Unix time), if `last` is the last tick that is
    /// done. Without a last one, only the ticks on time are run, whatever `missed` says: a new cron does not
    /// know when it began.
    pub fn due(&self, schedule: &impl Schedule, last: Option<Tick>, now_ms: u64) -> Due {
        let mut due = Due::default();
        let (mut at, mut missed) = (Some(now_ms), 0);
        // From the latest tick to older ones: if one is not run, no older one is.
        while let Some(tick) = at.and_then(|at| schedule.last(at).filter(|tick| tick.as_u64() <= at)) {
            if last.is_some_and(|last| tick <= last) {
                break;
            }
            let is_late = u128::from(now_ms - tick.as_u64()) > self.late_max.as_millis();
            let is_run = !is_late || (last.is_some() && self.runs_missed(missed, due.run.len()));
            if !is_run || due.run.len() >= RUNS_MAX {
                due.skipped = Some(tick);
                break;
            }
            missed += u32::from(is_late);
            due.run.push(tick);
            at = tick.as_u64().checked_sub(1);
        }
        due.run.reverse();
        due
    }

    /// Returns true if a missed tick is run: `missed` later ones are run, and `run` of all.
    const fn runs_missed(&self, missed: u32, run: usize) -> bool {
        match self.missed {
            Missed::Skip => false,
            Missed::Latest => run == 0,
            Missed::All { limit } => missed < limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Every;
    use super::*;

    fn every(period_ms: u64, offset_ms: u64) -> Every {
        Every::new(Duration::from_millis(period_ms), Duration::from_millis(offset_ms)).unwrap()
    }

    fn due(missed: Missed, late_max_ms: u64, last: Option<u64>, now_ms: u64) -> (Vec<u64>, Option<u64>) {
        let policy = Policy { late_max: Duration::from_millis(late_max_ms), missed };
        let due = policy.due(&every(10, 3), last.map(Tick::new), now_ms);
        (due.run.into_iter().map(Tick::as_u64).collect(), due.skipped.map(Tick::as_u64))
    }

    #[test]
    fn a_new_cron_runs_the_ticks_on_time_alone() {
        for missed in [Missed::Skip, Missed::Latest, Missed::All { limit: 9 }] {
            assert_eq!(due(missed, 10, None, 40), (vec![33], Some(23)));
            assert_eq!(due(missed, 5, None, 40), (vec![], Some(33)));
            assert_eq!(due(missed, 10, None, 4), (vec![3], None));
        }
    }

    #[test]
    fn each_policy_runs_its_missed_ticks() {
        assert_eq!(due(Missed::Skip, 8, Some(3), 40), (vec![33], Some(23)));
        assert_eq!(due(Missed::Skip, 6, Some(3), 40), (vec![], Some(33)));
        assert_eq!(due(Missed::Latest, 8, Some(3), 40), (vec![33], Some(23)));
        assert_eq!(due(Missed::Latest, 6, Some(3), 40), (vec![33], Some(23)));
        assert_eq!(due(Missed::All { limit: 1 }, 8, Some(3), 40), (vec![23, 33], Some(13)));
        assert_eq!(due(Missed::All { limit: 9 }, 8, Some(3), 40), (vec![13, 23, 33], None));
    }

    #[test]
    fn a_clock_behind_the_last_tick_has_nothing_due() {
        assert_eq!(due(Missed::All { limit: 9 }, 8, Some(53), 40), (vec![], None));
        assert_eq!(due(Missed::All { limit: 9 }, 8, Some(33), 40), (vec![], None));
    }

    #[test]
    fn one_firing_runs_a_limited_number_of_ticks() {
        let policy = Policy { late_max: Duration::MAX, missed: Missed::Skip };
        let due = policy.due(&every(1, 0), Some(Tick::new(0)), 1_000_000_000);
        assert_eq!((due.run.len(), due.run[0]), (RUNS_MAX, Tick::new(999_999_001)));
        assert_eq!(due.skipped, Some(Tick::new(999_999_000)));
    }

    #[test]
    fn a_period_or_an_offset_that_makes_no_schedule_is_named() {
        let of = |period, offset| Every::new(period, offset).unwrap_err().to_string();
        let (zero, second) = (Duration::ZERO, Duration::from_secs(1));
        assert_eq!(of(zero, zero), "the period 0ns must be a whole number of milliseconds, 1 at least");
        assert!(of(Duration::from_micros(1500), zero).starts_with("the period 1.5ms must"));
        assert!(of(second, second).starts_with("the offset 1s must"));
    }

    /// A cron of one machine: the last tick that is done, by the policy.
    fn step(policy: Policy, schedule: &Every, last: &mut Option<Tick>, now_ms: u64, ran: &mut Vec<Tick>) {
        for tick in policy.due(schedule, *last, now_ms).run {
            ran.push(tick);
            *last = Some(tick);
        }
    }

    proptest! {
        /// The ticks after the last done one are run or skipped, each once; the skipped ones are the oldest.
        #[test]
        fn ticks_are_run_or_skipped(
            (period, offset) in (1_u64..50).prop_flat_map(|period| (Just(period), 0..period)),
            (last, now, late_max) in (0_u64..500, 0_u64..500, 0_u64..200),
            missed in prop_oneof![
                Just(Missed::Skip),
                Just(Missed::Latest),
                (0_u32..8).prop_map(|limit| Missed::All { limit }),
            ],
        ) {
            let schedule = every(period, offset);
            let policy = Policy { late_max: Duration::from_millis(late_max), missed };
            let due = policy.due(&schedule, Some(Tick::new(last)), now);
            let open: Vec<u64> = (last + 1..=now).filter(|at| at % period == offset).collect();
            let skipped: Vec<u64> =
                open.iter().copied().filter(|at| due.skipped.is_some_and(|to| *at <= to.as_u64())).collect();
            let run: Vec<u64> = due.run.iter().map(|tick| tick.as_u64()).collect();
            prop_assert_eq!([skipped.clone(), run.clone()].concat(), open);
            let late = |at: &u64| now - at > late_max;
            prop_assert!(skipped.iter().all(late), "a tick on time is skipped");
            let late_run = run.iter().filter(|at| late(at)).count();
            match missed {
                Missed::Skip => prop_assert_eq!(late_run, 0),
                Missed::Latest => prop_assert!(late_run <= 1 && (late_run == 0 || run.len() == 1)),
                Missed::All { limit } => prop_assert!(late_run <= limit as usize),
            }
        }

        /// Whatever the clock does, no tick runs twice, and ticks run in their order.
        #[test]
        fn a_clock_that_jumps_runs_no_tick_twice(nows in prop::collection::vec(0_u64..2000, 1..40)) {
            let policy = Policy { late_max: Duration::from_millis(30), missed: Missed::All { limit: 5 } };
            let (mut last, mut ran) = (None, Vec::new());
            for now in nows {
                step(policy, &every(10, 3), &mut last, now, &mut ran);
            }
            prop_assert!(ran.windows(2).all(|pair| pair[0] < pair[1]), "{ran:?}");
        }

        #[test]
        fn the_next_tick_is_the_first_after_now(
            (period, offset) in (1_u64..50).prop_flat_map(|period| (Just(period), 0..period)),
            now in 0_u64..500,
        ) {
            let schedule = every(period, offset);
            let next = (now + 1..).find(|at| at % period == offset).map(Tick::new);
            prop_assert_eq!(schedule.next(now), next);
            let last = (0..=now).rev().find(|at| at % period == offset).map(Tick::new);
            prop_assert_eq!(schedule.last(now), last);
        }
    }
}
