//! Experiment 11: conditional updates against a lock, as contention grows.
//!
//! A conditional update waits for nobody, and its work is lost if another writer was faster. A lock makes all
//! wait, and no work is lost. Who is alone pays less without the lock; the experiment looks for the number of
//! contenders from which on the lock serves more, or serves the slowest sooner, and counts the work that the
//! conditional updates threw away until then.
//!
//! Sources: "distributed-coordination-part-018", section 22, "Database Optimistic Lock Alternative"; the lab
//! text, section 10.

use history::Span;
use serde::{Deserialize, Serialize};

use super::{Experiment, ExperimentError};
use crate::contend::{Arm, Arrivals};
use crate::lab::load::{HotKey, millis};
use crate::place::Place;
use crate::report::{Axis, Figure, Line, Scale, Section, Table};
use crate::servers::{Persistence, Postgres, Redis, Stage};
use crate::systems::System;

/// Experiment 11.
#[derive(Debug)]
pub struct Crossing;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    works: Vec<Span>,
    contenders: Vec<u64>,
    ttl: Span,
    lasts: Span,
    seed: u64,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    points: Vec<Point>,
}

/// One way with one number of contenders.
#[derive(Debug, Serialize, Deserialize)]
struct Point {
    way: Way,
    work: Span,
    contenders: u64,
    served_per_second: f64,
    /// From the time at which an update was due to its success, over those that succeeded.
    p50_ms: f64,
    p99_ms: f64,
    /// Work that was done for nothing, for each success.
    lost_work: f64,
}

/// The two ways to change a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
enum Way {
    /// An update of the version that was read.
    Conditional,
    /// A lock on Redis.
    Lock,
}

impl Experiment for Crossing {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 11;
    const TITLE: &'static str = "Conditional updates against a lock";
    const QUESTION: &'static str = "From which contention on is a lock better than a conditional update that \
         is tried again?";
    const COMMITTED: &'static str = include_str!("../../experiments/11.toml");

    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { works, contenders, .. } = configuration;
        if works.is_empty() || works.iter().any(|work| work.0.is_zero()) || contenders.len() < 2 {
            return Err(ExperimentError::Pointless(
                "set work above zero, and at least two numbers of contenders to compare".to_owned(),
            ));
        }
        let stage = Stage::new()?;
        let postgres = Postgres::start(&stage)?;
        let redis = Redis::start(&stage, "redis", Persistence::None)?;
        let places = [
            (Way::Conditional, Place::new(System::Redis, vec![postgres.url()])),
            (Way::Lock, Place::new(System::Redis, vec![redis.address()])),
        ];
        let mut points = Vec::new();
        for &work in works {
            for &contenders in contenders {
                for (way, place) in &places {
                    points.push(configuration.offer(*way, place, work, contenders)?);
                }
            }
        }
        Ok(Findings { points })
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        let mut section = Section {
            tables: configuration.works.iter().map(|work| table(configuration, findings, *work)).collect(),
            figures: vec![figure(configuration, findings)],
            ..Section::default()
        };
        let fewest = configuration.contenders.iter().min().copied().unwrap_or_default();
        let most = configuration.contenders.iter().max().copied().unwrap_or_default();
        let both = |work, contenders| {
            findings.of(Way::Conditional, work, contenders).zip(findings.of(Way::Lock, work, contenders))
        };
        let all = |holds: &dyn Fn(Span) -> bool| configuration.works.iter().all(|work| holds(*work));
        section.expect(
            "every number of contenders was served in both ways",
            all(&|work| {
                configuration.contenders.iter().all(|&contenders| {
                    both(work, contenders).is_some_and(|(conditional, lock)| {
                        conditional.served_per_second > 0.0 && lock.served_per_second > 0.0
                    })
                })
            }),
        );
        section.expect(
            format!("with {most} contenders conditional updates threw away more work than with {fewest}"),
            all(&|work| {
                let lost = |count| both(work, count).map(|(conditional, _)| conditional.lost_work);
                lost(most).zip(lost(fewest)).is_some_and(|(most, fewest)| most > fewest)
            }),
        );
        for &work in &configuration.works {
            section.remarks.push(crossing(configuration, findings, work));
        }
        section
    }
}

impl Configuration {
    fn offer(&self, way: Way, place: &Place, work: Span, contenders: u64) -> Result<Point, ExperimentError> {
        let load = HotKey {
            key: &format!("crossing-{work}-{contenders}"),
            contenders,
            rate: contenders as f64 / work.0.as_secs_f64(),
            arrivals: Arrivals::Random { seed: self.seed },
            patience: None,
            work,
            ttl: self.ttl,
            lasts: self.lasts,
            polled: false,
        };
        let arm = if way == Way::Lock { Arm::Lock } else { Arm::Version };
        let report = load.offer_by(arm, place.clone())?;
        Ok(Point {
            way,
            work,
            contenders,
            served_per_second: report.served_per_second,
            p50_ms: millis(&report.acquire_from_call, 0.5),
            p99_ms: millis(&report.acquire_from_call, 0.99),
            lost_work: report.conflicts as f64 / report.served.max(1) as f64,
        })
    }
}

impl Findings {
    fn of(&self, way: Way, work: Span, contenders: u64) -> Option<&Point> {
        self.points.iter().find(|point| (point.way, point.work, point.contenders) == (way, work, contenders))
    }
}

/// Says from which number of contenders on the lock serves more, and serves the slowest sooner.
fn crossing(configuration: &Configuration, findings: &Findings, work: Span) -> String {
    let first = |is_better: &dyn Fn(&Point, &Point) -> bool| {
        configuration.contenders.iter().copied().find(|&contenders| {
            let conditional = findings.of(Way::Conditional, work, contenders);
            conditional
                .zip(findings.of(Way::Lock, work, contenders))
                .is_some_and(|(conditional, lock)| is_better(lock, conditional))
        })
    };
    let from = |contenders: Option<u64>| match contenders {
        Some(contenders) => format!("from {contenders} contenders on"),
        None => "with no number of contenders".to_owned(),
    };
    let more = first(&|lock, conditional| lock.served_per_second > conditional.served_per_second);
    let sooner = first(&|lock, conditional| lock.p99_ms < conditional.p99_ms);
    let lost = configuration.contenders.iter().max().and_then(|most| {
        let point = findings.of(Way::Conditional, work, *most)?;
        Some(format!(
            " With {most}, {:.1} of {:.1} tries were in vain.",
            point.lost_work,
            point.lost_work + 1.0
        ))
    });
    format!(
        "With {work} of work the lock serves more {}, and its slowest hundredth sooner {}.{}",
        from(more),
        from(sooner),
        lost.unwrap_or_default()
    )
}

fn table(configuration: &Configuration, findings: &Findings, work: Span) -> Table {
    let caption = format!(
        "Updates of one row that need {work} of work: how many succeeded a second, from the first try to the \
         success (p50 and p99, in ms), and work done in vain for each success. The sections under the lock \
         only work and write nothing: this is the lock at its best."
    );
    let mut table =
        Table::new(caption, &["contenders", "cond./s", "p50", "p99", "in vain", "lock/s", "p50", "p99"]);
    for &contenders in &configuration.contenders {
        let point = |way| findings.of(way, work, contenders);
        let Some((conditional, lock)) = point(Way::Conditional).zip(point(Way::Lock)) else { continue };
        table.row([
            contenders.to_string(),
            format!("{:.1}", conditional.served_per_second),
            format!("{:.1}", conditional.p50_ms),
            format!("{:.1}", conditional.p99_ms),
            format!("{:.1}", conditional.lost_work),
            format!("{:.1}", lock.served_per_second),
            format!("{:.1}", lock.p50_ms),
            format!("{:.1}", lock.p99_ms),
        ]);
    }
    table
}

fn figure(configuration: &Configuration, findings: &Findings) -> Figure {
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Log };
    let line = |way: Way, work: Span| {
        let name: &str = way.into();
        let point = |&contenders: &u64| {
            Some((contenders as f64, findings.of(way, work, contenders)?.served_per_second))
        };
        Line {
            name: format!("{name}, {work}"),
            points: configuration.contenders.iter().filter_map(point).collect(),
        }
    };
    Figure {
        name: "experiment-11-crossing".to_owned(),
        caption: "Updates a second by contenders, for each way and duration of work.".to_owned(),
        x: axis("contenders"),
        y: axis("updates a second"),
        lines: configuration
            .works
            .iter()
            .flat_map(|&work| [Way::Conditional, Way::Lock].map(|way| line(way, work)))
            .collect(),
    }
}
