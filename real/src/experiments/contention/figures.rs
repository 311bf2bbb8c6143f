//! The figures of experiment 4.

use super::{Configuration, Findings, Point};
use crate::report::{Axis, Figure, Line, Scale};
use crate::systems::System;

/// The curves are those of the first duration of work, which has the most numbers of contenders.
pub(super) fn figures(configuration: &Configuration, findings: &Findings) -> Vec<Figure> {
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
