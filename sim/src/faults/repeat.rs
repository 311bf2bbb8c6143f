//! Delivers a request twice, as a proxy that retries does. The connections between a client and a server
//! break when a request has reached the server and its answer has not reached the client. Once the client has
//! connected again, the network sends the same bytes once more, on a connection of its own. The server
//! executes them; nobody reads the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use history::{LinkFault, VerdictKind};

use super::action::{Action, Fault, FaultCheck};
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::kind::FaultKind;
use super::link::Link;
use super::scene::{Role, Scene};
use super::strike::{NETWORK, Strike};
use super::trigger::Trigger;
use crate::field_path::Invalid;
use crate::span::Span;
use crate::world::World;
use crate::world::process::ProcessId;
use crate::world::requests::Request;

/// Delivers a request of a client to a server twice. A script strikes it before the client sends the request.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// The link from the client to the server.
    pub link: Link,
    /// The time between the client's next connection and the second delivery. Default: none.
    pub by: Option<Span>,
    /// The time for which the network waits for a request, and then keeps it.
    pub lasts: Option<Span>,
}

impl Repeat {
    /// Returns a repeat of a request as soon as the client has connected again. The network keeps the request
    /// until then.
    pub fn between(client: &str, server: &str) -> Self {
        Self { link: Link::new(client, server), by: None, lasts: None }
    }
}

/// The row of this fault in the table. It has no form and no class: these would change the kept results of
/// exhaustive searches and of the comparison.
pub static KIND: FaultKind = FaultKind {
    verb: "repeat",
    fields: &["by", "for"],
    read,
    variants: &[&ALONE],
    wide: &[],
    forms: |_| Vec::new(),
    class: None,
};

/// Repeats a request if a search draws no other faults. With a weight beside the others it would change the
/// faults that every seed draws.
static ALONE: Variant = Variant { order: 116, weight: |_| 0, draw };

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let link = fields.need("repeat", "repeat", "the client and the server")?;
    Ok(Arc::new(Repeat { link, by: fields.take("by")?, lasts: fields.take("for")? }))
}

/// Draws a repeat of the request whose reply is about to leave the server.
fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let scene = draw.scene;
    let serves =
        |name: &String| scene.role(name) != Some(Role::Client) && scene.needs_no_greeting(name).is_ok();
    let servers: Vec<_> = scene.processes().into_iter().filter(serves).collect();
    if servers.is_empty() {
        return None;
    }
    let (client, server) = (draw.client(), draw.one_of(&servers));
    let (nth, link) = (1 + draw.site.below(6) as u32, Link::new(&client, &server));
    let when = Trigger::After { process: server, point: format!("sends to {client}"), nth, plus: Span::ZERO };
    let (by, lasts) = (draw.up_to(1), Some(draw.up_to(3)));
    let by = draw.site.chance(0.7).then_some(by);
    Some(Fault::new(when, Repeat { link, by, lasts }))
}

impl Action for Repeat {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("repeat", &self.link);
        fields.put_some("by", self.by.as_ref());
        fields.put_some("for", self.lasts.as_ref());
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.link.from, &self.link.to]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        check.link(&self.link)?;
        let Link { from, to } = &self.link;
        if check.scene.role(from) != Some(Role::Client) {
            let problem = format!("`{from}` is no client: write the client first, then the server");
            return Err(check.refuse(KIND.verb, problem));
        }
        check.scene.needs_no_greeting(to).map_err(|greeting| {
            let why = format!("on a new connection it needs {greeting} before a request");
            check.refuse(KIND.verb, format!("the network can't repeat a request to `{to}`: {why}"))
        })?;
        check.lasting("by", self.by)?;
        check.lasting("for", self.lasts)
    }

    fn prepare(&self, world: &World) {
        if let (Some(client), Some(server)) = (world.find(&self.link.from), world.find(&self.link.to)) {
            world.keep_requests(client, server);
        }
    }

    fn strike(&self, strike: &Strike) {
        let links = strike.directions(&self.link, false);
        let arrow = self.link.arrow(false);
        let pending = Arc::new(AtomicBool::new(true));
        let effect = strike.on_links(LinkFault::Repeat, &links);
        let begun = strike.begins(NETWORK, effect, self.lasts, &format!("repeats a request: {arrow}"));
        let over = Arc::clone(&pending);
        begun.until_told(&format!("sent a request again: {arrow}"), move |_| {
            let is_early = over.swap(false, Ordering::Relaxed);
            is_early.then(|| format!("over, no request was repeated: {arrow}"))
        });
        let repeating = Repeating { repeat: self.clone(), strike: strike.clone(), pending };
        repeating.begin();
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        self.lasts
    }

    /// Excuses a leak: a lock server can't tell a repeated acquire from a new one. After the release it
    /// stores a key that its client does not know of.
    fn excuses(&self, scene: &dyn Scene) -> Vec<VerdictKind> {
        if scene.role(&self.link.to) == Some(Role::Server) { vec![VerdictKind::Leaked] } else { Vec::new() }
    }

    fn smaller(&self) -> Vec<Arc<dyn Action>> {
        if self.by.is_some() { vec![Arc::new(Self { by: None, ..self.clone() })] } else { Vec::new() }
    }
}

/// A repeat under way.
struct Repeating {
    repeat: Repeat,
    strike: Strike,
    /// False once the request was sent again, or the fault has ended without that.
    pending: Arc<AtomicBool>,
}

impl Repeating {
    /// Breaks the connections at once if the server has a request without an answer, so that its reply is
    /// lost. Otherwise waits for one.
    fn begin(self) {
        let (world, (client, server)) = (self.strike.world().clone(), self.ends());
        let delivered =
            world.delivered_request(client, server).map(|request| (self.breaks(&request), request));
        world.clone().spawn_harness(async move {
            let (connections, request) = match delivered {
                Some(delivered) => delivered,
                None => {
                    let request = world.next_request(client, server).await;
                    if !self.is_pending() {
                        return;
                    }
                    (self.breaks(&request), request)
                }
            };
            world.reconnected(client, server, connections).await;
            self.wait().await;
            self.repeats(&request);
        });
    }

    /// Returns the client and the server.
    fn ends(&self) -> (ProcessId, ProcessId) {
        (self.strike.process(&self.repeat.link.from), self.strike.process(&self.repeat.link.to))
    }

    fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// Breaks the connections. Returns the number of connections that the client has opened so far.
    fn breaks(&self, request: &Request) -> u64 {
        let ((client, server), link) = (self.ends(), &self.repeat.link);
        self.strike.world().reset(client, server);
        let effect = self.strike.on_links(LinkFault::Reset, &self.strike.directions(link, true));
        let detail = format!("resets {} after a request of {} bytes", link.arrow(true), request.length());
        self.strike.acts(NETWORK, effect, &detail);
        self.strike.world().connections_opened(client, server)
    }

    /// Waits between the client's connection and the second delivery.
    async fn wait(&self) {
        if let Some(by) = self.repeat.by {
            let world = self.strike.world();
            world.sleep_until(world.now() + by.as_nanos()).await;
        }
    }

    /// Sends the request again, and ends the fault. Does nothing if the fault has ended.
    fn repeats(&self, request: &Request) {
        if self.is_pending() {
            let is_sent = self.strike.world().send_again(request);
            self.pending.store(!is_sent, Ordering::Relaxed);
            self.strike.finish();
        }
    }
}
