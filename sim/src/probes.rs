//! The probes of the program, and what runs have shown of them: whether a search goes where it should.
//!
//! `dlock`, its clients, `resource` and the simulated servers declare probes; code in a
//! [process](crate::Process) names its own. A run counts them in its report, a search sums them. An `always`
//! that fails is a finding of its run.

use std::fmt;

use dlock_runtime::Probe;
pub use dlock_runtime::ProbeKind;

use crate::servers;
pub use crate::world::probes::Count;
use crate::world::probes::{Failed, Hit, Hits};

/// The probes that a random search may miss, each with the schedule in `seeds/` that reaches it.
const KEPT: [(&str, &str); 8] = [
    ("watchdog_overslept", "renewal-beside-work"),
    ("renewed_after_loss", "renewal-beside-work"),
    ("release_waits_for_renewal", "renewal-beside-work"),
    ("key_gone_lease_alive", "etcd-queue-deleted"),
    ("watch_ended_without_leader", "etcd-watch-without-leader"),
    ("write_without_token_refused", "cas-beside-lock"),
    ("update_gave_up", "cas-gives-up"),
    ("idle_connection_closed", "idle-connection"),
];

/// The results of the probes, in one run or in many.
#[derive(Clone, Debug, Default)]
pub struct Probes(Hits);

/// A probe and its results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen<'a> {
    /// Its name.
    pub name: &'a str,
    /// The expectation of it.
    pub kind: ProbeKind,
    /// The situation, in one sentence; empty for a probe of a process.
    pub about: &'static str,
    /// The file in which it is evaluated.
    pub file: &'static str,
    /// The line at which it is evaluated; if it never was, the line at which its file declares its probes.
    pub line: u32,
    /// The schedule in `seeds/` that reaches it, if a random search may miss it.
    pub kept: Option<&'static str>,
    /// Its counts.
    pub count: Count,
}

/// Returns all probes that the program declares, crate by crate and file by file, hit or not.
pub fn declared() -> impl Iterator<Item = &'static Probe> {
    let servers = servers::PROBES.concat().concat();
    [
        dlock::probes(),
        #[cfg(feature = "zookeeper")]
        dlock_zookeeper::probes(),
        resource::probes(),
        servers,
    ]
    .into_iter()
    .flatten()
}

impl Probes {
    pub(crate) fn new(hits: Hits) -> Self {
        Self(hits)
    }

    pub(crate) fn hits(&self) -> &Hits {
        &self.0
    }

    /// Returns the probes that failed in the run, in the order of time.
    pub(crate) fn failed(&self) -> &[Failed] {
        self.0.failed()
    }

    /// Returns the number of probes that were evaluated, and the number of those that were hit.
    pub(crate) fn met(&self) -> (usize, usize) {
        self.0.met()
    }

    /// Returns the hits of the run, in the order of time.
    pub(crate) fn log(&self) -> impl Iterator<Item = &Hit> {
        self.0.log().iter()
    }

    /// Adds the results of another run.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0);
    }

    /// Returns all probes: first those that the program declares, evaluated or not, then those of processes.
    pub fn iter(&self) -> impl Iterator<Item = Seen<'_>> {
        let Self(hits) = self;
        let declared = declared().map(move |probe| Seen::of(probe, hits.of(probe)));
        let own = hits.own().map(|(name, kind, own)| Seen {
            name,
            kind,
            about: "",
            file: own.place.0,
            line: own.place.1,
            kept: None,
            count: own.count,
        });
        declared.chain(own)
    }

    /// Returns the counts of the probe called `name`; zero if it was never evaluated.
    pub fn of(&self, name: &str) -> Count {
        self.iter().find(|seen| seen.name == name).map(|seen| seen.count).unwrap_or_default()
    }

    /// Returns the probes that a search should have met and did not: a `sometimes`, `reached` or `closest`
    /// without a hit, an `always` that was never evaluated. Leaves out those that a kept schedule reaches.
    pub fn unmet(&self) -> Vec<Seen<'_>> {
        self.iter().filter(|seen| !seen.is_met() && seen.kept.is_none()).collect()
    }
}

impl Seen<'_> {
    fn of(probe: &'static Probe, count: Count) -> Seen<'static> {
        Seen {
            name: probe.name,
            kind: probe.kind,
            about: probe.about.trim(),
            file: probe.file,
            line: if count.evaluated > 0 { count.line } else { probe.line },
            kept: KEPT.iter().find(|(name, _)| *name == probe.name).map(|(_, schedule)| *schedule),
            count,
        }
    }

    /// Returns true if a search has met it: an `always` was evaluated, any other was hit.
    pub fn is_met(&self) -> bool {
        if self.kind == ProbeKind::Always { self.count.evaluated > 0 } else { self.count.hit > 0 }
    }

    /// Returns true if it is an `always` that was false.
    pub fn is_violated(&self) -> bool {
        self.kind == ProbeKind::Always && self.count.hit < self.count.evaluated
    }
}

impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, kind, about, file, line, kept, .. } = self;
        write!(f, "{kind} {name} ({file}:{line})")?;
        if !about.is_empty() {
            write!(f, ": {about}")?;
        }
        kept.map_or(Ok(()), |kept| write!(f, " seeds/{kept}.toml reaches it."))
    }
}
