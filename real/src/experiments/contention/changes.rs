//! The time of a change from a holder to one that waits, and its parts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::contend::Handover;

/// A waiter was woken late if its wait ended later than this after the answer to the release.
pub(super) const LATE: Duration = Duration::from_millis(20);
/// A wait was young if it ended within this time of its begin: etcd sends the first events of a watch that
/// begins behind within 100 ms.
pub(super) const YOUNG: Duration = Duration::from_millis(120);

/// The changes from a holder to one that waited, in a part of a load.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Changes {
    pub(super) count: u64,
    /// The mean time from the call of the release to the end of the waiter's wait, in milliseconds.
    pub(super) wake_ms: f64,
    /// The mean time from there to the grant, in milliseconds.
    pub(super) request_ms: f64,
    /// The mean number of the waiter's waits.
    pub(super) waits: f64,
    /// The number of waiters whose last wait was young.
    pub(super) young: u64,
    /// The number of waiters that were woken late, and of those whose wait was young.
    pub(super) late: u64,
    pub(super) late_young: u64,
    /// The time by which the late ones were late, spread over all changes, in milliseconds.
    pub(super) late_ms: f64,
}

impl Changes {
    /// Sums up the changes of each third of a load that lasts for `lasts`.
    pub(super) fn of_thirds(handovers: &[(Duration, Handover)], lasts: Duration) -> [Self; 3] {
        let third = |at: Duration| ((at.as_secs_f64() * 3.0 / lasts.as_secs_f64()) as usize).min(2);
        [0, 1, 2].map(|number| {
            let of_third = handovers.iter().filter(|(at, _)| third(*at) == number);
            Self::of(&of_third.map(|(_, handover)| *handover).collect::<Vec<_>>())
        })
    }

    fn of(handovers: &[Handover]) -> Self {
        let mean = |of: &dyn Fn(&Handover) -> f64| {
            handovers.iter().map(of).sum::<f64>() / handovers.len().max(1) as f64
        };
        let count = |is: &dyn Fn(&Handover) -> bool| handovers.iter().filter(|one| is(one)).count() as u64;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (is_late, is_young) = (|one: &Handover| one.late > LATE, |one: &Handover| one.waited <= YOUNG);
        Self {
            count: handovers.len() as u64,
            wake_ms: mean(&|one| ms(one.wake)),
            request_ms: mean(&|one| ms(one.request)),
            waits: mean(&|one| f64::from(one.waits)),
            young: count(&is_young),
            late: count(&is_late),
            late_young: count(&|one| is_late(one) && is_young(one)),
            late_ms: mean(&|one| if is_late(one) { ms(one.late) } else { 0.0 }),
        }
    }

    /// Returns those of the whole load.
    pub(super) fn sum(parts: &[Self]) -> Self {
        let count: u64 = parts.iter().map(|part| part.count).sum();
        let mean = |of: fn(&Self) -> f64| {
            parts.iter().map(|part| of(part) * part.count as f64).sum::<f64>() / count.max(1) as f64
        };
        let all = |of: fn(&Self) -> u64| parts.iter().map(of).sum::<u64>();
        Self {
            count,
            wake_ms: mean(|part| part.wake_ms),
            request_ms: mean(|part| part.request_ms),
            waits: mean(|part| part.waits),
            young: all(|part| part.young),
            late: all(|part| part.late),
            late_young: all(|part| part.late_young),
            late_ms: mean(|part| part.late_ms),
        }
    }

    /// Says how many were woken late, after young waits and after older ones.
    pub(super) fn late_words(&self) -> String {
        let (old, late_old) = (self.count - self.young, self.late - self.late_young);
        format!(
            "Of {} waits that ended within {} ms of their begin, {} ended more than {} ms after the release, \
             and of {old} longer ones {late_old}",
            self.young,
            YOUNG.as_millis(),
            self.late_young,
            LATE.as_millis(),
        )
    }

    /// Returns whether waiters that have just begun to wait are woken late much more often than others.
    pub(super) fn are_late_if_young(&self) -> bool {
        let (old, late_old) = (self.count - self.young, self.late - self.late_young);
        old > 0 && self.late_young > 0 && self.late_young * old >= 3 * late_old * self.young
    }
}

#[cfg(test)]
mod tests {
    use dlock::Instant;

    use super::*;

    fn handover(wake_ms: u64, late_ms: u64, waited_ms: u64) -> Handover {
        let ms = Duration::from_millis;
        let (wake, late, waited) = (ms(wake_ms), ms(late_ms), ms(waited_ms));
        Handover { at: Instant::from_nanos(0), wake, late, request: ms(2), waited, waits: 3 }
    }

    #[test]
    fn late_wakes_are_counted_by_the_age_of_the_wait() {
        let at = Duration::from_secs;
        let load = [
            (at(0), handover(3, 1, 500)),
            (at(1), handover(51, 50, 80)),
            (at(2), handover(32, 30, 500)),
            (at(8), handover(4, 2, 90)),
        ];
        let thirds = Changes::of_thirds(&load, at(9));
        assert_eq!(thirds.map(|third| third.count), [3, 0, 1]);
        let [first, ..] = thirds;
        assert_eq!((first.young, first.late, first.late_young), (1, 2, 1));
        assert!((first.late_ms - 80.0 / 3.0).abs() < 1e-9 && (first.wake_ms - 86.0 / 3.0).abs() < 1e-9);
        let all = Changes::sum(&thirds);
        assert_eq!((all.count, all.young, all.late, all.waits), (4, 2, 2, 3.0));
        assert!((all.wake_ms - 22.5).abs() < 1e-9 && (all.late_ms - 20.0).abs() < 1e-9, "{all:?}");
        assert!(!all.are_late_if_young(), "one of two young ones and one of two old ones");
        let counted = |late_young, late| Changes { count: 100, young: 50, late, late_young, ..all };
        assert!(counted(9, 12).are_late_if_young() && !counted(8, 12).are_late_if_young());
    }
}
