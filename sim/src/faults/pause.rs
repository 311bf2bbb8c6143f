//! Pauses a process, as SIGSTOP, a garbage collection or a hypervisor does. Its clocks run on, and incoming
//! segments queue up.

use std::sync::Arc;

use history::{Effect, in_whole_units};

use super::action::{Action, Fault, FaultCheck};
use super::class::Class;
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::form::{Form, half, longer};
use super::kind::FaultKind;
use super::reach::Reach;
use super::scene::Scene;
use super::strike::Strike;
use super::trigger::Trigger;
use crate::field_path::Invalid;
use crate::span::Span;

/// Pauses a process.
///
/// # Example
///
/// ```
/// use sim::Span;
/// use sim::faults::Pause;
///
/// // A pause that ends by itself, and one that lasts until a `Resume` or a script heals it.
/// let short = Pause { process: "a".to_owned(), lasts: Some(Span::from_secs(5)) };
/// let open = Pause::of("a");
/// assert_eq!((short.process, open.lasts), (open.process, None));
/// ```
#[derive(Clone, Debug)]
pub struct Pause {
    /// The process.
    pub process: String,
    /// The length of the pause; if `None`, until a [`Resume`](super::Resume).
    pub lasts: Option<Span>,
}

impl Pause {
    /// Returns a pause of `process` that does not end by itself.
    pub fn of(process: &str) -> Self {
        Self { process: process.to_owned(), lasts: None }
    }
}

/// The row of this fault in the table.
pub static KIND: FaultKind = FaultKind {
    verb: "pause",
    fields: &["for"],
    read,
    variants: &[&OF_HOLDER, &OF_ANY],
    wide: &[],
    forms: |lease| vec![lasting(half(lease)), lasting(longer(lease))],
    class: Some(&CLASS),
};

/// Pauses a worker, mostly inside its critical section, or a server.
static CLASS: Class = Class {
    order: 10,
    name: "pause",
    needs: None,
    draw: |draw| draw.by_weight(&[(&OF_HOLDER, 3), (&OF_ANY, 1)]),
};

/// Returns the form of a pause for this long.
pub fn lasting(lasts: Span) -> Form {
    Form::of_processes(10, KIND.verb, format!("pause of a process for {lasts}"), move |_, process| {
        Some(Pause { process: process.to_owned(), lasts: Some(lasts) })
    })
}

/// Pauses a holder between its grant and its write, often for longer than its lease.
pub static OF_HOLDER: Variant = Variant { order: 10, weight: |_| 6, draw: draw_of_holder };

/// Pauses any process at any time.
pub static OF_ANY: Variant =
    Variant { order: 20, weight: |scene| 1 + u64::from(scene.has_leader()), draw: draw_of_any };

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let process = fields.need("pause", "pause", "the process")?;
    Ok(Arc::new(Pause { process, lasts: fields.take("for")? }))
}

fn draw_of_holder(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let process = draw.client();
    let points = draw.scene.points_inside(&process);
    let point = draw.one_of(&points);
    let when = Trigger::After { process: process.clone(), point, nth: 1, plus: Span::ZERO };
    let when = draw.nth_round(when);
    Some(Fault::new(when, Pause { process, lasts: Some(draw.up_to(3)) }))
}

fn draw_of_any(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let process = draw.process();
    let when = draw.when();
    Some(Fault::new(when, Pause { process, lasts: Some(draw.up_to(3)) }))
}

impl Action for Pause {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("pause", &self.process);
        fields.put_some("for", self.lasts.as_ref());
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.process]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.process(&self.process)?;
        check.lasting("for", self.lasts)
    }

    fn strike(&self, strike: &Strike) {
        let id = strike.process(&self.process);
        strike.world().pause(id);
        let detail = match self.lasts {
            Some(lasts) => format!("paused {}", in_whole_units(lasts.as_nanos())),
            None => "paused".to_owned(),
        };
        let begun = strike.begins(&self.process, Effect::Pause, self.lasts, &detail);
        begun.while_alive("resumed", move |strike| strike.world().resume(id));
    }

    fn reach(&self) -> Reach {
        Reach::Turns(self.process.clone())
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        self.lasts
    }
}
