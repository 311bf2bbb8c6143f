//! Bars of faults: pauses, dead processes, wrong clocks and broken links.

use std::collections::BTreeMap;

use history::{Event, Kind, Nanos, in_whole_units};

use super::bars::{Bars, Id, Look};
use super::cast::Cast;
use super::{Edge, SpanKind};
use crate::run::Role;

/// The rate of a clock that runs true.
const TRUE_RATE: i128 = 1_000_000_000;

/// Differences of clocks up to this many nanoseconds are not shown.
const CLOSE_NANOS: i128 = 1_000_000;

pub(super) struct Faults<'c> {
    cast: &'c Cast<'c>,
    /// The clocks that don't show true time, by lane.
    clocks: BTreeMap<usize, Clock>,
}

/// A clock: its lead over true time, and its rate since a time.
#[derive(Clone, Copy)]
struct Clock {
    ahead_nanos: i128,
    rate: i128,
    since: Nanos,
}

impl<'c> Faults<'c> {
    pub(super) const fn new(cast: &'c Cast<'c>) -> Self {
        Self { cast, clocks: BTreeMap::new() }
    }

    pub(super) fn observe(&mut self, event: &Event, lane: usize, edge: Edge, bars: &mut Bars) {
        match &event.kind {
            Kind::FaultApplied { fault, verb, detail } => match verb.as_str() {
                "pause" => {
                    bars.open(Id::new(lane, SpanKind::Pause, fault.to_string()), edge, look(detail.as_str()));
                }
                "step" => self.step(lane, edge, detail.as_str(), bars),
                "reset" => {}
                _ if self.cast.lanes[lane].role == Role::Links => {
                    bars.open(Id::new(lane, SpanKind::Link, fault.to_string()), edge, look(detail.as_str()));
                }
                _ => {}
            },
            Kind::FaultHealed { fault, verb, .. } => match verb.as_str() {
                "crash" | "stop" => {
                    bars.close(&Id::new(lane, SpanKind::Down, ""), edge);
                }
                "pause" => {
                    bars.close(&Id::new(lane, SpanKind::Pause, fault.to_string()), edge);
                }
                _ => {
                    bars.close(&Id::new(lane, SpanKind::Link, fault.to_string()), edge);
                }
            },
            Kind::ClockRate { rate } => self.rate(lane, edge, i128::from(*rate), bars),
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

    fn rate(&mut self, lane: usize, edge: Edge, rate: i128, bars: &mut Bars) {
        let clock = self.clock(lane, edge.at);
        clock.rate = rate;
        let clock = *clock;
        show(lane, edge, clock, bars);
    }

    /// Steps a process's wall clock. The event's detail ends with the shift, such as `+11s`.
    fn step(&mut self, lane: usize, edge: Edge, detail: &str, bars: &mut Bars) {
        let shift = detail.rsplit(' ').next().and_then(shift_nanos).unwrap_or_default();
        let clock = self.clock(lane, edge.at);
        clock.ahead_nanos += shift;
        let clock = *clock;
        show(lane, edge, clock, bars);
    }

    /// Returns the clock of a lane, advanced to the time `at`.
    fn clock(&mut self, lane: usize, at: Nanos) -> &mut Clock {
        let clock = self.clocks.entry(lane).or_insert(Clock { ahead_nanos: 0, rate: TRUE_RATE, since: at });
        let passed = i128::from(at.0.saturating_sub(clock.since.0));
        clock.ahead_nanos += passed * (clock.rate - TRUE_RATE) / TRUE_RATE;
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

/// Reads a shift of a clock, such as `+1.5s`.
fn shift_nanos(text: &str) -> Option<i128> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1.0, rest),
        ("-", rest) => (-1.0, rest),
        _ => return None,
    };
    let at = rest.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = rest.split_at(at);
    let unit = match unit {
        "m" => 60e9,
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        "ns" => 1.0,
        _ => return None,
    };
    // Exact enough for a label.
    Some((sign * number.parse::<f64>().ok()? * unit) as i128)
}
