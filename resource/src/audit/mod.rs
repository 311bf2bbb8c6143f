//! The audit: judges what happened in a run, from its history alone.
//!
//! The same code judges simulated and live runs, in one pass over the events and without a clock, so that one history
//! always gives the same verdicts. A verdict rests on evidence in the history: where the history does not tell (a live run
//! without the lock server's events, a writer that names no owner), there is none.
//!
//! Read in this order: [`History`] and [`Event`] (`history`), the table of all events (`vocabulary/`), then one file a
//! family of verdicts (`overlap`, `writes`, `lost_update`, `tokens`, `ownership`, `stuck`, `unfair`), each with its rule
//! and the rule's source. [`Summary`] and [`Fairness`] are counts, for reports and expectations.
//!
//! How events get here: a subscriber layer fills a [`Record`] (it is a `tracing` visitor) and makes a [`Kind`] of it; on
//! live runs it writes them with [`Event::write_json`], and [`History::parse_json_lines`] reads them back. The recorder
//! adds what the emitter can't know: the true time, and the process.

use std::time::Duration;

mod fairness;
mod history;
mod holders;
mod lost_update;
mod overlap;
mod ownership;
mod stuck;
mod summary;
mod tokens;
mod unfair;
mod verdict;
mod writes;

pub use crate::vocabulary::{EventName, Kind, Name, Record, RecordError, Slot};
pub use fairness::Fairness;
pub use history::{Event, History, HistoryError, Nanos};
pub use summary::{Summary, Updates, WriteBy, WriteByError};
pub use verdict::{Verdict, VerdictKind, VerdictKindError};

use holders::Holders;
use lost_update::LostUpdate;
use overlap::Overlap;
use ownership::Ownership;
use stuck::Stuck;
use tokens::Tokens;
use unfair::Unfair;
use verdict::Verdicts;
use writes::Writes;

/// What a history is judged by, beyond itself. The default judges safety alone: neither order nor progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The lock promises first come, first served; without it, `unfair` is not judged.
    pub fifo: bool,
    /// When the run ended, in true time. If the last event is later, its time counts.
    pub end: Nanos,
    /// When the last fault had healed, in true time: zero for a run without faults. `None` if faults lasted to the end:
    /// `stuck` is not judged then.
    pub healed_at: Option<Nanos>,
    /// How long a request may wait after it began, and after the faults healed. `None` if the run sets no bound.
    pub served_within: Option<Duration>,
    /// How long a lock may stay taken that its server stores without a time to live. `None` if it may for ever.
    pub ttl: Option<Duration>,
    /// How much later than its time to live a server may drop a key: its clock may be slow, and it looks now and then.
    pub grace: Duration,
}

/// Judges `history`, whose events stand in the order in which they happened. The verdicts come in the order of their times.
///
/// Takes time in proportion to the history's length (times the logarithm of the number of leases), plus the verdicts.
pub fn audit(history: &[Event], rules: &Rules) -> Vec<Verdict> {
    let mut judges = Judges::new(rules);
    let mut verdicts = Verdicts::default();
    for event in history {
        judges.observe(event, &mut verdicts);
    }
    let last = history.last().map_or(Nanos(0), |event| event.at);
    judges.finish(rules.end.max(last), &mut verdicts);
    verdicts.sorted()
}

struct Judges<'h> {
    holders: Holders<'h>,
    overlap: Overlap<'h>,
    writes: Writes<'h>,
    lost_update: LostUpdate<'h>,
    tokens: Tokens<'h>,
    ownership: Ownership<'h>,
    stuck: Option<Stuck<'h>>,
    unfair: Option<Unfair<'h>>,
}

impl<'h> Judges<'h> {
    fn new(rules: &Rules) -> Self {
        Self {
            holders: Holders::default(),
            overlap: Overlap::default(),
            writes: Writes::default(),
            lost_update: LostUpdate::default(),
            tokens: Tokens::default(),
            ownership: Ownership::default(),
            stuck: Stuck::new(rules),
            unfair: rules.fifo.then(Unfair::default),
        }
    }

    fn observe(&mut self, event: &'h Event, verdicts: &mut Verdicts) {
        self.holders.observe(event);
        self.overlap.observe(event, verdicts);
        self.writes.observe(event, &self.holders, verdicts);
        self.lost_update.observe(event, &self.holders, verdicts);
        self.tokens.observe(event, verdicts);
        self.ownership.observe(event, verdicts);
        if let Some(stuck) = &mut self.stuck {
            stuck.observe(event, verdicts);
        }
        if let Some(unfair) = &mut self.unfair {
            unfair.observe(event, verdicts);
        }
    }

    /// Only what should have happened and did not needs the end; an open critical section has been judged on entry.
    fn finish(self, end: Nanos, verdicts: &mut Verdicts) {
        if let Some(stuck) = self.stuck {
            stuck.finish(end, verdicts);
        }
    }
}
