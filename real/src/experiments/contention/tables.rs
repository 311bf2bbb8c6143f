//! The tables of experiment 4.

use super::changes::{Changes, LATE, YOUNG};
use super::model::{cycle_of, modelled_ms};
use super::{Configuration, Findings, Point};
use crate::report::Table;

/// Writes the latency that one attempt in `out_of` exceeds: a run with fewer attempts has no such one.
fn quantile(ms: f64, point: &Point, out_of: u64) -> String {
    if point.attempts < out_of { "–".to_owned() } else { format!("{ms:.1}") }
}

pub(super) fn below_table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "Loads of which at most 5 % of the attempts gave up: quantiles over all attempts, the mean over \
         those that were served, from the time at which each was due. M/D/1 is the mean that the model \
         predicts, for loads that keep the lock busy for 30 to 85 % of the time. No p99 is that of fewer \
         than 100 attempts, and no p99.9 that of fewer than 1,000.",
        &[
            "system",
            "work",
            "contenders",
            "attempts",
            "offered/s",
            "mean ms",
            "M/D/1 ms",
            "p50 ms",
            "p99 ms",
            "p99.9 ms",
        ],
    );
    for point in findings.points.iter().filter(|point| !point.is_full()) {
        let cycle = cycle_of(&findings.of(point.system, point.work));
        let predicted = modelled_ms(point, cycle);
        table.row([
            point.system.as_str().to_owned(),
            point.work.to_string(),
            point.contenders.to_string(),
            point.attempts.to_string(),
            format!("{:.2}", point.offered_per_second),
            format!("{:.1}", point.mean_ms),
            predicted.map_or_else(String::new, |predicted| format!("{predicted:.1}")),
            format!("{:.1}", point.p50_ms),
            quantile(point.p99_ms, point, 100),
            quantile(point.p999_ms, point, 1000),
        ]);
    }
    table
}

pub(super) fn beyond_table(configuration: &Configuration, findings: &Findings) -> Table {
    let mut table = Table::new(
        "Loads beyond the capacity: there is no latency, only a queue that grows. The first attempt gave up \
         after the given time. In a queue in the order of arrival, whose attempts come at even intervals, it \
         would be the expected time; a burst of random arrivals makes it earlier.",
        &[
            "system",
            "work",
            "contenders",
            "offered/s",
            "served/s",
            "first third/s",
            "last third/s",
            "growth/s",
            "gave up",
            "first after s",
            "expected s",
        ],
    );
    for point in findings.points.iter().filter(|point| point.is_full()) {
        let patience = (point.work.0 * configuration.patience).as_secs_f64();
        let seconds = |time: Option<f64>| time.map_or_else(String::new, |time| format!("{time:.1}"));
        table.row([
            point.system.as_str().to_owned(),
            point.work.to_string(),
            point.contenders.to_string(),
            format!("{:.2}", point.offered_per_second),
            format!("{:.2}", point.served_per_second),
            format!("{:.2}", point.served_first_per_second),
            format!("{:.2}", point.served_last_per_second),
            format!("{:.2}", point.growth_per_second()),
            point.abandoned.to_string(),
            seconds(point.first_abandoned_s),
            seconds(point.expected_abandoned_s(patience)),
        ]);
    }
    table
}

/// Shows the changes of holders under the loads beyond the capacity.
pub(super) fn changes_table(findings: &Findings) -> Table {
    let caption = format!(
        "The same loads: changes from a holder to one that had waited. From the call of the release to the \
         end of the next holder's wait (wake) and from there to its grant (request), means in ms; how often \
         it had waited; how many waits ended within {} ms of their begin (young); and how many ended more \
         than {} ms after the release (late), and of these the young ones.",
        YOUNG.as_millis(),
        LATE.as_millis(),
    );
    let headings = [
        "system",
        "work",
        "contenders",
        "changes",
        "wake ms",
        "request ms",
        "waits",
        "young",
        "late",
        "late, young",
    ];
    let mut table = Table::new(caption, &headings);
    for point in findings.points.iter().filter(|point| point.is_full()) {
        let changes = Changes::sum(&point.changes);
        table.row([
            point.system.as_str().to_owned(),
            point.work.to_string(),
            point.contenders.to_string(),
            changes.count.to_string(),
            format!("{:.1}", changes.wake_ms),
            format!("{:.1}", changes.request_ms),
            format!("{:.1}", changes.waits),
            changes.young.to_string(),
            changes.late.to_string(),
            changes.late_young.to_string(),
        ]);
    }
    table
}
