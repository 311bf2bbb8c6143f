//! The report of experiment 4.

use history::Span;

use super::{Configuration, Findings, Point};
use crate::lab::load::failures;
use crate::report::{Axis, Figure, Line, Scale, Section, Table};
use crate::systems::System;

/// A larger load raises the throughput if it does so by more than this factor, the noise of the machine.
const NOISE: f64 = 1.15;
/// The throughput has fallen if it was higher by more than this factor.
const FALL: f64 = 1.05;
/// The factor by which the mean wait may differ from that of the model.
const MODEL: f64 = 2.0;
/// A load is compared with the model if the lock is busy for a share of the time between these: below, there
/// is hardly a wait; above, a mean over one run says little.
const COMPARED: (f64, f64) = (0.3, 0.85);
/// A difference of this many milliseconds is none: a timer counts whole milliseconds.
const GRAIN_MS: f64 = 3.0;
/// A mean of fewer attempts says little.
const FEW: u64 = 100;
/// Why a short wait on etcd may take long.
///
/// Source: `syncWatchersLoop` of etcd's `mvcc/watchable_store.go`.
const ETCD_LATE: &str = " A waiter watches the claim ahead of it, from the revision that it has read. If \
                         anything was written meanwhile, etcd sends such a watch its first events only every \
                         100 ms.";
/// The contenders of the lab's objective for a hot key.
const OBJECTIVE: u64 = 200;

pub(super) fn section(configuration: &Configuration, findings: &Findings) -> Section {
    let mut section = Section {
        tables: vec![below_table(findings), beyond_table(configuration, findings)],
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
            "and with work of {}, where the lock was busy for 30 to 85 % of the time, the mean latency was that \
             of a queue with one server and random arrivals, within a factor of two and 3 ms",
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
    section.remarks.extend(findings.points.iter().filter_map(|point| {
        let (system, contenders) = (point.system.as_str(), point.contenders);
        failures(
            &format!("{system} with {contenders} contenders and work of {}", point.work),
            &point.failures,
        )
    }));
    section
}

impl Findings {
    /// Returns the points of each system and duration of work.
    fn curves<'a>(&'a self, configuration: &'a Configuration) -> impl Iterator<Item = Vec<&'a Point>> {
        let works = configuration.loads.iter().map(|loads| loads.work);
        works.flat_map(move |work| configuration.systems.iter().map(move |system| self.of(*system, work)))
    }

    fn of(&self, system: System, work: Span) -> Vec<&Point> {
        self.points.iter().filter(|point| point.system == system && point.work == work).collect()
    }
}

fn is_flat_when_full(points: &[&Point]) -> bool {
    let full = points.windows(2).filter(|pair| pair[0].is_full());
    full.into_iter().all(|pair| pair[1].served_per_second <= NOISE * pair[0].served_per_second)
}

fn polls(points: &[&Point]) -> bool {
    points.iter().any(|point| point.polls())
}

/// Returns the time of a section and of the change to the next, in seconds: the shortest of the loads beyond
/// the capacity.
fn cycle_of(points: &[&Point]) -> Option<f64> {
    points.iter().filter_map(|point| point.cycle()).min_by(f64::total_cmp)
}

/// A load whose mean latency is compared with that of the model, in milliseconds.
struct Compared<'a> {
    point: &'a Point,
    model_ms: f64,
}

impl Compared<'_> {
    fn is_as_modelled(&self) -> bool {
        let waited_ms = self.point.mean_ms;
        waited_ms <= self.model_ms * MODEL + GRAIN_MS && waited_ms >= self.model_ms / MODEL - GRAIN_MS
    }
}

/// Returns the loads that are compared with the model: those of enough attempts for a mean.
fn compared<'a>(points: &[&'a Point]) -> Vec<Compared<'a>> {
    let cycle = cycle_of(points);
    let compared = |point: &&'a Point| {
        let model_ms = modelled_ms(point, cycle).filter(|_| point.attempts >= FEW)?;
        Some(Compared { point, model_ms })
    };
    points.iter().filter_map(compared).collect()
}

/// Returns the mean latency that the model predicts, for a load that keeps the lock busy enough.
fn modelled_ms(point: &Point, cycle: Option<f64>) -> Option<f64> {
    let cycle = cycle.filter(|_| !point.is_full())?;
    let busy = point.offered_per_second * cycle;
    point.predicted_wait_ms(cycle).filter(|_| busy > COMPARED.0 && busy < COMPARED.1)
}

/// Says which load differs most from the model, if any does.
fn deviation(points: &[&Point]) -> Option<String> {
    let mut unlike = compared(points);
    unlike.retain(|compared| !compared.is_as_modelled());
    let ratio = |compared: &Compared<'_>| compared.point.mean_ms / compared.model_ms;
    let most = unlike.into_iter().max_by(|one, next| ratio(one).total_cmp(&ratio(next)))?;
    let Point { system, work, contenders, mean_ms, p99_ms, .. } = most.point;
    let why = if *system == System::Etcd { ETCD_LATE } else { "" };
    Some(format!(
        "On {} with work of {work} and {contenders} contenders the mean latency was {mean_ms:.1} ms (p99 \
         {p99_ms:.1} ms), and the model predicts {:.1} ms.{why}",
        system.as_str(),
        most.model_ms,
    ))
}

/// Writes the latency that one attempt in `out_of` exceeds: a run with fewer attempts has no such one.
fn quantile(ms: f64, point: &Point, out_of: u64) -> String {
    if point.attempts < out_of { "–".to_owned() } else { format!("{ms:.1}") }
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
        "What limits it is that sections exclude each other: with work of {work} and {change_ms:.1} ms from \
         its end to the next grant, {ceiling:.3} a second fit, and the {offered_per_second:.3} that were \
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
        format!("acquired in {}", known.join(", "))
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

/// Explains why the largest load served less than a smaller one, if it did.
fn fall(points: &[&Point]) -> Option<String> {
    let last = *points.last()?;
    let best = points.iter().max_by(|a, b| a.served_per_second.total_cmp(&b.served_per_second))?;
    if last.served_per_second * FALL >= best.served_per_second {
        return None;
    }
    Some(format!(
        "On {} with work of {}, {} contenders were served {:.1} a second, and {} only {:.1}: {:.1}, \
         {:.1} and {:.1} in the three thirds of the load, in which {} attempts failed. A release took \
         {:.1} ms against {:.1} ms.",
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
    ))
}

fn below_table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "Loads of which at most 5 % of the attempts gave up: quantiles over all attempts, the mean over those \
         that were served, from the time at which each was due. M/D/1 is the mean that the model predicts, for \
         loads that keep the lock busy for 30 to 85 % of the time. No p99 is that of fewer than 100 attempts, \
         and no p99.9 that of fewer than 1,000.",
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

fn beyond_table(configuration: &Configuration, findings: &Findings) -> Table {
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

/// The curves are those of the first duration of work, which has the most numbers of contenders.
fn figures(configuration: &Configuration, findings: &Findings) -> Vec<Figure> {
    let Some(loads) = configuration.loads.first() else { return Vec::new() };
    let work = loads.work;
    let axis = |label: &str, scale| Axis { label: label.to_owned(), scale };
    let line = |system: System, name: &str, of: fn(&Point) -> f64| {
        let below = findings.of(system, work).into_iter().filter(|point| !point.is_full());
        let points = below.map(|point| (point.offered_per_second, of(point))).collect();
        Line { name: format!("{} {name}", system.as_str()), points }
    };
    let systems = &configuration.systems;
    let latency = systems.iter().flat_map(|&system| {
        [line(system, "p50", |point| point.p50_ms), line(system, "p99", |point| point.p99_ms)]
    });
    let tails =
        systems.iter().flat_map(|&system| configuration.loads.iter().map(move |loads| (system, loads.work)));
    let tail = tails.filter_map(|(system, work)| {
        let below = findings.of(system, work).into_iter().filter(|point| !point.is_full());
        let many = below.filter(|point| point.attempts >= 1000);
        let points: Vec<_> = many.map(|point| (point.offered_per_second, point.p999_ms)).collect();
        (!points.is_empty()).then(|| Line { name: format!("{}, work of {work}", system.as_str()), points })
    });
    let throughput = systems.iter().map(|&system| {
        let points = findings.of(system, work).into_iter();
        let points = points.map(|point| (point.contenders as f64, point.served_per_second)).collect();
        Line { name: system.as_str().to_owned(), points }
    });
    let of_latency = |name: &str, caption: String, lines: Vec<Line>| Figure {
        name: name.to_owned(),
        caption,
        x: axis("offered, per second", Scale::Linear),
        y: axis("acquire, in ms", Scale::Log),
        lines,
    };
    vec![
        of_latency(
            "experiment-4-latency",
            format!("Latency of an acquire, work of {work}, by the offered load, as far as it was served."),
            latency.collect(),
        ),
        of_latency(
            "experiment-4-tail",
            "Loads of at least 1,000 attempts: the latency that one attempt in a thousand exceeds (p99.9)."
                .to_owned(),
            tail.collect(),
        ),
        Figure {
            name: "experiment-4-throughput".to_owned(),
            caption:
                "Critical sections a second, by the number of contenders: beyond the bend of a curve, more \
                 contenders only wait longer."
                    .to_owned(),
            x: axis("contenders", Scale::Log),
            y: axis("served, per second", Scale::Linear),
            lines: throughput.collect(),
        },
    ]
}
