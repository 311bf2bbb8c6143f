//! Breaks the connections between two processes: segments in flight are lost, and both ends see a reset. At a
//! server's point it strikes after the command has run and before the reply leaves.

use std::sync::Arc;

use history::LinkFault;

use super::action::{Action, Fault, FaultCheck};
use super::class::Class;
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::form::Form;
use super::kind::FaultKind;
use super::link::Link;
use super::reach::Reach;
use super::scene::{Role, Scene};
use super::strike::{NETWORK, Strike};
use super::trigger::Trigger;
use crate::field_path::Invalid;
use crate::span::Span;

/// Breaks the connections between two processes.
#[derive(Clone, Debug)]
pub struct Reset {
    /// The two processes, in either order.
    pub link: Link,
}

impl Reset {
    /// Returns a reset of all connections between two processes.
    pub fn between(one: &str, other: &str) -> Self {
        Self { link: Link::new(one, other) }
    }
}

/// The row of this fault in the table.
pub static KIND: FaultKind = FaultKind {
    verb: "reset",
    fields: &[],
    read,
    variants: &[&LOST_REPLY],
    wide: &[&ANY_REPLY],
    forms: |_| vec![anywhere()],
    class: Some(&LOST_EVERYWHERE),
};

/// Loses the reply to a request that a server or the resource has carried out.
static LOST_EVERYWHERE: Class = Class { order: 70, name: "lost reply", needs: None, draw: draw_everywhere };

/// Returns the form of a reset of the connections on any link.
fn anywhere() -> Form {
    let words = "reset of a client's connections, which loses the data in flight";
    Form::of_links(70, KIND.verb, words, true, |link| Reset { link: link.clone() })
}

/// Breaks a connection just before a reply leaves a server or the resource.
pub static LOST_REPLY: Variant = Variant { order: 30, weight: |_| 4, draw };

/// Loses a reply of a server or of the resource to any request, even to one without an effect.
pub static ANY_REPLY: Variant = Variant {
    order: 232,
    weight: |_| 3,
    draw: |draw| {
        let (client, server, when) = draw.reply();
        Some(Fault::new(when, Reset { link: Link::new(&client, &server) }))
    },
};

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    Ok(Arc::new(Reset { link: fields.need("reset", "reset", "the two processes")? }))
}

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let is_server = draw.site.chance(0.5);
    let process = if is_server { draw.speaker() } else { draw.resource() };
    let points = draw.scene.points_of_reply(&process);
    let point = if is_server { draw.one_of(&points) } else { points.first().cloned().unwrap_or_default() };
    let nth = 1 + draw.site.below(3) as u32;
    let client = draw.client();
    // A point of a cluster names no member: one of them sends the reply.
    let is_cluster = is_server && draw.scene.role(&process).is_none();
    let server = if is_cluster { draw.server() } else { process.clone() };
    let when = Trigger::After { process, point, nth, plus: Span::ZERO };
    Some(Fault::new(when, Reset { link: Link::new(&client, &server) }))
}

/// Breaks the connections of a client to each server that may have got its request, once one of them has
/// carried it out and before it answers.
fn draw_everywhere(draw: &mut FaultDraw<'_>) -> Vec<Fault> {
    let (client, nth) = (draw.client(), 1 + draw.site.below(3) as u32);
    let (process, point, servers) = if draw.site.chance(0.7) {
        let point = ["granted", "granted", "deleted"][draw.site.below(3) as usize];
        let server = draw.speaker();
        let is_cluster = draw.scene.has_leader();
        let answering = if is_cluster { draw.scene.with_role(Role::Server) } else { vec![server.clone()] };
        (server, point.to_owned(), answering)
    } else {
        let resource = draw.resource();
        let point = draw.scene.points_of_reply(&resource).first().cloned().unwrap_or_default();
        (resource.clone(), point, vec![resource])
    };
    let when = Trigger::After { process, point, nth, plus: Span::ZERO };
    let reset = |server: String| Fault::new(when.clone(), Reset { link: Link::new(&client, &server) });
    servers.into_iter().map(reset).collect()
}

impl Action for Reset {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("reset", &self.link);
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.link.from, &self.link.to]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.link(&self.link)
    }

    fn strike(&self, strike: &Strike) {
        strike.world().reset(strike.process(&self.link.from), strike.process(&self.link.to));
        let effect = strike.on_links(LinkFault::Reset, &strike.directions(&self.link, true));
        strike.acts(NETWORK, effect, &format!("resets {}", self.link.arrow(true)));
    }

    fn reach(&self) -> Reach {
        Reach::Connections(self.link.clone())
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        Some(Span::ZERO)
    }
}
