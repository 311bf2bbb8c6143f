//! Experiment 4: the effect of contention on the latency of an acquire and on the throughput.
//!
//! The load is open: each contender wants the lock at random times, with a fixed rate, so their number is the
//! offered load. Below the capacity of the lock an acquire has a latency, which grows with the load; beyond
//! it there is none, since the queue grows as long as the load lasts: there the experiment reports how fast
//! it grows, and when the first attempt gives up. Latencies count from the time at which an attempt was due,
//! over all attempts (see [`crate::contend`]).
//!
//! The capacity is 1 / (work + time from a release to the next grant), since critical sections exclude each
//! other. So the lock is a queue with one server whose service takes a fixed time, with random arrivals
//! (M/D/1): the mean wait that this predicts is reported beside the measured one.
//!
//! Where a lock serves less under a larger load, or less in the course of one, the cause is looked for in the
//! times of the changes from one holder to the next, and in the number of waiters that were woken late.
//!
//! Sources: the lab text, sections 4, 5 and 10, experiment 4; the mean wait of M/D/1 by Pollaczek and
//! Khinchine, as in Kleinrock, "Queueing Systems", volume 1 (1975), section 5.6.

mod changes;
mod falls;
mod figures;
mod model;
mod point;
mod section;
mod tables;

pub(super) use self::point::GAVE_UP;

use history::Span;
use serde::{Deserialize, Serialize};

use self::point::Point;
use super::{Experiment, ExperimentError};
use crate::contend::Arrivals;
use crate::lab::fleet::Fleet;
use crate::lab::load::HotKey;
use crate::lab::parallel::in_parallel;
use crate::report::Section;
use crate::servers::Stage;
use crate::systems::System;

/// Experiment 4.
#[derive(Debug)]
pub struct Contention;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    systems: Vec<System>,
    ttl: Span,
    seed: u64,
    /// An attempt gives up when it has waited for so many times the work.
    patience: u32,
    loads: Vec<Loads>,
}

/// Loads with one duration of work.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Loads {
    work: Span,
    /// Attempts of each contender a second.
    rate: f64,
    contenders: Vec<u64>,
    lasts: Span,
    /// The systems, if not all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    systems: Vec<System>,
    /// True if all run at the same time: they are so light that they don't disturb each other.
    #[serde(default)]
    at_once: bool,
    /// Numbers of contenders whose load lasts longer, for more attempts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    longer: Vec<Longer>,
}

/// A load that lasts longer than the others with the same work.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Longer {
    contenders: u64,
    lasts: Span,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    points: Vec<Point>,
}

impl Experiment for Contention {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 4;
    const TITLE: &'static str = "Acquisition latency against contention";
    const QUESTION: &'static str = "How long does an acquire of a hot lock take as more contend for it, and \
         from which number on do more contenders only wait?";
    const COMMITTED: &'static str = include_str!("../../../experiments/4.toml");

    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let Configuration { systems, loads, .. } = configuration;
        let is_pointless = |loads: &Loads| loads.contenders.len() < 2 || loads.work.0.is_zero();
        if systems.is_empty() || loads.is_empty() || loads.iter().any(is_pointless) {
            return Err(ExperimentError::Pointless(
                "set systems, at least two numbers of contenders to compare, and work above zero".to_owned(),
            ));
        }
        let stage = Stage::new()?;
        let mut points = Vec::new();
        for loads in loads {
            let systems = loads.systems_of(systems);
            let all =
                systems.iter().flat_map(|system| loads.contenders.iter().map(|count| (*system, *count)));
            let all: Vec<_> = all.collect();
            if !loads.at_once {
                for &system in systems {
                    let fleets = [(system, Fleet::start(&stage, system)?)];
                    let own: Vec<_> = all.iter().filter(|(of, _)| *of == system).copied().collect();
                    points.extend(configuration.offer(loads, &own, &fleets, 1)?);
                }
                continue;
            }
            let start = |system: &System| Ok((*system, Fleet::start(&stage, *system)?));
            let fleets = systems.iter().map(start).collect::<Result<Vec<_>, ExperimentError>>()?;
            points.extend(configuration.offer(loads, &all, &fleets, all.len())?);
        }
        Ok(Findings { points })
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        section::section(configuration, findings)
    }
}

impl Configuration {
    /// Offers the loads of these systems and numbers of contenders, so many at a time.
    fn offer(
        &self,
        loads: &Loads,
        all: &[(System, u64)],
        fleets: &[(System, Fleet)],
        at_once: usize,
    ) -> Result<Vec<Point>, ExperimentError> {
        in_parallel(all, at_once, |(system, contenders)| {
            let Loads { work, rate, .. } = *loads;
            let load = HotKey {
                key: &format!("work-{work}-contenders-{contenders}"),
                contenders: *contenders,
                rate: rate * *contenders as f64,
                arrivals: Arrivals::Random { seed: self.seed },
                patience: Some(work.0 * self.patience),
                work,
                ttl: self.ttl,
                lasts: loads.lasts_with(*contenders),
                polled: false,
            };
            let (_, fleet) = fleets.iter().find(|(of, _)| of == system).ok_or_else(|| {
                ExperimentError::Pointless(format!("no servers of {} run", system.as_str()))
            })?;
            Ok(Point::of(*system, *contenders, &load, &load.offer(*system, fleet)?))
        })
    }
}

impl Loads {
    /// Returns its systems: those of the configuration, `all`, unless it names its own.
    fn systems_of<'a>(&'a self, all: &'a [System]) -> &'a [System] {
        if self.systems.is_empty() { all } else { &self.systems }
    }

    fn lasts_with(&self, contenders: u64) -> Span {
        let longer = self.longer.iter().find(|longer| longer.contenders == contenders);
        longer.map_or(self.lasts, |longer| longer.lasts)
    }
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
