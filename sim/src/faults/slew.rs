//! Shifts a process's wall clock gradually. Its monotonic clock shifts with it, as on Linux.

use std::sync::Arc;

use history::{TRUE_RATE, VerdictKind, in_whole_units};

use super::action::{Action, Fault, FaultCheck};
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::kind::FaultKind;
use super::scene::Scene;
use super::strike::Strike;
use crate::field_path::Invalid;
use crate::span::{Shift, Span};

/// Shifts a process's wall clock gradually.
#[derive(Clone, Debug)]
pub struct Slew {
    /// The process.
    pub process: String,
    /// The whole shift.
    pub by: Shift,
    /// The true time that it takes.
    pub over: Span,
}

/// The row of this fault in the table. It is drawn together with the other faults of clocks: see
/// [`rate`](super::rate). Exhaustive searches set clocks by steps alone, and a slew is compared as a rate.
pub static KIND: FaultKind = FaultKind {
    verb: "slew",
    fields: &["by", "over"],
    read,
    variants: &[&ALONE],
    wide: &[],
    forms: |_| Vec::new(),
    class: None,
};

/// Draws a slew if slews are the only faults of clocks; otherwise [`rate`](super::rate) draws it.
static ALONE: Variant = Variant { order: 114, weight: |_| 0, draw };

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let (process, when, by) = (draw.process(), draw.when(), draw.shift());
    Some(Fault::new(when, Slew { process, by, over: draw.up_to(3) }))
}

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let process = fields.need("slew", "slew", "the process")?;
    let by = fields.need("slew", "by", "by how much")?;
    Ok(Arc::new(Slew { process, by, over: fields.need("slew", "over", "in how much time")? }))
}

impl Action for Slew {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("slew", &self.process);
        fields.put("by", &self.by);
        fields.put("over", &self.over);
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.process]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.process(&self.process)?;
        check.moving("by", self.by)?;
        check.lasting("over", Some(self.over))
    }

    fn strike(&self, strike: &Strike) {
        let over = in_whole_units(self.over.as_nanos());
        let detail = format!("clock slewed by {} over {over}", self.by);
        strike.set_clock_rate(&self.process, rate(self.by, self.over), &detail, Some(self.over));
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        Some(self.over)
    }

    /// Returns a positive rate: a clock nearly stops if it is slewed back by more than the slew's duration.
    fn clock_rate(&self) -> Option<(&str, f64)> {
        let rate = 1.0 + self.by.as_nanos() as f64 / self.over.as_nanos().max(1) as f64;
        Some((&self.process, rate.max(1e-9)))
    }

    /// Excuses a server that is slewed back: a key without a release expires late.
    fn excuses(&self, scene: &dyn Scene) -> Vec<VerdictKind> {
        let is_set_back = self.by.as_nanos() < 0 && scene.expires_keys(&self.process);
        let mut excuses = if is_set_back { vec![VerdictKind::Stuck] } else { Vec::new() };
        if !scene.knows_margins() {
            excuses.extend([VerdictKind::TwoValid, VerdictKind::Unheld]);
        }
        excuses
    }
}

/// Returns the rate at which a clock shifts by `by` within `over` of true time.
fn rate(by: Shift, over: Span) -> u64 {
    let gained = i128::from(by.as_nanos()) * i128::from(TRUE_RATE) / i128::from(over.as_nanos().max(1));
    u64::try_from(i128::from(TRUE_RATE) + gained).unwrap_or(1).max(1)
}
