//! Cuts a link. Segments that are sent meanwhile arrive once it heals, as TCP retransmits them.

use std::sync::Arc;

use history::LinkFault;

use super::action::{Action, Fault, FaultCheck};
use super::class::Class;
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::form::{Form, longer};
use super::kind::FaultKind;
use super::link::Link;
use super::reach::Reach;
use super::scene::Scene;
use super::strike::{NETWORK, Strike};
use crate::field_path::Invalid;
use crate::span::Span;

/// Cuts a link.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The link.
    pub link: Link,
    /// Both directions, or only the one that the link names. Default: both.
    pub both: bool,
    /// The time until it heals.
    pub lasts: Option<Span>,
}

impl Cut {
    /// Returns a cut in both directions between two processes. It does not heal by itself.
    pub fn between(one: &str, other: &str) -> Self {
        Self { link: Link::new(one, other), both: true, lasts: None }
    }

    /// Returns a cut of the link from `from` to `to`. It does not heal by itself.
    pub fn one_way(from: &str, to: &str) -> Self {
        Self { both: false, ..Self::between(from, to) }
    }
}

/// The row of this fault in the table.
pub static KIND: FaultKind = FaultKind {
    verb: "cut",
    fields: &["both", "for"],
    read,
    variants: &[&ANY],
    wide: &[],
    forms: |lease| [true, false].map(|both| lasting(longer(lease), both)).into(),
    class: Some(&ONE_WAY),
};

/// Cuts the messages of a worker to some of the lock servers, or those of the servers to it.
static ONE_WAY: Class = Class { order: 30, name: "one-way partition", needs: None, draw: draw_one_way };

/// Returns the form of a cut for this long, in `both` directions or in one.
fn lasting(lasts: Span, both: bool) -> Form {
    let (place, directions) = if both { (40, "both directions") } else { (50, "one direction") };
    let words = format!("cut of a client's link in {directions} for {lasts}");
    let cut = move |link: &Link| Cut { link: link.clone(), both, lasts: Some(lasts) };
    Form::of_links(place, KIND.verb, words, both, cut)
}

/// Cuts any link.
pub static ANY: Variant = Variant { order: 80, weight: |scene| 2 + u64::from(scene.has_leader()), draw };

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let link = fields.need("cut", "cut", "the link")?;
    let both = fields.take("both")?.unwrap_or(true);
    Ok(Arc::new(Cut { link, both, lasts: fields.take("for")? }))
}

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let (link, when, both) = (draw.link(), draw.when(), draw.site.chance(0.5));
    Some(Fault::new(when, Cut { link, both, lasts: Some(draw.up_to(3)) }))
}

fn draw_one_way(draw: &mut FaultDraw<'_>) -> Vec<Fault> {
    let (client, when, lasts) = (draw.client(), draw.when(), Some(draw.up_to(3)));
    let to_client = draw.site.chance(0.5);
    let cut = |server: String| {
        let link = if to_client { Link::new(&server, &client) } else { Link::new(&client, &server) };
        Fault::new(when.clone(), Cut { link, both: false, lasts })
    };
    draw.some_servers().into_iter().map(cut).collect()
}

impl Action for Cut {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("cut", &self.link);
        fields.put_some("both", (!self.both).then_some(&false));
        fields.put_some("for", self.lasts.as_ref());
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.link.from, &self.link.to]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.link(&self.link)?;
        check.lasting("for", self.lasts)
    }

    fn strike(&self, strike: &Strike) {
        let links = strike.directions(&self.link, self.both);
        links.iter().for_each(|(from, to)| strike.world().cut(*from, *to));
        let detail = format!("cut {}", self.link.arrow(self.both));
        let begun = strike.begins(NETWORK, strike.on_links(LinkFault::Cut, &links), self.lasts, &detail);
        begun.until(&format!("over: {detail}"), move |strike| {
            links.iter().for_each(|(from, to)| strike.world().heal(*from, *to));
        });
    }

    fn reach(&self) -> Reach {
        Reach::link(&self.link, self.both)
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        self.lasts
    }
}
