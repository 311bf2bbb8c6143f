//! Runs both clocks of a process faster or slower than true time. This file also draws steps and slews.

use std::sync::Arc;

use history::{TRUE_RATE, VerdictKind};

use super::action::{Action, Fault, FaultCheck};
use super::class::Class;
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::kind::FaultKind;
use super::scene::Scene;
use super::slew::Slew;
use super::step::ClockStep;
use super::strike::Strike;
use crate::field_path::Invalid;
use crate::span::Span;

/// The largest factor, and the inverse of the smallest. Factors beyond are most likely mistakes.
const FACTOR_MAX: f64 = 1000.0;

/// Runs both clocks of a process faster or slower than true time.
#[derive(Clone, Debug)]
pub struct Rate {
    /// The process.
    pub process: String,
    /// Seconds of the clock in each second of true time.
    pub factor: f64,
    /// The time until they run at the true rate again; they keep their offset.
    pub lasts: Option<Span>,
}

impl Rate {
    /// Returns a rate of `factor` clock seconds per second of true time for `process`. It does not end by
    /// itself.
    pub fn of(process: &str, factor: f64) -> Self {
        Self { process: process.to_owned(), factor, lasts: None }
    }
}

/// The row of this fault in the table. Exhaustive searches don't place it: it moves every timer of a process,
/// so that no point stands for another.
pub static KIND: FaultKind = FaultKind {
    verb: "rate",
    fields: &["factor", "for"],
    read,
    variants: &[&ANY_CLOCK],
    wide: &[],
    forms: |_| Vec::new(),
    class: Some(&CLASS),
};

/// Runs the clocks of a process fast or slow.
static CLASS: Class = Class { order: 60, name: "clock rate", needs: None, draw: draw_rate };

/// Draws a step, a slew or a rate of any process.
pub static ANY_CLOCK: Variant = Variant { order: 110, weight: |_| 2, draw };

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let process = fields.need("rate", "rate", "the process")?;
    let factor = fields.need("rate", "factor", "clock seconds in a second of true time")?;
    Ok(Arc::new(Rate { process, factor, lasts: fields.take("for")? }))
}

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let (process, when) = (draw.process(), draw.when());
    let by = draw.shift();
    let (over, lasts) = (draw.up_to(3), Some(draw.up_to(3)));
    let factor = draw_factor(draw);
    Some(match draw.site.below(3) {
        0 => Fault::new(when, ClockStep { process, by }),
        1 => Fault::new(when, Slew { process, by, over }),
        _ => Fault::new(when, Rate { process, factor, lasts }),
    })
}

fn draw_rate(draw: &mut FaultDraw<'_>) -> Vec<Fault> {
    let (process, when, lasts) = (draw.process(), draw.when(), Some(draw.up_to(4)));
    vec![Fault::new(when, Rate { process, factor: draw_factor(draw), lasts })]
}

/// Draws the factor of a bad oscillator, or of a broken one.
fn draw_factor(draw: &mut FaultDraw<'_>) -> f64 {
    f64::from(draw.one_of(&[50, 90, 99, 101, 110, 200])) / 100.0
}

impl Action for Rate {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("rate", &self.process);
        fields.put("factor", &self.factor);
        fields.put_some("for", self.lasts.as_ref());
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.process]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.process(&self.process)?;
        check.lasting("for", self.lasts)?;
        let factor = self.factor;
        let problem = if !(1.0 / FACTOR_MAX..=FACTOR_MAX).contains(&factor) {
            format!("`factor` = {factor}: it must be from {} to {FACTOR_MAX}", 1.0 / FACTOR_MAX)
        } else if factor == 1.0 {
            "`factor` is 1: the fault would do nothing".to_owned()
        } else {
            return Ok(());
        };
        Err(check.refuse("factor", problem))
    }

    fn strike(&self, strike: &Strike) {
        // The schedule was validated, so the factor is positive.
        let rate = (self.factor * TRUE_RATE as f64) as u64;
        let detail = format!("clock runs at {}", self.factor);
        strike.set_clock_rate(&self.process, rate, &detail, self.lasts);
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        self.lasts
    }

    /// Excuses a slow server: a key without a release expires late.
    fn excuses(&self, scene: &dyn Scene) -> Vec<VerdictKind> {
        let is_slow = self.factor < 1.0 && scene.expires_keys(&self.process);
        let mut excuses = if is_slow { vec![VerdictKind::Stuck] } else { Vec::new() };
        if !scene.knows_margins() {
            excuses.extend([VerdictKind::TwoValid, VerdictKind::Unheld]);
        }
        excuses
    }

    fn clock_rate(&self) -> Option<(&str, f64)> {
        Some((&self.process, self.factor))
    }

    /// Halves the deviation, in whole hundredths.
    fn smaller(&self) -> Vec<Arc<dyn Action>> {
        let factor = 1.0 + ((self.factor - 1.0) * 50.0).trunc() / 100.0;
        if factor == 1.0 || factor == self.factor {
            return Vec::new();
        }
        vec![Arc::new(Self { factor, ..self.clone() })]
    }
}
