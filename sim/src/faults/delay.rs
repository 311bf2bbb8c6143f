//! Delays all segments that enter a link.

use std::sync::Arc;

use history::{LinkFault, in_whole_units};

use super::action::{Action, Fault, FaultCheck};
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::form::{Form, longer};
use super::kind::FaultKind;
use super::link::Link;
use super::reach::Reach;
use super::scene::Scene;
use super::strike::{NETWORK, Strike};
use super::trigger::Trigger;
use crate::field_path::Invalid;
use crate::span::Span;

/// Delays all segments that enter a link.
#[derive(Clone, Debug)]
pub struct Delay {
    /// The link.
    pub link: Link,
    /// The delay, in addition to the latency.
    pub by: Span,
    /// Both directions, or only the one that the link names. Default: both.
    pub both: bool,
    /// The time until new segments are no longer delayed.
    pub lasts: Option<Span>,
}

impl Delay {
    /// Returns a delay of the link from `from` to `to`. It does not end by itself.
    pub fn one_way(from: &str, to: &str, by: Span) -> Self {
        Self { link: Link::new(from, to), by, both: false, lasts: None }
    }
}

/// The time for which the form of this fault delays what enters a link: one message, and others right after.
const FORM_LASTS: Span = Span::from_millis(1);

/// The row of this fault in the table. It is not compared: the classes of cuts delay messages for longer.
pub static KIND: FaultKind = FaultKind {
    verb: "delay",
    fields: &["both", "by", "for"],
    read,
    variants: &[&ANY],
    wide: &[&BEYOND_LEASE],
    forms: |lease| vec![by(longer(lease))],
    class: None,
};

/// Returns the form of a delay by this time of all that enters one direction of a link within a millisecond.
fn by(by: Span) -> Form {
    let words = format!("delay by {by} of all that enters a client's link within {FORM_LASTS}");
    Form::of_links(80, KIND.verb, words, false, move |link| Delay {
        link: link.clone(),
        by,
        both: false,
        lasts: Some(FORM_LASTS),
    })
}

/// Delays any link.
pub static ANY: Variant = Variant { order: 100, weight: |_| 3, draw };

/// Delays a request, or its answer, beyond the end of the lease that it asks for.
pub static BEYOND_LEASE: Variant = Variant { order: 200, weight: |_| 1, draw: draw_beyond_lease };

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let link = fields.need("delay", "delay", "the link")?;
    let by = fields.need("delay", "by", "by how much")?;
    let both = fields.take("both")?.unwrap_or(true);
    Ok(Arc::new(Delay { link, by, both, lasts: fields.take("for")? }))
}

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let (link, when, both) = (draw.link(), draw.when(), draw.site.chance(0.3));
    let (by, lasts) = (draw.up_to(2), Some(draw.up_to(1)));
    Some(Fault::new(when, Delay { link, by, both, lasts }))
}

fn draw_beyond_lease(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let (client, server) = (draw.client(), draw.server());
    let link = if draw.site.chance(0.5) { Link::new(&client, &server) } else { Link::new(&server, &client) };
    let when = Trigger::After { process: client, point: "requested".to_owned(), nth: 1, plus: Span::ZERO };
    let by = draw.scene.scale().plus(draw.up_to(2));
    let lasts = Some(draw.up_to(1));
    Some(Fault::new(draw.nth_round(when), Delay { link, by, both: false, lasts }))
}

impl Action for Delay {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("delay", &self.link);
        fields.put_some("both", (!self.both).then_some(&false));
        fields.put("by", &self.by);
        fields.put_some("for", self.lasts.as_ref());
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.link.from, &self.link.to]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.link(&self.link)?;
        check.lasting("by", Some(self.by))?;
        check.lasting("for", self.lasts)
    }

    fn strike(&self, strike: &Strike) {
        let (links, by) = (strike.directions(&self.link, self.both), self.by.duration());
        links.iter().for_each(|(from, to)| strike.world().delay(*from, *to, by));
        let (arrow, by_text) = (self.link.arrow(self.both), in_whole_units(self.by.as_nanos()));
        let detail = format!("delays {arrow} by {by_text}");
        let begun = strike.begins(NETWORK, strike.on_links(LinkFault::Delay, &links), self.lasts, &detail);
        begun.until(&format!("over: {detail}"), move |strike| {
            links.iter().for_each(|(from, to)| strike.world().undelay(*from, *to, by));
        });
    }

    fn reach(&self) -> Reach {
        Reach::link(&self.link, self.both)
    }

    fn in_flight(&self) -> Span {
        self.by
    }

    /// Returns the time until the last delayed segment has arrived: `by` after the delay ends.
    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        self.lasts.map(|lasts| lasts.plus(self.by))
    }
}
