//! The picture of a run as data: lanes, events, bars and arrows. It is made from the history alone; a page, a
//! drawing and the terminal show the same picture.

mod arrows;
mod bars;
mod builder;
mod cast;
mod clip;
mod faults;
mod label;
mod lanes;
mod leases;
mod links;
mod state;
mod verdicts;

pub use label::Shape;
pub use state::Change;

use history::{Fate, Nanos, VerdictKind};

use crate::run::{Role, Run};

/// The most events that are drawn.
pub const EVENTS_MAX: usize = 10_000;

/// A run, ready to be drawn.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The title, which distinguishes it from other runs.
    pub title: String,
    /// The purpose of the run; may be empty.
    pub about: String,
    /// The lanes, in a fixed order: workers, faults of links, lock servers, the resource.
    pub lanes: Vec<Lane>,
    /// The events that are drawn, in the order of the history.
    pub marks: Vec<Mark>,
    /// Bars: states that last.
    pub spans: Vec<Span>,
    /// Messages.
    pub arrows: Vec<Arrow>,
    /// Requests and their answers, for a history without messages: pairs of indices into `marks`.
    pub links: Vec<(usize, usize)>,
    /// The violations that the audit found, the most important first.
    pub violations: Vec<Violation>,
    /// The names of locks and resources, in the order of their first events.
    pub keys: Vec<String>,
    /// The number of events in the history. Those beyond [`EVENTS_MAX`] are not drawn.
    pub events_total: usize,
}

/// A column of the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The name of the process.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// The number of its colour, for a worker.
    pub hue: Option<usize>,
}

/// One event.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Its number in the history, from 0.
    pub number: usize,
    /// Its lane, as an index.
    pub lane: usize,
    /// Its true time.
    pub at: Nanos,
    /// The event in words, as in the text trace.
    pub text: String,
    /// The same in a few words, for the drawing.
    pub label: String,
    /// Its symbol.
    pub shape: Shape,
    /// Its lock or resource, as an index into the picture's keys.
    pub key: Option<usize>,
    /// The number of the fault, if it is the start or the end of one.
    pub fault: Option<u64>,
    /// Its changes of the state of the world.
    pub changes: Vec<Change>,
}

/// A state that lasts, drawn as a bar in a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its lane, as an index.
    pub lane: usize,
    /// The kind of state.
    pub kind: SpanKind,
    /// Its start.
    pub from: Edge,
    /// Its end.
    pub to: Edge,
    /// The number of the worker's colour, if a worker owns it.
    pub hue: Option<usize>,
    /// Its description.
    pub label: String,
    /// Its lock, as an index into the picture's keys.
    pub key: Option<usize>,
    /// Its place beside overlapping bars of its kind in the lane.
    pub slot: usize,
}

/// One end of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The true time.
    pub at: Nanos,
    /// The event of this end, as an index into the picture's marks; `None` if time alone ends the bar, or if
    /// it lasts to the end of the run.
    pub mark: Option<usize>,
}

/// The kinds of bars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpanKind {
    /// A lock server stores a key for its owner.
    Stored,
    /// The same lease, in the lane of its owner: stored by the server, or by a majority.
    Lease,
    /// A holder trusts its lease.
    Belief,
    /// The validity has ended, and the lease's TTL has not: the margin for drift and latency.
    Margin,
    /// A worker is in its critical section.
    Section,
    /// A worker waits for the lock.
    Wait,
    /// The process is paused.
    Pause,
    /// The process is dead.
    Down,
    /// The clocks of the process are wrong.
    Clock,
    /// A fault of links is in force.
    Link,
}

/// A message, drawn as an arrow between two lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The sender's lane.
    pub from: usize,
    /// The receiver's lane.
    pub to: usize,
    /// The true time of its first byte.
    pub sent: Nanos,
    /// Its fate.
    pub fate: Fate,
    /// True if it answers another message.
    pub is_reply: bool,
    /// Its content in words.
    pub words: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A violation that the audit found.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The kind of the verdict.
    pub kind: VerdictKind,
    /// True if the schedule itself explains it.
    pub is_excused: bool,
    /// One sentence that says how it came about.
    pub sentence: String,
    /// The true time.
    pub at: Nanos,
    /// The event at which the rule was broken, as an index into the picture's marks.
    pub mark: Option<usize>,
    /// The events that led there, as indices into the picture's marks.
    pub because: Vec<usize>,
}

/// A message that takes longer than this is late.
const LATE_NANOS: u64 = 150_000_000;

impl Arrow {
    /// Returns true if the message arrived late: a cut link held it, or a link was slow.
    pub fn is_late(&self) -> bool {
        match self.fate {
            Fate::Arrived { at, held } => held || at.0.saturating_sub(self.sent.0) > LATE_NANOS,
            Fate::Held | Fate::Lost { .. } => false,
        }
    }

    /// Returns its content in words, and its fate unless it arrived at once.
    pub fn told(&self) -> String {
        let words = &self.words;
        match self.fate {
            Fate::Arrived { held: true, .. } => format!("{words} (held by a cut link)"),
            Fate::Arrived { at, .. } if self.is_late() => {
                format!("{words} (takes {} s)", Nanos(at.0.saturating_sub(self.sent.0)))
            }
            Fate::Arrived { .. } => words.clone(),
            Fate::Held => format!("{words} (held by a cut link to the end)"),
            Fate::Lost { .. } => format!("{words} (lost)"),
        }
    }

    /// Returns true if its end has a time of its own, after its start.
    pub(crate) const fn is_long(&self) -> bool {
        match self.fate {
            Fate::Arrived { at, .. } | Fate::Lost { at } => at.0 > self.sent.0,
            Fate::Held => false,
        }
    }
}

impl Picture {
    /// Makes the picture of a run.
    pub fn of(run: &Run<'_>) -> Self {
        builder::build(run)
    }
}
