//! Counts the probes of a run.

use std::collections::BTreeMap;
use std::panic::Location;

use dlock_runtime::{Probe, ProbeKind};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// How often a probe was evaluated, and what it showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// How often it was evaluated.
    pub evaluated: u64,
    /// How often its condition was true, its place was reached, or its number was reported.
    pub hit: u64,
    /// The last number of a graded probe in a run. A sum over runs has none.
    pub last: Option<u64>,
    /// The smallest number of a graded probe.
    pub least: Option<u64>,
    /// The line at which it is evaluated; 0 if that is unknown, since it never was.
    pub line: u32,
}

/// A probe that code in a process evaluates by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Own {
    /// The file and the line of its evaluation.
    pub(crate) place: (&'static str, u32),
    pub(crate) count: Count,
}

/// An `always` that was false for the first time in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) name: String,
    /// The problem: the probe's sentence and its place.
    pub(crate) problem: String,
    /// The true time, in nanoseconds.
    pub(crate) at: u64,
    /// The number of the process.
    pub(crate) process: usize,
}

/// A hit of a probe that is not an `always`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hit {
    /// The true time, in nanoseconds.
    pub(crate) at: u64,
    /// The hash of its name.
    pub(crate) probe: u64,
    /// Its number, if it is graded.
    pub(crate) graded: Option<u64>,
}

/// The counts of all probes that were evaluated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hits {
    /// The hits of one run, in the order of time. A sum over runs has none.
    pub(crate) log: Vec<Hit>,
    /// In the order of their first evaluation. Some sixty: a search by address is quick.
    pub(crate) declared: Vec<(&'static Probe, Count)>,
    pub(crate) own: BTreeMap<(String, ProbeKind), Own>,
    pub(crate) failed: Vec<Failed>,
}

impl Hits {
    /// Counts one evaluation of a declared probe at `line`. Returns whether an `always` failed for the first
    /// time.
    pub(crate) fn count(&mut self, probe: &'static Probe, line: u32, seen: u64) -> bool {
        let known = self.declared.iter().position(|(known, _)| std::ptr::eq(*known, probe));
        let index = known.unwrap_or_else(|| {
            self.declared.push((probe, Count { line, ..Count::default() }));
            self.declared.len() - 1
        });
        self.declared[index].1.see(probe.kind, seen)
    }

    /// Counts one evaluation of a probe that a process names. Returns as [`Hits::count`].
    pub(crate) fn count_own(
        &mut self,
        kind: ProbeKind,
        name: &str,
        place: &'static Location<'static>,
        seen: u64,
    ) -> bool {
        let count = Count { line: place.line(), ..Count::default() };
        let place = (place.file(), place.line());
        let own = self.own.entry((name.to_owned(), kind)).or_insert(Own { place, count });
        own.count.see(kind, seen)
    }

    /// Notes a hit of the probe called `name` at the true time `at`, if `seen` is one.
    pub(crate) fn note(&mut self, kind: ProbeKind, name: &str, seen: u64, at: u64) {
        let graded = (kind == ProbeKind::Closest).then_some(seen);
        let is_hit = if graded.is_some() { seen != u64::MAX } else { seen != 0 };
        if is_hit && kind != ProbeKind::Always {
            self.log.push(Hit { at, probe: xxh3_64(name.as_bytes()), graded });
        }
    }

    /// Returns the number of probes that were evaluated, and of those that were hit.
    pub(crate) fn met(&self) -> (usize, usize) {
        let own = self.own.values().map(|own| &own.count);
        let counts = self.declared.iter().map(|(_, count)| count).chain(own);
        counts.fold((0, 0), |(all, hit), count| (all + 1, hit + usize::from(count.hit > 0)))
    }

    /// Returns the hits, in the order of time.
    pub(crate) fn log(&self) -> &[Hit] {
        &self.log
    }

    /// Notes the first failure of an `always`.
    pub(crate) fn fail(&mut self, failed: Failed) {
        self.failed.push(failed);
    }

    /// Returns the probes that failed, in the order of time.
    pub(crate) fn failed(&self) -> &[Failed] {
        &self.failed
    }

    /// Adds the counts of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        for (probe, count) in &other.declared {
            match self.declared.iter_mut().find(|(known, _)| std::ptr::eq(*known, *probe)) {
                Some((_, sum)) => sum.add(count),
                None => self.declared.push((probe, Count { last: None, ..*count })),
            }
        }
        for (key, own) in &other.own {
            match self.own.get_mut(key) {
                Some(sum) => {
                    // The same one in whatever order the runs are added.
                    sum.place = sum.place.min(own.place);
                    sum.count.add(&own.count);
                }
                None => {
                    let count = Count { last: None, ..own.count };
                    self.own.insert(key.clone(), Own { count, ..*own });
                }
            }
        }
    }

    /// Returns the count of a declared probe.
    pub(crate) fn of(&self, probe: &Probe) -> Count {
        let known = self.declared.iter().find(|(known, _)| std::ptr::eq(*known, probe));
        known.map(|(_, count)| *count).unwrap_or_default()
    }

    /// Returns the probes that processes name, in the order of their names.
    pub(crate) fn own(&self) -> impl Iterator<Item = (&str, ProbeKind, &Own)> {
        self.own.iter().map(|((name, kind), own)| (name.as_str(), *kind, own))
    }
}

impl Count {
    /// Counts one evaluation. Returns whether an `always` failed for the first time.
    fn see(&mut self, kind: ProbeKind, seen: u64) -> bool {
        let is_graded = kind == ProbeKind::Closest;
        let none = if is_graded { u64::MAX } else { 0 };
        let (all_held, is_hit) = (self.hit == self.evaluated, seen != none);
        self.evaluated += 1;
        self.hit += u64::from(is_hit);
        if is_graded && is_hit {
            self.last = Some(seen);
            self.least = Some(self.least.map_or(seen, |least| least.min(seen)));
        }
        kind == ProbeKind::Always && !is_hit && all_held
    }

    fn add(&mut self, other: &Self) {
        self.evaluated += other.evaluated;
        self.hit += other.hit;
        self.last = None;
        self.least = self.least.into_iter().chain(other.least).min();
        self.line = self.line.min(other.line);
    }
}
