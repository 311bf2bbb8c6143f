//! Drops a future of a worker: its acquire, its work with the renewals beside it, or its release.

use std::sync::Arc;

use history::{Effect, InstantFault};

use super::action::{Action, Fault, FaultCheck};
use super::call::Call;
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::form::Form;
use super::kind::FaultKind;
use super::reach::Reach;
use super::scene::{Role, Scene};
use super::strike::Strike;
use super::trigger::Trigger;
use crate::field_path::Invalid;
use crate::span::Span;

/// Drops the future of a call: the one in progress, else the next one when it begins.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// The worker.
    pub worker: String,
    /// The call.
    pub call: Call,
}

impl Cancel {
    /// Returns a drop of the acquire of `worker`.
    pub fn acquire(worker: &str) -> Self {
        Self { worker: worker.to_owned(), call: Call::Acquire }
    }
}

/// The row of this fault in the table. It has no form without a call, which a client may not have: see
/// [`dropping`]. It is not compared, since it is a deed of the caller on every system.
pub static KIND: FaultKind = FaultKind {
    verb: "cancel",
    fields: &["call"],
    read,
    variants: &[&ACQUIRING],
    wide: &[&HOLDING],
    forms: |_| Vec::new(),
    class: None,
};

/// Returns the form of a drop of this call.
pub fn dropping(call: Call) -> Form {
    Form::of_processes(120, KIND.verb, format!("drop of a client's {call}"), move |scene, process| {
        let suits = scene.role(process) == Some(Role::Client) && scene.calls(process, call).is_ok();
        suits.then(|| Cancel { worker: process.to_owned(), call })
    })
}

/// Strikes just after a worker has begun to acquire.
pub static ACQUIRING: Variant = Variant { order: 140, weight: |scene| u64::from(!scene.has_leader()), draw };

/// Drops a renewal or a release.
pub static HOLDING: Variant = Variant { order: 240, weight: |_| 2, draw: draw_holding };

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let worker = fields.need("cancel", "cancel", "the worker")?;
    Ok(Arc::new(Cancel { worker, call: fields.take("call")?.unwrap_or_default() }))
}

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let worker = draw.client();
    let plus = draw.span(Span::ZERO, Span::from_millis(50));
    let when = Trigger::After { process: worker.clone(), point: "requested".to_owned(), nth: 1, plus };
    Some(Fault::new(draw.nth_round(when), Cancel { worker, call: Call::Acquire }))
}

/// Draws a fault under a lease. A renewal is dropped a third of the lease after the grant: the first is then
/// in progress.
fn draw_holding(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let makes = |call: Call| {
        let mut clients = draw.scene.with_role(Role::Client);
        clients.retain(|client| draw.scene.calls(client, call).is_ok());
        clients
    };
    let (renewing, releasing) = (makes(Call::Renew), makes(Call::Release));
    if renewing.is_empty() && releasing.is_empty() {
        return None;
    }
    let renews = draw.site.chance(0.5);
    let (call, point, plus, workers) = if releasing.is_empty() || (renews && !renewing.is_empty()) {
        (Call::Renew, "granted", Span::from_nanos(draw.scene.scale().as_nanos() / 3), renewing)
    } else {
        (Call::Release, "release-requested", Span::ZERO, releasing)
    };
    let worker = draw.one_of(&workers);
    let plus = plus.plus(draw.span(Span::ZERO, Span::from_millis(50)));
    let when = Trigger::After { process: worker.clone(), point: point.to_owned(), nth: 1, plus };
    Some(Fault::new(draw.nth_round(when), Cancel { worker, call }))
}

impl Action for Cancel {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("cancel", &self.worker);
        fields.put_some("call", (self.call != Call::Acquire).then_some(&self.call));
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.worker]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        let (name, call) = (&self.worker, self.call);
        check.process(name)?;
        check.scene.calls(name, call).map_err(|why| match call {
            Call::Acquire => check.refuse("cancel", format!("`cancel` of `{name}`: {why}")),
            _ => check.refuse("call", format!("`call` = {call} of `{name}`: {why}")),
        })
    }

    fn strike(&self, strike: &Strike) {
        let what = match self.call {
            Call::Acquire => "drops its acquire",
            Call::Renew => "drops its work and the renewal",
            Call::Release => "drops its release",
        };
        strike.acts(&self.worker, Effect::Instant(InstantFault::Cancel), what);
        strike.stage().cancel(strike.process(&self.worker), self.call);
    }

    fn reach(&self) -> Reach {
        Reach::Turns(self.worker.clone())
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        Some(Span::ZERO)
    }
}
