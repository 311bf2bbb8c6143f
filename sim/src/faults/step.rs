//! Shifts a process's wall clock at once. Its monotonic clock does not change.

use std::sync::Arc;

use history::{ClockFault, Effect, VerdictKind};

use super::action::{Action, Fault, FaultCheck};
use super::class::Class;
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::form::{Form, longer};
use super::kind::FaultKind;
use super::reach::Reach;
use super::scene::Scene;
use super::strike::Strike;
use crate::field_path::Invalid;
use crate::span::{Shift, Span};

/// Shifts a process's wall clock at once.
#[derive(Clone, Debug)]
pub struct ClockStep {
    /// The process.
    pub process: String,
    /// The shift.
    pub by: Shift,
}

impl ClockStep {
    /// Returns a step of the wall clock of `process`.
    pub fn of(process: &str, by: Shift) -> Self {
        Self { process: process.to_owned(), by }
    }
}

/// The row of this fault in the table. It is drawn together with the other faults of clocks: see
/// [`rate`](super::rate).
pub static KIND: FaultKind = FaultKind {
    verb: "step",
    fields: &["by"],
    read,
    variants: &[&ALONE],
    wide: &[&IN_FLIGHT],
    forms: |lease| {
        let shift = i64::try_from(longer(lease).as_nanos()).unwrap_or(i64::MAX);
        [shift, -shift].map(|nanos| by(Shift::from_nanos(nanos))).into()
    },
    class: Some(&CLASS),
};

/// Sets the wall clock of a process.
static CLASS: Class =
    Class { order: 50, name: "clock step", needs: None, draw: |of| draw(of).into_iter().collect() };

/// Returns the form of a step by this shift.
fn by(by: Shift) -> Form {
    Form::of_processes(90, KIND.verb, format!("step of a wall clock by {by}"), move |_, process| {
        Some(ClockStep::of(process, by))
    })
}

/// Draws a step if steps are the only faults of clocks; otherwise [`rate`](super::rate) draws it.
static ALONE: Variant = Variant { order: 112, weight: |_| 0, draw };

/// Steps the clock of the sender or of the receiver while a request is in flight.
pub static IN_FLIGHT: Variant = Variant { order: 210, weight: |_| 2, draw: draw_in_flight };

fn draw_in_flight(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let (client, server, when) = draw.request();
    let process = if draw.site.chance(0.7) { client } else { server };
    Some(Fault::new(when, ClockStep { process, by: draw.shift() }))
}

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let (process, when) = (draw.process(), draw.when());
    Some(Fault::new(when, ClockStep { process, by: draw.shift() }))
}

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let process = fields.need("step", "step", "the process")?;
    Ok(Arc::new(ClockStep { process, by: fields.need("step", "by", "by how much")? }))
}

impl Action for ClockStep {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("step", &self.process);
        fields.put("by", &self.by);
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.process]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.process(&self.process)?;
        check.moving("by", self.by)
    }

    fn strike(&self, strike: &Strike) {
        let id = strike.process(&self.process);
        strike.world().step_clock(id, self.by.as_nanos());
        strike.stage().clock_was_set(id);
        let effect = Effect::Clock(ClockFault::StepNanos(self.by.as_nanos()));
        strike.acts(&self.process, effect, &format!("clock stepped by {}", self.by));
    }

    fn reach(&self) -> Reach {
        Reach::WallClock(self.process.clone())
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        Some(Span::ZERO)
    }

    /// Excuses the server's expiry of keys: late after a step back, early after a step forward.
    fn excuses(&self, scene: &dyn Scene) -> Vec<VerdictKind> {
        match scene.expires_keys(&self.process) {
            true if self.by.as_nanos() < 0 => vec![VerdictKind::Stuck],
            true => vec![VerdictKind::TwoValid, VerdictKind::Unheld],
            false => Vec::new(),
        }
    }
}
