//! Draws random faults, all of which heal by themselves. Most are aimed at the time between a grant and the
//! write, or at replies that are about to leave a server, since locks break there.

use super::action::Fault;
use super::link::Link;
use super::scene::{Role, Scene};
use super::trigger::Trigger;
use crate::entropy::Site;
use crate::span::{Shift, Span};

/// The largest number of a request or reply on a link at which a drawn fault is aimed.
const SENT_MAX: u64 = 12;

/// One of the variants in which a kind of fault is drawn.
pub struct Variant {
    /// Its rank among all variants, by which drawn numbers select one. No two variants have the same.
    pub order: u32,
    /// Its weight in a scene, relative to the weights of the others.
    pub weight: fn(&dyn Scene) -> u64,
    /// Draws a fault. Returns `None` if the scene can't have one; it must leave `site` unused in that case.
    pub draw: fn(&mut FaultDraw<'_>) -> Option<Fault>,
}

/// A source of random faults for a scene, from one site of randomness only.
pub struct FaultDraw<'a> {
    /// The scene.
    pub scene: &'a dyn Scene,
    /// The source of randomness.
    pub site: &'a mut Site,
}

impl FaultDraw<'_> {
    /// Draws one of the variants by weight.
    pub fn variant<'v>(&mut self, variants: &[(&'v Variant, u64)]) -> Option<&'v Variant> {
        let mut at = self.site.below(variants.iter().map(|(_, weight)| weight).sum());
        for (variant, weight) in variants {
            if at < *weight {
                return Some(variant);
            }
            at -= weight;
        }
        None
    }

    /// Draws a fault in one of the variants by weight.
    pub fn by_weight(&mut self, variants: &[(&Variant, u64)]) -> Vec<Fault> {
        let variant = self.variant(variants);
        variant.and_then(|variant| (variant.draw)(self)).into_iter().collect()
    }

    /// Draws one of `choices`; returns the default value if there are none.
    pub fn one_of<T: Clone + Default>(&mut self, choices: &[T]) -> T {
        let at = self.site.below(choices.len() as u64) as usize;
        choices.get(at).cloned().unwrap_or_default()
    }

    /// Draws a trigger: a point in two of three cases, else an early time of the run.
    pub fn when(&mut self) -> Trigger {
        let early = self.up_to(4);
        let (process, plus) = (self.passer(), self.up_to(1));
        let points = self.scene.points(&process);
        let point = self.one_of(&points);
        let plus = if self.site.chance(0.3) { plus } else { Span::ZERO };
        let aimed = self.nth_round(Trigger::After { process, point, nth: 1, plus });
        if self.site.chance(0.67) && !points.is_empty() { aimed } else { Trigger::At(early) }
    }

    /// Moves the trigger to a later round in some cases, if its process has several.
    pub fn nth_round(&mut self, mut when: Trigger) -> Trigger {
        let draw = self.site.below(3) as u32;
        if let Trigger::After { process, nth, .. } = &mut when {
            *nth = 1 + draw.min(self.scene.rounds(process).saturating_sub(1));
        }
        when
    }

    /// Draws a client, one of its servers or the resource, and the trigger at which the client has sent it a
    /// request.
    pub fn request(&mut self) -> (String, String, Trigger) {
        let (client, server) = self.pair();
        let when = self.sending(&client, &server);
        (client, server, when)
    }

    /// Draws a client, one of its servers or the resource, and the trigger at which it has sent the client a
    /// reply, which is still in flight.
    pub fn reply(&mut self) -> (String, String, Trigger) {
        let (client, server) = self.pair();
        let when = self.sending(&server, &client);
        (client, server, when)
    }

    fn pair(&mut self) -> (String, String) {
        let (client, server) = (self.client(), self.server());
        let resource = self.resource();
        (client, if self.site.chance(0.8) { server } else { resource })
    }

    fn sending(&mut self, from: &str, to: &str) -> Trigger {
        let nth = 1 + self.site.below(SENT_MAX) as u32;
        Trigger::After { process: from.to_owned(), point: format!("sends to {to}"), nth, plus: Span::ZERO }
    }

    /// Draws a trigger within a lease; `None` if no point of a client is known.
    pub fn under_lease(&mut self) -> Option<Trigger> {
        let process = self.client();
        let points = self.scene.points_inside(&process);
        if points.is_empty() {
            return None;
        }
        let (point, plus) = (self.one_of(&points), self.up_to(1));
        Some(self.nth_round(Trigger::After { process, point, nth: 1, plus }))
    }

    /// Draws a name under which servers pass points.
    pub fn speaker(&mut self) -> String {
        let mut speakers = self.scene.speakers();
        if speakers.len() > 1 { self.one_of(&speakers) } else { speakers.pop().unwrap_or_default() }
    }

    /// Returns the resource, or draws a client if there is none.
    pub fn resource(&mut self) -> String {
        let mut resources = self.scene.with_role(Role::Resource);
        resources.pop().unwrap_or_else(|| self.client())
    }

    /// Draws a process.
    pub fn process(&mut self) -> String {
        let processes = self.scene.processes();
        self.one_of(&processes)
    }

    /// Draws a server, or a client if there is none.
    pub fn server(&mut self) -> String {
        let servers = self.scene.with_role(Role::Server);
        if servers.is_empty() { self.client() } else { self.one_of(&servers) }
    }

    /// Draws some of the servers: at least one, and maybe all.
    pub fn some_servers(&mut self) -> Vec<String> {
        let mut servers = self.scene.with_role(Role::Server);
        let count = 1 + self.site.below(servers.len() as u64) as usize;
        while servers.len() > count {
            let out = self.site.below(servers.len() as u64) as usize;
            servers.remove(out);
        }
        servers
    }

    /// Draws a client.
    pub fn client(&mut self) -> String {
        let clients = self.scene.with_role(Role::Client);
        self.one_of(&clients)
    }

    /// Draws a link between a client and a server or the resource, in either direction.
    pub fn link(&mut self) -> Link {
        let (client, server) = (self.client(), self.server());
        let other = if self.site.chance(0.5) { server } else { self.resource() };
        if self.site.chance(0.5) { Link::new(&client, &other) } else { Link::new(&other, &client) }
    }

    /// Draws a time of at most `times` the scene's scale.
    pub fn up_to(&mut self, times: u64) -> Span {
        let longest = self.scene.scale().times(times);
        self.span(Span::from_millis(1), longest)
    }

    /// Draws a time from `min` to `max` in whole milliseconds, which are easy to read.
    pub fn span(&mut self, min: Span, max: Span) -> Span {
        let millis = |span: Span| span.as_nanos() / 1_000_000;
        Span::from_millis(self.site.range_nanos(millis(min), millis(max)))
    }

    /// Draws the shift of a clock.
    pub fn shift(&mut self) -> Shift {
        let (by, back) = (self.up_to(2), self.site.chance(0.5));
        let nanos = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        Shift::from_nanos(if back { -nanos } else { nanos })
    }

    /// Draws a process that passes points. A replica does not, since it serves nobody at first.
    fn passer(&mut self) -> String {
        match self.site.below(4) {
            0 => self.speaker(),
            1 => self.resource(),
            _ => self.client(),
        }
    }
}
