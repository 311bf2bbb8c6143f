//! Drops the acquire future of a worker, if it is acquiring.

use std::sync::Arc;

use super::action::{Action, Check, Fault};
use super::draw::{Draw, Variant};
use super::fields::{Fields, Misread};
use super::kind::FaultKind;
use super::scene::Scene;
use super::strike::Strike;
use super::trigger::Trigger;
use crate::place::Invalid;
use crate::span::Span;

/// Drops the acquire future of a worker.
#[derive(Clone, Debug)]
pub struct Cancel {
    /// The worker.
    pub worker: String,
}

/// The row of this fault in the table.
pub static KIND: FaultKind = FaultKind { verb: "cancel", fields: &[], read, variants: &[&ACQUIRING] };

/// Strikes just after a worker has begun to acquire.
pub static ACQUIRING: Variant = Variant { place: 140, weight: |scene| u64::from(!scene.has_leader()), draw };

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    Ok(Arc::new(Cancel { worker: fields.need("cancel", "cancel", "the worker")? }))
}

fn draw(draw: &mut Draw<'_>) -> Option<Fault> {
    let worker = draw.client();
    let plus = draw.span(Span::ZERO, Span::from_millis(50));
    let when = Trigger::After { process: worker.clone(), point: "requested".to_owned(), nth: 1, plus };
    Some(Fault::new(draw.nth_round(when), Cancel { worker }))
}

impl Action for Cancel {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("cancel", &self.worker);
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.worker]
    }

    fn check(&self, check: &Check<'_>) -> Result<(), Invalid> {
        let name = &self.worker;
        check.process(name)?;
        let refused = |why| check.refuse("cancel", format!("`cancel` of `{name}`: {why}"));
        check.scene.acquires(name).map_err(refused)
    }

    fn strike(&self, strike: &Strike) {
        strike.begins(&self.worker, "drops its acquire");
        strike.stage().cancel(strike.process(&self.worker));
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        Some(Span::ZERO)
    }
}
