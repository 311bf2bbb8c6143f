//! Makes a replica the primary, with the data that has reached it. A primary that is still up becomes its
//! replica.

use std::sync::Arc;

use history::VerdictKind;

use super::action::{Action, Fault, FaultCheck};
use super::class::Class;
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::form::Form;
use super::kind::FaultKind;
use super::reach::Reach;
use super::scene::Scene;
use super::strike::Strike;
use crate::field_path::Invalid;
use crate::span::Span;

/// Makes a replica the primary.
#[derive(Clone, Debug)]
pub struct Promote {
    /// The replica.
    pub replica: String,
}

/// The row of this fault in the table.
pub static KIND: FaultKind = FaultKind {
    verb: "promote",
    fields: &[],
    read,
    variants: &[&ANY],
    wide: &[&UNDER_LEASE],
    forms: |_| vec![anywhere()],
    class: Some(&CLASS),
};

/// Promotes an asynchronous replica.
static CLASS: Class =
    Class { order: 80, name: "failover", needs: Some("promote"), draw: |of| draw(of).into_iter().collect() };

/// Returns the form of a promotion of a replica.
fn anywhere() -> Form {
    Form::of_processes(110, KIND.verb, "promotion of a replica", |scene, process| {
        scene.action(process, "promote").is_ok().then(|| Promote { replica: process.to_owned() })
    })
}

/// Promotes the replica, if there is one.
pub static ANY: Variant = Variant { order: 120, weight: |scene| u64::from(!scene.has_leader()), draw };

/// Promotes the replica while a lease is held.
pub static UNDER_LEASE: Variant = Variant {
    order: 220,
    weight: |scene| u64::from(replica(scene).is_some()) * 2,
    draw: |draw| {
        let replica = replica(draw.scene)?;
        Some(Fault::new(draw.under_lease()?, Promote { replica }))
    },
};

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    Ok(Arc::new(Promote { replica: fields.need("promote", "promote", "the replica")? }))
}

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let replica = replica(draw.scene)?;
    Some(Fault::new(draw.when(), Promote { replica }))
}

fn replica(scene: &dyn Scene) -> Option<String> {
    scene.processes().into_iter().find(|name| scene.action(name, "promote").is_ok())
}

impl Action for Promote {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("promote", &self.replica);
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.replica]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.host(&self.replica)?;
        if check.before().iter().any(|fault| fault.what.downcast_ref::<Self>().is_some()) {
            return Err(check.refuse("promote", format!("`{}` is promoted twice", self.replica)));
        }
        Ok(())
    }

    fn strike(&self, strike: &Strike) {
        let id = strike.process(&self.replica);
        strike.soon(move |strike| {
            strike.stage().act(id, "promote", &[]);
        });
    }

    fn reach(&self) -> Reach {
        Reach::Servers
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        Some(Span::ZERO)
    }

    /// Excuses a replica that lags: it lacks the last grants, tokens and releases.
    fn excuses(&self, _: &dyn Scene) -> Vec<VerdictKind> {
        vec![VerdictKind::TokenRegressed, VerdictKind::TwoValid, VerdictKind::Unheld, VerdictKind::Leaked]
    }
}
