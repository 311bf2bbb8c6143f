//! Why a lock served less, where it did.

use super::Point;
use super::changes::Changes;
use crate::systems::System;

/// The throughput has fallen if it was higher by more than this factor.
const FALL: f64 = 1.05;
/// The share of a difference that one cause must explain.
const EXPLAINED: f64 = 0.5;
/// The fewest changes whose means say something.
const CHANGES_MIN: u64 = 30;

/// Why a short wait on etcd may take long.
///
/// Source: `syncWatchersLoop` of etcd's `mvcc/watchable_store.go`.
pub(super) const ETCD_LATE: &str = " A waiter watches the claim ahead of it, from the revision that it has \
                                    read. If anything was written meanwhile, etcd sends such a watch its \
                                    first events only every 100 ms.";

/// The results of a load, or of a part of one.
#[derive(Clone, Copy)]
struct Part {
    served_per_second: f64,
    changes: Changes,
}

/// Explains why the largest load served less than a smaller one, if it did.
pub(super) fn fall(points: &[&Point]) -> Option<String> {
    let last = *points.last()?;
    let best = points.iter().max_by(|a, b| a.served_per_second.total_cmp(&b.served_per_second))?;
    if last.served_per_second * FALL >= best.served_per_second {
        return None;
    }
    let part = |point: &Point| Part {
        served_per_second: point.served_per_second,
        changes: Changes::sum(&point.changes),
    };
    Some(format!(
        "On {} with work of {}, {} contenders were served {:.1} a second, and {} only {:.1}: {:.1}, \
         {:.1} and {:.1} in the three thirds of the load, in which {} attempts failed. A release took \
         {:.1} ms against {:.1} ms.{}",
        last.system.as_str(),
        last.work,
        best.contenders,
        best.served_per_second,
        last.contenders,
        last.served_per_second,
        last.served_first_per_second,
        last.served_middle_per_second(),
        last.served_last_per_second,
        last.failed,
        last.release_p50_ms,
        best.release_p50_ms,
        cause(points, part(best), part(last)),
    ))
}

/// Explains why a load beyond the capacity served less in its last third than in its first, if it did.
pub(super) fn falls_within(points: &[&Point]) -> Vec<String> {
    let fell = |point: &&&Point| {
        point.is_full() && point.served_last_per_second * FALL < point.served_first_per_second
    };
    let words = |point: &&Point| {
        let [first, _, last] = point.changes;
        let (from, to) = (point.served_first_per_second, point.served_last_per_second);
        let (first, last) =
            (Part { served_per_second: from, changes: first }, Part { served_per_second: to, changes: last });
        format!(
            "On {} with work of {} and {} contenders, {from:.1} a second were served in the first third of \
             the load, and {to:.1} in the last.{}",
            point.system.as_str(),
            point.work,
            point.contenders,
            cause(points, first, last),
        )
    };
    points.iter().filter(fell).map(words).collect()
}

/// Says by how much a change to the next holder took longer, and what that consists of.
fn cause(points: &[&Point], before: Part, after: Part) -> String {
    if after.served_per_second <= 0.0 {
        return String::new();
    }
    let (old, new) = (before.changes, after.changes);
    let fewest = old.count.min(new.count);
    if fewest < CHANGES_MIN {
        // Waiters of Redlock poll and are not woken, so none of their changes is counted.
        let is_told = old.count.max(new.count) > 0;
        let words = format!(" {fewest} changes to a holder that had waited are too few to tell why.");
        return if is_told { words } else { String::new() };
    }
    let grown_ms = 1e3 / after.served_per_second - 1e3 / before.served_per_second;
    let late_ms = new.late_ms - old.late_ms;
    let (wake_ms, request_ms) = (new.wake_ms - old.wake_ms, new.request_ms - old.request_ms);
    let is_cause = |ms: f64| ms >= EXPLAINED * grown_ms;
    let is_etcd = points.iter().any(|point| point.system == System::Etcd);
    let conclusion = if is_cause(late_ms) {
        let why = if is_etcd && new.are_late_if_young() { ETCD_LATE } else { "" };
        format!("Waiters that were woken late make {late_ms:.1} ms of it. {}.{why}", new.late_words())
    } else if is_cause(request_ms) {
        format!("The requests after the wait make {request_ms:.1} ms of it.")
    } else if is_cause(wake_ms) {
        format!(
            "The time until a waiter is woken, by no more than a little each, makes {wake_ms:.1} ms of it."
        )
    } else {
        "None of these makes half of it: the cause is not known.".to_owned()
    };
    format!(
        " From one grant to the next it took {grown_ms:.1} ms more. From the call of a release to the end of \
         the next holder's wait it took {:.1} ms, then {:.1} ms; from there to its grant {:.1} ms, then \
         {:.1} ms; it had waited {:.1} times, then {:.1} times; and {} of {} were woken late, then {} of {}. \
         {conclusion}",
        old.wake_ms,
        new.wake_ms,
        old.request_ms,
        new.request_ms,
        old.waits,
        new.waits,
        old.late,
        old.count,
        new.late,
        new.count,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns 100 changes of a lock that serves as many a second, with these means and late waiters.
    fn part(served_per_second: f64, [wake_ms, request_ms, late_ms]: [f64; 3], late: u64) -> Part {
        let (young, late_young) = (50, late);
        let changes =
            Changes { count: 100, wake_ms, request_ms, waits: 1.0, young, late, late_young, late_ms };
        Part { served_per_second, changes }
    }

    #[test]
    fn a_cause_is_what_makes_half_of_the_difference() {
        // 8 ms from grant to grant, then 10 ms.
        let before = part(125.0, [2.0, 1.0, 0.0], 0);
        let late = cause(&[], before, part(100.0, [3.5, 1.2, 1.4], 5));
        assert!(late.contains("it took 2.0 ms more"), "{late}");
        assert!(
            late.contains("woken late make 1.4 ms of it. Of 50 waits that ended within 120 ms"),
            "{late}"
        );
        assert!(
            late.ends_with("5 ended more than 20 ms after the release, and of 50 longer ones 0."),
            "{late}"
        );
        let requests = cause(&[], before, part(100.0, [2.2, 2.5, 0.1], 1));
        assert!(requests.ends_with("The requests after the wait make 1.5 ms of it."), "{requests}");
        let wakes = cause(&[], before, part(100.0, [3.5, 1.0, 0.0], 0));
        assert!(wakes.ends_with("makes 1.5 ms of it."), "{wakes}");
        let unknown = cause(&[], before, part(100.0, [2.1, 1.1, 0.1], 1));
        assert!(unknown.ends_with("the cause is not known."), "{unknown}");
        assert_eq!(cause(&[], before, part(0.0, [0.0; 3], 0)), "");
        let of = |count| Part { changes: Changes { count, ..Changes::default() }, served_per_second: 1.0 };
        assert_eq!(
            cause(&[], of(1200), of(4)),
            " 4 changes to a holder that had waited are too few to tell why."
        );
        assert_eq!(cause(&[], of(0), of(0)), "");
    }
}
