//! Makes a member of etcd or ZooKeeper the leader, as `etcdctl move-leader` does, which restarts every lease.
//! Without a majority it only leaves a note in the trace.

use std::sync::Arc;

use history::{Effect, InstantFault, RoleFault};

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

/// Makes a member of a cluster its leader.
#[derive(Clone, Debug)]
pub struct Lead {
    /// The member.
    pub member: String,
}

/// The row of this fault in the table.
pub static KIND: FaultKind = FaultKind {
    verb: "lead",
    fields: &[],
    read,
    variants: &[&ANY],
    wide: &[],
    forms: |_| vec![anywhere()],
    class: Some(&CLASS),
};

/// Makes another member the leader.
static CLASS: Class = Class {
    order: 90,
    name: "leader change",
    needs: Some("lead"),
    draw: |of| draw(of).into_iter().collect(),
};

/// Returns the form of a change of the cluster's leader.
fn anywhere() -> Form {
    Form::of_processes(100, KIND.verb, "change of a cluster's leader", |scene, process| {
        scene.action(process, "lead").is_ok().then(|| Lead { member: process.to_owned() })
    })
}

/// Draws any member.
pub static ANY: Variant = Variant { order: 150, weight: |scene| 2 * u64::from(scene.has_leader()), draw };

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    Ok(Arc::new(Lead { member: fields.need("lead", "lead", "the member")? }))
}

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    Some(Fault::new(draw.when(), Lead { member: draw.server() }))
}

impl Action for Lead {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("lead", &self.member);
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.member]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.host(&self.member)
    }

    fn strike(&self, strike: &Strike) {
        let member = self.member.clone();
        strike.soon(move |strike| {
            let leads = strike.stage().act(strike.process(&member), "lead", &[]);
            let (effect, detail) = match leads {
                true => (Effect::Role(RoleFault::Lead), "leads from now on"),
                false => (Effect::Instant(InstantFault::Other), "was to lead, and has no majority"),
            };
            strike.acts(&member, effect, detail);
        });
    }

    fn reach(&self) -> Reach {
        Reach::Servers
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        Some(Span::ZERO)
    }
}
