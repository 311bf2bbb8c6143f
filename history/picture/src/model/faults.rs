//! Bars of faults: pauses, dead processes, wrong clocks and broken links.

use std::collections::BTreeMap;

use history::{ClockFault, Effect, Event, Kind, Nanos, TRUE_RATE, in_whole_units};

use super::bars::{Bars, Id, Look};
use super::{Edge, SpanKind};

/// Differences of clocks up to this many nanoseconds are not shown.
const CLOSE_NANOS: i128 = 1_000_000;

#[derive(Default)]
pub(super) struct Faults {
    /// The clocks that don't show true time, by lane.
    clocks: BTreeMap<usize, Clock>,
}

/// A clock: its lead over true time, and its rate since a time.
#[derive(Clone, Copy)]
struct Clock {
    ahead_nanos: i128,
    rate: u64,
    since: Nanos,
}

impl Faults {
    pub(super) fn observe(&mut self, event: &Event, lane: usize, edge: Edge, bars: &mut Bars) {
        match &event.kind {
            Kind::FaultApplied { effect: Effect::Clock(ClockFault::StepNanos(by)), .. } => {
                self.step(lane, edge, i128::from(*by), bars);
            }
            Kind::FaultApplied { fault, effect, detail, .. } if !effect.is_instant() => {
                if let Some(id) = bar(lane, *fault, effect) {
                    bars.open(id, edge, look(detail.as_str()));
                }
            }
            Kind::FaultHealed { fault, effect, .. } => {
                if let Some(id) = bar(lane, *fault, effect) {
                    bars.close(&id, edge);
                }
            }
            Kind::ClockRate { rate } => self.rate(lane, edge, *rate, bars),
            Kind::ProcessCrashed { .. } | Kind::ServerStopped { .. } => {
                bars.close_all(edge, |id| id.lane == lane && id.kind == SpanKind::Pause);
                bars.open(Id::new(lane, SpanKind::Down, ""), edge, look("down"));
            }
            Kind::ServerStarted { .. } => {
                bars.close(&Id::new(lane, SpanKind::Down, ""), edge);
            }
            _ => {}
        }
    }

    fn rate(&mut self, lane: usize, edge: Edge, rate: u64, bars: &mut Bars) {
        let clock = self.clock(lane, edge.at);
        clock.rate = rate;
        let clock = *clock;
        show(lane, edge, clock, bars);
    }

    /// Steps a process's wall clock.
    fn step(&mut self, lane: usize, edge: Edge, by_nanos: i128, bars: &mut Bars) {
        let clock = self.clock(lane, edge.at);
        clock.ahead_nanos += by_nanos;
        let clock = *clock;
        show(lane, edge, clock, bars);
    }

    /// Returns the clock of a lane, advanced to the time `at`.
    fn clock(&mut self, lane: usize, at: Nanos) -> &mut Clock {
        let clock = self.clocks.entry(lane).or_insert(Clock { ahead_nanos: 0, rate: TRUE_RATE, since: at });
        let passed = i128::from(at.0.saturating_sub(clock.since.0));
        let true_rate = i128::from(TRUE_RATE);
        clock.ahead_nanos += passed * (i128::from(clock.rate) - true_rate) / true_rate;
        clock.since = at;
        clock
    }
}

/// Replaces the bar of a clock.
fn show(lane: usize, edge: Edge, clock: Clock, bars: &mut Bars) {
    let id = Id::new(lane, SpanKind::Clock, "");
    bars.close(&id, edge);
    if let Some(label) = clock.in_words() {
        bars.open(id, edge, look(&label));
    }
}

/// Returns the bar of a fault, from its begin to its end. That of a clock shows its error instead.
fn bar(lane: usize, fault: u64, effect: &Effect) -> Option<Id> {
    match effect {
        Effect::Pause => Some(Id::new(lane, SpanKind::Pause, fault.to_string())),
        // However it died, the process is down until it runs again.
        Effect::Down => Some(Id::new(lane, SpanKind::Down, "")),
        Effect::Link { .. } => Some(Id::new(lane, SpanKind::Link, fault.to_string())),
        Effect::Clock(_) | Effect::LookUps(_) | Effect::Role(_) | Effect::Instant(_) => None,
    }
}

fn look(label: &str) -> Look {
    Look { label: label.to_owned(), ..Look::default() }
}

impl Clock {
    /// Describes the error of the clock; returns `None` if there is none.
    fn in_words(self) -> Option<String> {
        let rate =
            (self.rate != TRUE_RATE).then(|| format!("clock × {}", self.rate as f64 / TRUE_RATE as f64));
        let (sign, error) = (if self.ahead_nanos < 0 { '−' } else { '+' }, self.ahead_nanos.unsigned_abs());
        let ahead = (error > CLOSE_NANOS.unsigned_abs()).then(|| {
            // Milliseconds are precise enough.
            let millis = u64::try_from(error / 1_000_000).unwrap_or(u64::MAX);
            format!("clock {sign}{}", in_whole_units(millis.saturating_mul(1_000_000)))
        });
        match (ahead, rate) {
            (Some(ahead), Some(rate)) => Some(format!("{ahead}, {}", rate.trim_start_matches("clock "))),
            (ahead, rate) => ahead.or(rate),
        }
    }
}
