//! Experiment 11: conditional updates against a lock, as contention grows.
//!
//! A conditional update waits for nobody, and its work is lost if another writer was faster. A lock makes all
//! wait, and no work is lost. Who is alone pays less without the lock; the experiment looks for the number of
//! contenders from which on the lock serves more, or serves the slowest sooner. Work that waits for others
//! costs nothing while it is done in vain; work that computes takes the processor from the one that will win.
//!
//! Sources: "distributed-coordination-part-018", section 22, "Database Optimistic Lock Alternative"; the lab
//! text, section 10.

mod point;
mod section;
mod updates;

use std::fmt;

use history::Span;
use serde::{Deserialize, Serialize};

use self::point::Point;
use self::updates::{Load, offer};
use super::{Experiment, ExperimentError};
use crate::lab::Machine;
use crate::place::Place;
use crate::report::Section;
use crate::servers::{Persistence, Postgres, Redis, Stage};
use crate::systems::System;

/// Experiment 11.
#[derive(Debug)]
pub struct Crossing;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    contenders: Vec<u64>,
    /// Further numbers of contenders, for work that waits: it takes no processor.
    waiting_contenders: Vec<u64>,
    ttl: Span,
    lasts: Span,
    /// Runs of each point.
    runs: u32,
    works: Vec<Work>,
}

/// The work between the read of a row and its update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Work {
    takes: Span,
    /// True if it takes this time of a processor; false if it waits for so long, as for another service.
    computes: bool,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    /// The processors of the machine.
    cores: usize,
    points: Vec<Point>,
}

/// The two ways to change a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
enum Way {
    /// An update of the version that was read, tried again until it succeeds.
    Conditional,
    /// The same under a lock on Redis.
    Lock,
}

impl Experiment for Crossing {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 11;
    const TITLE: &'static str = "Conditional updates against a lock";
    const QUESTION: &'static str = "From which contention on is a lock better than a conditional update that \
         is tried again?";
    const COMMITTED: &'static str = include_str!("../../../experiments/11.toml");

    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { works, contenders, runs, .. } = configuration;
        if works.is_empty() || works.iter().any(|work| work.takes.0.is_zero()) || contenders.len() < 2 {
            return Err(ExperimentError::Pointless(
                "set work above zero, and at least two numbers of contenders to compare".to_owned(),
            ));
        }
        if *runs == 0 {
            return Err(ExperimentError::Pointless("set runs: at least one".to_owned()));
        }
        let stage = Stage::new()?;
        let postgres = Postgres::start(&stage)?;
        let redis = Redis::start(&stage, "redis", Persistence::None)?;
        let redis = Place::new(System::Redis, vec![redis.address()]);
        let mut points = Vec::new();
        for &work in works {
            for contenders in configuration.counts(work) {
                for way in [Way::Conditional, Way::Lock] {
                    let measure = |run| {
                        let load = Load { way, work, contenders, run };
                        let updates = offer(configuration, load, (&postgres.url(), &redis));
                        updates.map_err(|error| {
                            ExperimentError::Failed(format!("{contenders} contenders, {work}: {error}"))
                        })
                    };
                    let runs = (0..*runs).map(measure).collect::<Result<Vec<_>, _>>()?;
                    points.push(Point::of((way, work, contenders), &runs, configuration.lasts));
                }
            }
        }
        Ok(Findings { cores: Machine::this().cores, points })
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        section::section(configuration, findings)
    }
}

impl Configuration {
    /// Returns the numbers of contenders for `work`, the lowest first.
    fn counts(&self, work: Work) -> Vec<u64> {
        let mut counts = self.contenders.clone();
        if !work.computes {
            counts.extend(&self.waiting_contenders);
        }
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    fn fewest(&self) -> u64 {
        self.contenders.iter().min().copied().unwrap_or_default()
    }
}

impl Findings {
    fn of(&self, way: Way, work: Work, contenders: u64) -> Option<&Point> {
        self.points.iter().find(|point| (point.way, point.work, point.contenders) == (way, work, contenders))
    }

    /// Returns the conditional updates and those under a lock.
    fn both(&self, work: Work, contenders: u64) -> Option<(&Point, &Point)> {
        self.of(Way::Conditional, work, contenders).zip(self.of(Way::Lock, work, contenders))
    }
}

impl Work {
    /// Returns a name without spaces.
    fn name(self) -> String {
        format!("{}-{}", if self.computes { "computes" } else { "waits" }, self.takes)
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.takes, if self.computes { "computing" } else { "waiting" })
    }
}
