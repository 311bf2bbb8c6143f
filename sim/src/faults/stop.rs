//! Shuts a server down cleanly: it syncs its data to its disk first.

use std::sync::Arc;

use history::{Kind, Name, VerdictKind};

use super::action::{Action, Fault, FaultCheck};
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::form::{Form, half};
use super::kind::FaultKind;
use super::reach::Reach;
use super::scene::{Role, Scene};
use super::strike::Strike;
use crate::field_path::Invalid;
use crate::record::note;
use crate::span::Span;

/// Shuts a server down cleanly.
#[derive(Clone, Debug)]
pub struct Stop {
    /// The server, or the resource.
    pub process: String,
    /// The time until it restarts, if it does.
    pub restart_after: Option<Span>,
}

/// The row of this fault in the table. It is not compared, since a crash takes more from a server.
pub static KIND: FaultKind = FaultKind {
    verb: "stop",
    fields: &["restart_after"],
    read,
    variants: &[&OF_SERVER],
    wide: &[],
    forms: |lease| vec![restarting(half(lease))],
    class: None,
};

/// Returns the form of a clean stop with a restart after this time, for servers that have a disk.
pub fn restarting(after: Span) -> Form {
    let words = format!("clean stop of a server with a disk, restarted after {after}");
    Form::of_processes(30, KIND.verb, words, move |scene, process| {
        let suits = scene.role(process) == Some(Role::Server) && scene.disk(process).is_ok();
        suits.then(|| Stop { process: process.to_owned(), restart_after: Some(after) })
    })
}

/// Stops a server.
pub static OF_SERVER: Variant =
    Variant { order: 50, weight: |scene| u64::from(!scene.has_leader()), draw: draw_of_server };

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let process = fields.need("stop", "stop", "the process")?;
    Ok(Arc::new(Stop { process, restart_after: fields.take("restart_after")? }))
}

fn draw_of_server(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let (process, when) = (draw.server(), draw.when());
    Some(Fault::new(when, Stop { process, restart_after: Some(draw.up_to(2)) }))
}

impl Action for Stop {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("stop", &self.process);
        fields.put_some("restart_after", self.restart_after.as_ref());
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.process]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        let name = &self.process;
        check.process(name)?;
        if check.scene.role(name) == Some(Role::Client) {
            let problem = format!("`stop` does not apply to the worker `{name}`: crash or pause it");
            return Err(check.refuse("stop", problem));
        }
        check.ends_once(name, self.restart_after)
    }

    fn strike(&self, strike: &Strike) {
        let Self { process, restart_after } = self.clone();
        strike.soon(move |strike| {
            strike.stage().shut_down(strike.process(&process));
            note(&process, Kind::ProcessCrashed { detail: Some(Name::from("shut down cleanly")) });
            strike.kill(&process, false, restart_after);
        });
    }

    fn reach(&self) -> Reach {
        Reach::Life(self.process.clone())
    }

    fn heals_after(&self, _: &dyn Scene) -> Option<Span> {
        self.restart_after
    }

    /// Excuses a server without a disk: its tokens start at 1 again, and it grants held locks again.
    fn excuses(&self, scene: &dyn Scene) -> Vec<VerdictKind> {
        if scene.forgets(&self.process, false) {
            vec![VerdictKind::TokenRegressed, VerdictKind::TwoValid, VerdictKind::Unheld]
        } else {
            Vec::new()
        }
    }

    fn ends(&self) -> Option<(&str, Option<Span>)> {
        Some((&self.process, self.restart_after))
    }
}
