//! The report of experiment 4.

use super::changes::Changes;
use super::falls::{ETCD_LATE, fall, falls_within};
use super::figures::figures;
use super::model::{Compared, compared, cycle_of};
use super::tables::{below_table, beyond_table, changes_table};
use super::{Configuration, Findings, Loads, Point};
use crate::lab::load::failures;
use crate::report::Section;
use crate::systems::System;

/// A larger load raises the throughput if it does so by more than this factor, the noise of the machine.
const NOISE: f64 = 1.15;
/// The fewest attempts with a p99.9.
const ENOUGH: u64 = 1000;
/// The contenders of the lab's objective for a hot key.
const OBJECTIVE: u64 = 200;

pub(super) fn section(configuration: &Configuration, findings: &Findings) -> Section {
    let mut section = Section {
        tables: vec![below_table(findings), beyond_table(configuration, findings), changes_table(findings)],
        figures: figures(configuration, findings),
        ..Section::default()
    };
    section.expect(
        "no system served more than 1 / work",
        // The last critical section may begin just before the end and outlast it.
        configuration.loads.iter().all(|loads| {
            let more = 1.0 / loads.lasts.0.as_secs_f64().max(f64::EPSILON);
            let of_work = findings.points.iter().filter(|point| point.work == loads.work);
            let ceiling = 1.0 / loads.work.0.as_secs_f64();
            of_work.clone().all(|point| point.served_per_second <= ceiling + more)
        }),
    );
    let curves = || findings.curves(configuration);
    section.expect(
        "where waiters are woken, more contenders than a lock can serve bought no more throughput",
        curves().filter(|points| !polls(points)).all(|points| is_flat_when_full(&points)),
    );
    let first = configuration.loads.first().map(|loads| loads.work);
    let of_first = |points: &Vec<&Point>| points.first().map(|point| point.work) == first;
    let woken = || curves().filter(|points| !polls(points));
    section.expect(
        format!(
            "and with work of {}, where the lock was busy for 30 to 85 % of the time, the mean latency was \
             that of a queue with one server and random arrivals, within a factor of two and 3 ms",
            first.unwrap_or_default()
        ),
        woken().filter(of_first).all(|points| {
            let compared = compared(&points);
            !compared.is_empty() && compared.iter().all(Compared::is_as_modelled)
        }),
    );
    section.remarks.extend(woken().filter_map(|points| deviation(&points)));
    section.remarks.extend(curves().filter(of_first).filter_map(|points| objective(configuration, &points)));
    section.remarks.extend(curves().filter(of_first).filter_map(|points| polling(&points)));
    section.remarks.extend(curves().filter_map(|points| fall(&points)));
    section.remarks.extend(curves().flat_map(|points| falls_within(&points)));
    section.remarks.extend(untold(configuration, findings));
    section.remarks.extend(findings.points.iter().filter_map(|point| {
        let (system, contenders) = (point.system.as_str(), point.contenders);
        failures(
            &format!("{system} with {contenders} contenders and work of {}", point.work),
            &point.failures,
        )
    }));
    section
}

fn is_flat_when_full(points: &[&Point]) -> bool {
    let full = points.windows(2).filter(|pair| pair[0].is_full());
    full.into_iter().all(|pair| pair[1].served_per_second <= NOISE * pair[0].served_per_second)
}

fn polls(points: &[&Point]) -> bool {
    points.iter().any(|point| point.polls())
}

/// Says which load differs most from the model, if any does.
fn deviation(points: &[&Point]) -> Option<String> {
    let mut unlike = compared(points);
    unlike.retain(|compared| !compared.is_as_modelled());
    let ratio = |compared: &Compared<'_>| compared.point.mean_ms / compared.model_ms;
    let most = unlike.into_iter().max_by(|one, next| ratio(one).total_cmp(&ratio(next)))?;
    let Point { system, work, contenders, mean_ms, p99_ms, .. } = most.point;
    let why = if *system == System::Etcd { ETCD_LATE } else { "" };
    let counts = Changes::sum(&most.point.changes).late_words();
    Some(format!(
        "On {} with work of {work} and {contenders} contenders the mean latency was {mean_ms:.1} ms (p99 \
         {p99_ms:.1} ms), and the model predicts {:.1} ms. {counts}.{why}",
        system.as_str(),
        most.model_ms,
    ))
}

/// Says which durations of work have no p99.9, and why.
fn untold(configuration: &Configuration, findings: &Findings) -> Vec<String> {
    let words = |loads: &Loads| {
        let is_below = |point: &&Point| point.work == loads.work && !point.is_full();
        let below: Vec<_> = findings.points.iter().filter(is_below).collect();
        if below.iter().any(|point| point.attempts >= ENOUGH) {
            return None;
        }
        let most = below.into_iter().max_by(|a, b| a.offered_per_second.total_cmp(&b.offered_per_second))?;
        let minutes = ENOUGH as f64 / most.offered_per_second / 60.0;
        Some(format!(
            "No load with work of {} and below the capacity has 1,000 attempts, and so none has a p99.9: the \
             largest, of {:.2} a second, would need {minutes:.0} minutes for as many.",
            loads.work, most.offered_per_second,
        ))
    };
    configuration.loads.iter().filter_map(words).collect()
}

/// Answers the lab's objective: the latency with 200 contenders, and what limits it.
fn objective(configuration: &Configuration, points: &[&Point]) -> Option<String> {
    let point = points.iter().find(|point| point.contenders == OBJECTIVE)?;
    let (cycle, work) = (cycle_of(points)?, point.work);
    let (name, Point { p50_ms, p99_ms, p999_ms, offered_per_second, attempts, .. }) =
        (point.system.as_str(), point);
    let change_ms = (cycle - work.0.as_secs_f64()).max(0.0) * 1e3;
    let least = points.iter().min_by_key(|point| point.contenders)?;
    let ceiling = 1.0 / cycle;
    let limit = format!(
        "What limits it on {name} is that sections exclude each other: with work of {work} and \
         {change_ms:.1} ms from its end to the next grant, {ceiling:.3} a second fit, and the {offered_per_second:.3} that were \
         offered kept the lock busy for {:.0} % of the time. Requests are no limit: with {} contenders the \
         median is {:.1} ms",
        100.0 * (offered_per_second * cycle).min(1.0),
        least.contenders,
        least.p50_ms,
    );
    let latency = if point.is_full() {
        let patience = (work.0 * configuration.patience).as_secs_f64();
        format!("had no steady latency: {} of them gave up after {patience} s", point.abandoned)
    } else {
        let known = [(p50_ms, "p50", 2), (p99_ms, "p99", 100), (p999_ms, "p99.9", 1000)];
        let known = known.iter().filter(|(_, _, out_of)| attempts >= out_of);
        let known: Vec<_> = known.map(|(ms, name, _)| format!("{ms:.1} ms ({name})")).collect();
        let between = point.p99_between_ms.map_or_else(String::new, |(low, high)| {
            format!("; the p99 of all possible attempts is between {low:.1} and {high:.1} ms (95 %)")
        });
        format!("acquired in {}{between}", known.join(", "))
    };
    Some(format!(
        "On {name} with work of {work}, {OBJECTIVE} contenders with {attempts} attempts {latency}. {limit}."
    ))
}

/// Explains why a lock whose waiters poll serves more if more of them wait, if it does.
fn polling(points: &[&Point]) -> Option<String> {
    let full: Vec<_> = points.iter().filter(|point| point.polls() && point.is_full()).collect();
    let (few, many) = (full.first()?, full.last()?);
    (many.served_per_second > NOISE * few.served_per_second).then(|| {
        format!(
            "On {} waiters poll at random times. With {} contenders {:.1} sections a second were served, and \
             with {} {:.1}: the more of them poll, the sooner one asks after a release. Some gave up long \
             before the lock was full.",
            few.system.as_str(),
            few.contenders,
            few.served_per_second,
            many.contenders,
            many.served_per_second,
        )
    })
}
