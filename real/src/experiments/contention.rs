//! Experiment 4: the effect of contention on the latency of an acquire and on the throughput.
//!
//! The load is open: each contender wants the lock at a fixed rate, so their number is the offered load. Up
//! to the lock's capacity, more contenders mean more critical sections; beyond it, only a longer queue, since
//! critical sections exclude each other: at most 1 / (work + time from a release to the next grant) fit into
//! a second. Latencies count from the time at which an attempt was due, over all attempts, unserved ones
//! included (see [`crate::contend`]).
//!
//! Source: the lab text, section 10, experiment 4.

use std::collections::BTreeMap;

use history::Span;
use serde::{Deserialize, Serialize};

use super::{Experiment, ExperimentError};
use crate::lab::fleet::Fleet;
use crate::lab::load::{HotKey, failures, millis};
use crate::report::{Axis, Figure, Line, Scale, Section, Table};
use crate::servers::Stage;
use crate::systems::System;

/// A system keeps up if it serves this share of the offered load.
const KEEPS_UP: f64 = 0.95;
/// A larger load raises the throughput if it does so by more than this factor, the noise of the machine.
const NOISE: f64 = 1.15;

/// Experiment 4.
#[derive(Debug)]
pub struct Contention;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    systems: Vec<System>,
    contenders: Vec<u64>,
    rate: f64,
    work: Span,
    ttl: Span,
    lasts: Span,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    points: Vec<Point>,
}

/// One system with one number of contenders.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Point {
    system: System,
    contenders: u64,
    offered_per_second: f64,
    served_per_second: f64,
    /// Over all attempts, in milliseconds.
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    /// Latency of the calls of release.
    release_p50_ms: f64,
    #[serde(default)]
    failed: u64,
    /// The reasons of failures, with their counts.
    #[serde(default)]
    failures: BTreeMap<String, u64>,
}

impl Experiment for Contention {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 4;
    const TITLE: &'static str = "Acquisition latency against contention";
    const QUESTION: &'static str = "How long does an acquire of a hot lock take as more contend for it, and \
         from which number on do more contenders only wait?";
    const COMMITTED: &'static str = include_str!("../../experiments/4.toml");

    /// Runs the loads one after the other, since they would disturb each other.
    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { systems, contenders, rate, work, ttl, lasts } = configuration;
        if contenders.len() < 2 || work.0.is_zero() {
            return Err(ExperimentError::Pointless(
                "set at least two numbers of contenders to compare, and work above zero".to_owned(),
            ));
        }
        let mut points = Vec::new();
        for &system in systems {
            let stage = Stage::new()?;
            let fleet = Fleet::start(&stage, system)?;
            for &contenders in contenders {
                let rate = rate * contenders as f64;
                let key = format!("contenders-{contenders}");
                let (work, ttl, lasts) = (*work, *ttl, *lasts);
                let load = HotKey { key: &key, contenders, rate, work, ttl, lasts, polled: false };
                let report = load.offer(system, &fleet)?;
                points.push(Point {
                    system,
                    contenders,
                    offered_per_second: report.offered as f64 / lasts.0.as_secs_f64(),
                    served_per_second: report.served_per_second,
                    p50_ms: millis(&report.acquire_all, 0.5),
                    p99_ms: millis(&report.acquire_all, 0.99),
                    p999_ms: millis(&report.acquire_all, 0.999),
                    release_p50_ms: millis(&report.release, 0.5),
                    failed: report.failed,
                    failures: report.failures,
                });
            }
        }
        Ok(Findings { points })
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        let mut section = Section {
            tables: vec![table(findings)],
            figures: vec![
                latency_figure(configuration, findings),
                throughput_figure(configuration, findings),
            ],
            ..Section::default()
        };
        let ceiling = 1.0 / configuration.work.0.as_secs_f64();
        section.expect(
            format!("no system served more than 1 / work, {ceiling:.0} critical sections a second"),
            // The last critical section may begin just before the end and outlast it.
            findings.points.iter().all(|point| {
                point.served_per_second
                    <= ceiling + 1.0 / configuration.lasts.0.as_secs_f64().max(f64::EPSILON)
            }),
        );
        let curves: Vec<_> = configuration.systems.iter().map(|&system| findings.of(system)).collect();
        section.expect(
            "beyond what a system can serve, more contenders bought no more throughput",
            !curves.is_empty() && curves.iter().all(|points| is_flat_when_full(points)),
        );
        section.expect(
            "and their waits were longer: the median wait grew with their number",
            !curves.is_empty() && curves.iter().all(|points| waits_grow_when_full(points)),
        );
        section.remarks.extend(curves.iter().filter_map(|points| remark(configuration, points)));
        section.remarks.extend(findings.points.iter().filter_map(|point| {
            let whose = format!("{} with {} contenders", point.system.as_str(), point.contenders);
            failures(&whose, &point.failures)
        }));
        section
    }
}

impl Findings {
    fn of(&self, system: System) -> Vec<&Point> {
        self.points.iter().filter(|point| point.system == system).collect()
    }
}

fn is_full(point: &Point) -> bool {
    point.served_per_second < KEEPS_UP * point.offered_per_second
}

/// Returns neighbouring points of which both are offered more than they serve.
fn full_pairs<'a>(points: &'a [&Point]) -> impl Iterator<Item = (&'a Point, &'a Point)> {
    points.windows(2).filter(|pair| is_full(pair[0])).map(|pair| (pair[0], pair[1]))
}

fn is_flat_when_full(points: &[&Point]) -> bool {
    full_pairs(points).all(|(few, many)| many.served_per_second <= NOISE * few.served_per_second)
}

fn waits_grow_when_full(points: &[&Point]) -> bool {
    full_pairs(points).all(|(few, many)| many.p50_ms > few.p50_ms)
}

/// Describes the number of contenders from which on more raise the throughput no more, and why.
fn remark(configuration: &Configuration, points: &[&Point]) -> Option<String> {
    let full = points.iter().find(|point| is_full(point))?;
    let (name, per_second) = (full.system.as_str(), full.served_per_second);
    // The time between two critical sections: the rest of a second, divided among them.
    let between_ms = (1e3 / per_second.max(f64::EPSILON) - configuration.work.0.as_secs_f64() * 1e3).max(0.0);
    Some(format!(
        "On {name} {} contenders were the first that got less than they asked for, {per_second:.1} a second \
         of {:.1}. Sections exclude each other, so their rate is limited by the work of {} and by the {between_ms:.1} ms \
         between a release and the next grant: the release itself takes {:.1} ms, and the rest passes until \
         the next waiter has its grant.",
        full.contenders, full.offered_per_second, configuration.work, full.release_p50_ms,
    ))
}

fn table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "Over all attempts, from the time at which each was due; one that failed or was not served counts \
         with the time it waited.",
        &["system", "contenders", "offered/s", "served/s", "failed", "p50 ms", "p99 ms", "p99.9 ms"],
    );
    for point in &findings.points {
        let one = |value: f64| format!("{value:.1}");
        table.row([
            point.system.as_str().to_owned(),
            point.contenders.to_string(),
            one(point.offered_per_second),
            one(point.served_per_second),
            point.failed.to_string(),
            one(point.p50_ms),
            one(point.p99_ms),
            one(point.p999_ms),
        ]);
    }
    table
}

fn latency_figure(configuration: &Configuration, findings: &Findings) -> Figure {
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Log };
    let lines = configuration.systems.iter().flat_map(|&system| {
        ["p50", "p99"].map(|quantile| {
            let of = |point: &Point| if quantile == "p50" { point.p50_ms } else { point.p99_ms };
            let points = findings.of(system).into_iter();
            let points = points.map(|point| (point.contenders as f64, of(point))).collect();
            Line { name: format!("{} {quantile}", system.as_str()), points }
        })
    });
    Figure {
        name: "experiment-4-latency".to_owned(),
        caption: "Latency of an acquire over all attempts, by the number of contenders.".to_owned(),
        x: axis("contenders"),
        y: axis("acquire, in ms"),
        lines: lines.collect(),
    }
}

fn throughput_figure(configuration: &Configuration, findings: &Findings) -> Figure {
    let line = |&system: &System| {
        let points = findings.of(system).into_iter();
        let points = points.map(|point| (point.contenders as f64, point.served_per_second)).collect();
        Line { name: system.as_str().to_owned(), points }
    };
    Figure {
        name: "experiment-4-throughput".to_owned(),
        caption: "Critical sections a second, by the number of contenders: beyond the bend of a curve, more \
             contenders only wait longer."
            .to_owned(),
        x: Axis { label: "contenders".to_owned(), scale: Scale::Log },
        y: Axis { label: "served, per second".to_owned(), scale: Scale::Linear },
        lines: configuration.systems.iter().map(line).collect(),
    }
}
