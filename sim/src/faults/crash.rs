//! Kills a process, as SIGKILL does. It loses its memory and its connections; its disk keeps all written
//! data, or only synced data if power fails, too. A worker that restarts begins its last round again.

use std::sync::Arc;

use history::{Kind, Name, VerdictKind};

use super::action::{Action, Fault, FaultCheck};
use super::class::Class;
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::form::{Form, half};
use super::kind::FaultKind;
use super::reach::Reach;
use super::scene::{Role, Scene};
use super::strike::Strike;
use super::trigger::Trigger;
use crate::field_path::Invalid;
use crate::record::note;
use crate::span::Span;
use crate::world::files::WRITES;

/// Kills a process.
#[derive(Clone, Debug)]
pub struct Crash {
    /// The process.
    pub process: String,
    /// True if the disk loses unsynced data.
    pub power_loss: bool,
    /// The time until it restarts, if it does.
    pub restart_after: Option<Span>,
}

/// The largest number of the reply after which a drawn crash strikes.
const REPLIES_MAX: u64 = 12;

impl Crash {
    /// Returns a crash of `process` without a power loss and without a restart.
    pub fn of(process: &str) -> Self {
        Self { process: process.to_owned(), power_loss: false, restart_after: None }
    }
}

/// The row of this fault in the table.
pub static KIND: FaultKind = FaultKind {
    verb: "crash",
    fields: &["power_loss", "restart_after"],
    read,
    variants: &[&OF_SERVER, &OF_RESOURCE, &OF_CLIENT, &OF_WRITER],
    wide: &[&AFTER_REPLY],
    forms: |lease| vec![restarting(half(lease))],
    class: Some(&CLASS),
};

/// Kills a worker or a server, which starts again; the persistence of servers is drawn, too.
static CLASS: Class = Class {
    order: 20,
    name: "crash",
    needs: None,
    draw: |draw| draw.by_weight(&[(&OF_SERVER, 2), (&OF_CLIENT, 1)]),
};

/// Returns the form of a crash with a restart after this time. Power is lost if it is a server with a disk. A
/// resource without a disk is spared: it could not keep its promise.
pub fn restarting(after: Span) -> Form {
    let words = format!("crash of a process, restarted after {after}");
    Form::of_processes(20, KIND.verb, words, move |scene, process| {
        let role = scene.role(process);
        let is_mortal = role != Some(Role::Resource) || scene.disk(process).is_ok();
        let power_loss = role != Some(Role::Client) && scene.may_lose_power(process);
        is_mortal.then(|| Crash { process: process.to_owned(), power_loss, restart_after: Some(after) })
    })
}

/// Crashes a server.
pub static OF_SERVER: Variant = Variant { order: 40, weight: |_| 3, draw: draw_of_server };

/// Crashes the resource, if it keeps data on a disk.
pub static OF_RESOURCE: Variant = Variant { order: 60, weight: |_| 2, draw: draw_of_resource };

/// Crashes a client.
pub static OF_CLIENT: Variant = Variant { order: 70, weight: |_| 2, draw: draw_of_client };

/// Crashes a client that writes files, in most cases with a power loss. Without one in the scene the weight
/// is 0, so that no other draw moves.
pub static OF_WRITER: Variant =
    Variant { order: 320, weight: |scene| 2 * u64::from(!writers(scene).is_empty()), draw: draw_of_writer };

/// Returns the clients that write files, in a run without faults.
fn writers(scene: &dyn Scene) -> Vec<String> {
    let mut clients = scene.with_role(Role::Client);
    clients.retain(|client| scene.points(client).iter().any(|point| point == WRITES));
    clients
}

/// Crashes a server once a client has its reply, such as a vote, and restarts it before the next request.
pub static AFTER_REPLY: Variant = Variant { order: 235, weight: |_| 2, draw: draw_after_reply };

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let process = fields.need("crash", "crash", "the process")?;
    let power_loss = fields.take("power_loss")?.unwrap_or(false);
    Ok(Arc::new(Crash { process, power_loss, restart_after: fields.take("restart_after")? }))
}

fn draw_of_server(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let (process, when) = (draw.server(), draw.when());
    let power_loss = draw.site.chance(0.5) && draw.scene.may_lose_power(&process);
    Some(Fault::new(when, Crash { process, power_loss, restart_after: Some(draw.up_to(2)) }))
}

fn draw_after_reply(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let (client, process) = (draw.client(), draw.server());
    let nth = 1 + draw.site.below(REPLIES_MAX) as u32;
    let when =
        Trigger::After { process: client, point: format!("receives from {process}"), nth, plus: Span::ZERO };
    let power_loss = draw.scene.may_lose_power(&process) && draw.site.chance(0.7);
    let restart_after = Some(draw.span(Span::from_millis(1), Span::from_millis(50)));
    Some(Fault::new(when, Crash { process, power_loss, restart_after }))
}

fn draw_of_resource(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let process = draw.scene.with_role(Role::Resource).pop().filter(|name| draw.scene.disk(name).is_ok())?;
    let (when, power_loss) = (draw.when(), draw.site.chance(0.5));
    Some(Fault::new(when, Crash { process, power_loss, restart_after: Some(draw.up_to(2)) }))
}

fn draw_of_client(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let (process, when) = (draw.client(), draw.when());
    let (restarts, after) = (draw.site.chance(0.5), draw.up_to(2));
    let restart_after = restarts.then_some(after);
    Some(Fault::new(when, Crash { process, power_loss: false, restart_after }))
}

fn draw_of_writer(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let writers = writers(draw.scene);
    if writers.is_empty() {
        return None;
    }
    let (process, when) = (draw.one_of(&writers), draw.when());
    let (power_loss, restart_after) = (draw.site.chance(0.8), Some(draw.up_to(2)));
    Some(Fault::new(when, Crash { process, power_loss, restart_after }))
}

impl Action for Crash {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("crash", &self.process);
        fields.put_some("power_loss", self.power_loss.then_some(&true));
        fields.put_some("restart_after", self.restart_after.as_ref());
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.process]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        let name = &self.process;
        check.process(name)?;
        if self.power_loss
            && let Err(why) = check.scene.disk(name)
        {
            let problem =
                format!("`power_loss` does not apply to `{name}`: it keeps nothing on a disk ({why})");
            return Err(check.refuse("power_loss", problem));
        }
        check.ends_once(name, self.restart_after)
    }

    fn strike(&self, strike: &Strike) {
        let detail = if self.power_loss { "power lost" } else { "killed" };
        note(&self.process, Kind::ProcessCrashed { detail: Some(Name::from(detail)) });
        strike.kill(&self.process, self.power_loss, self.restart_after);
    }

    fn reach(&self) -> Reach {
        Reach::Life(self.process.clone())
    }

    /// Returns zero for a client that stays dead: the others must go on without it.
    fn heals_after(&self, scene: &dyn Scene) -> Option<Span> {
        let is_client = scene.role(&self.process) == Some(Role::Client);
        self.restart_after.or(is_client.then_some(Span::ZERO))
    }

    /// Excuses a server that forgets its data: its tokens start at 1 again, and it grants held locks again.
    fn excuses(&self, scene: &dyn Scene) -> Vec<VerdictKind> {
        if scene.forgets(&self.process, self.power_loss) {
            vec![VerdictKind::TokenRegressed, VerdictKind::TwoValid, VerdictKind::Unheld]
        } else {
            Vec::new()
        }
    }

    fn smaller(&self) -> Vec<Arc<dyn Action>> {
        if self.power_loss { vec![Arc::new(Self { power_loss: false, ..self.clone() })] } else { Vec::new() }
    }

    fn ends(&self) -> Option<(&str, Option<Span>)> {
        Some((&self.process, self.restart_after))
    }
}
