//! Asks a process to end, as an operator or a container platform does: it gets a signal, and is killed after
//! a grace period.
//!
//! A process that listens for the signal may end by itself; its end is that of its `main`. One that does not
//! listen ends at once. The model is the termination of a pod in Kubernetes ("Pod Lifecycle", "Termination of
//! Pods": SIGTERM, 30 seconds of grace, SIGKILL), whose default is that of `grace`.

use std::future::poll_fn;
use std::sync::Arc;

use history::{Effect, InstantFault, Kind, Name};

use super::action::{Action, Fault, FaultCheck};
use super::draw::{FaultDraw, Variant};
use super::fields::{Fields, Misread};
use super::kind::FaultKind;
use super::reach::Reach;
use super::scene::{Role, Scene};
use super::strike::Strike;
use crate::field_path::Invalid;
use crate::record::note;
use crate::span::Span;
use crate::world::signals::point;

/// Asks a process to end.
///
/// # Example
///
/// ```
/// use sim::faults::{Fault, Terminate, Trigger};
/// use sim::{Process, Sim, Span};
///
/// let mut sim = Sim::new(7);
/// sim.process("a", |process: Process| async move {
///     process.sleep(std::time::Duration::from_secs(9)).await;
/// });
/// sim.fault(Fault::new(Trigger::At(Span::from_secs(1)), Terminate::of("a")));
/// // It listens for no signal.
/// assert!(sim.run()?.trace().contains("ended by SIGTERM"));
/// # Ok::<(), sim::RunError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Terminate {
    /// The process: a program, not a simulated server.
    pub process: String,
    /// The signal that it gets.
    pub signal: Signal,
    /// The time after which it is killed; at least 1 ns.
    pub grace: Span,
    /// The time from its end until it restarts, if it does.
    pub restart_after: Option<Span>,
}

history::names! {
    /// A signal that asks a process to end.
    #[derive(Default)]
    pub enum Signal as "signal" {
        /// SIGTERM, which container platforms send.
        #[default]
        Terminate = "SIGTERM",
        /// SIGINT, which Ctrl-C sends.
        Interrupt = "SIGINT",
    }
}

/// The grace period of Kubernetes.
const GRACE: Span = Span::from_secs(30);

/// The row of this fault in the table. It has no form, since no workload of the exhaustive searches listens
/// for a signal: without that it is a crash. It is not compared, as nothing of it reaches a lock server.
pub static KIND: FaultKind = FaultKind {
    verb: "terminate",
    fields: &["signal", "grace", "restart_after"],
    read,
    variants: &[&OF_LISTENER],
    wide: &[],
    forms: |_| Vec::new(),
    class: None,
};

/// Terminates a client that listens for a signal. Without one in the scene the weight is 0, so that no other
/// draw moves.
pub static OF_LISTENER: Variant =
    Variant { order: 310, weight: |scene| 2 * u64::from(!listeners(scene).is_empty()), draw };

impl Terminate {
    /// Returns a SIGTERM to `process` with a grace period of 30 seconds and without a restart.
    pub fn of(process: &str) -> Self {
        let (process, signal) = (process.to_owned(), Signal::default());
        Self { process, signal, grace: GRACE, restart_after: None }
    }
}

impl Signal {
    /// Returns its number.
    fn number(self) -> i32 {
        match self {
            Self::Terminate => libc::SIGTERM,
            Self::Interrupt => libc::SIGINT,
        }
    }
}

/// Returns the clients that listen for a signal, in a run without faults.
fn listeners(scene: &dyn Scene) -> Vec<(String, Signal)> {
    let mut found = Vec::new();
    for client in scene.with_role(Role::Client) {
        let points = scene.points(&client);
        let hears = |signal: &&Signal| point(signal.number()).is_some_and(|point| points.contains(&point));
        found.extend(Signal::ALL.iter().find(hears).map(|signal| (client, *signal)));
    }
    found
}

fn read(fields: &mut Fields) -> Result<Arc<dyn Action>, Misread> {
    let process = fields.need("terminate", "terminate", "the process")?;
    let signal = fields.take("signal")?.unwrap_or_default();
    let grace = fields.take("grace")?.unwrap_or(GRACE);
    Ok(Arc::new(Terminate { process, signal, grace, restart_after: fields.take("restart_after")? }))
}

fn draw(draw: &mut FaultDraw<'_>) -> Option<Fault> {
    let listeners = listeners(draw.scene);
    if listeners.is_empty() {
        return None;
    }
    let (process, signal) = listeners[draw.site.below(listeners.len() as u64) as usize].clone();
    let (when, grace) = (draw.when(), draw.up_to(4));
    let (restarts, after) = (draw.site.chance(0.5), draw.up_to(2));
    let restart_after = restarts.then_some(after);
    Some(Fault::new(when, Terminate { process, signal, grace, restart_after }))
}

impl Action for Terminate {
    fn verb(&self) -> &'static str {
        KIND.verb
    }

    fn write(&self, fields: &mut Fields) {
        fields.put("terminate", &self.process);
        fields.put_some("signal", (self.signal != Signal::default()).then_some(&self.signal));
        fields.put_some("grace", (self.grace != GRACE).then_some(&self.grace));
        fields.put_some("restart_after", self.restart_after.as_ref());
    }

    fn processes(&self) -> Vec<&str> {
        vec![&self.process]
    }

    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid> {
        let name = &self.process;
        check.process(name)?;
        if let Err(why) = check.scene.signals(name) {
            let problem = format!("`terminate` does not apply to `{name}`: {why}");
            return Err(check.refuse("terminate", problem));
        }
        if self.grace.is_zero() {
            let problem = "`grace` is 0s: nothing could end by itself. Crash the process instead";
            return Err(check.refuse("grace", problem));
        }
        check.ends_once(name, self.restart_after)
    }

    fn strike(&self, strike: &Strike) {
        let Self { process, signal, grace, restart_after } = self.clone();
        let id = strike.process(&process);
        let effect = Effect::Instant(InstantFault::Other);
        if !strike.world().process(id).is_alive() {
            return strike.acts(&process, effect, &format!("was to get {signal}, and is dead"));
        }
        if !strike.world().signal(id, signal.number()) {
            let detail = format!("ended by {signal}");
            note(&process, Kind::ProcessCrashed { detail: Some(Name::from(detail.as_str())) });
            return strike.kill(&process, false, restart_after);
        }
        let begun = strike.begins(&process, effect, Some(grace), &format!("{signal}, {grace} to end"));
        strike.stage().terminate(id);
        let name = process.clone();
        begun.while_alive("terminated", move |strike| {
            let has_ended = strike.stage().has_ended(id);
            let detail = if has_ended { "ended by itself" } else { "killed after its grace period" };
            note(&name, Kind::ProcessCrashed { detail: Some(Name::from(detail)) });
            strike.kill(&name, false, restart_after);
        });
        let strike = strike.clone();
        strike.world().clone().spawn_harness(async move {
            if poll_fn(|cx| strike.stage().poll_ended(id, cx)).await {
                strike.end(KIND.verb, &process);
            }
        });
    }

    fn reach(&self) -> Reach {
        Reach::Life(self.process.clone())
    }

    /// Returns the time until its end for a client that stays dead: the others must go on without it.
    fn heals_after(&self, scene: &dyn Scene) -> Option<Span> {
        let is_client = scene.role(&self.process) == Some(Role::Client);
        let restarted = self.restart_after.or(is_client.then_some(Span::ZERO));
        restarted.map(|after| self.grace.plus(after))
    }

    fn ends(&self) -> Option<(&str, Option<Span>)> {
        Some((&self.process, self.restart_after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::Entropy;
    use crate::faults::{FAULTS, Faults, Trigger, crash};

    /// A client and a server. The client passes these points.
    struct World(&'static [&'static str]);

    impl Scene for World {
        fn processes(&self) -> Vec<String> {
            vec!["a".to_owned(), "redis".to_owned()]
        }

        fn role(&self, process: &str) -> Option<Role> {
            Some(if process == "a" { Role::Client } else { Role::Server })
        }

        fn action(&self, _: &str, _: &str) -> Result<(), String> {
            Ok(())
        }

        fn acquires(&self, _: &str) -> Result<(), String> {
            Ok(())
        }

        fn evictable(&self) -> Result<&[String], String> {
            Ok(&[])
        }

        fn points(&self, _: &str) -> Vec<String> {
            self.0.iter().map(|point| (*point).to_owned()).collect()
        }
    }

    /// Draws a fault for each of many seeds.
    fn drawn(table: &Faults, points: &'static [&'static str]) -> Vec<Option<Fault>> {
        (0..500).map(|seed| table.draw(&World(points), &mut Entropy::new(seed).site("faults"))).collect()
    }

    #[test]
    fn it_moves_no_draw_where_nobody_listens() {
        let others: Vec<_> = FAULTS.iter().copied().filter(|kind| kind.verb != KIND.verb).collect();
        for table in [Faults::new(&others), Faults::new(&others).widely()] {
            assert_eq!(drawn(&table.clone().with(&KIND), &["paid"]), drawn(&table, &["paid"]));
        }
    }

    #[test]
    fn a_client_that_writes_files_loses_power() {
        let loses = |fault: &Option<Fault>| {
            let crash = fault.as_ref()?.what.downcast_ref::<crash::Crash>()?;
            Some(crash.process == "a" && crash.power_loss)
        };
        let count =
            |points| drawn(&Faults::default(), points).iter().filter_map(loses).filter(|lost| *lost).count();
        assert!(count(&["paid", "writes files"]) > 10);
        assert_eq!(count(&["paid"]), 0);
    }

    #[test]
    fn it_is_drawn_with_the_signal_for_which_a_client_listens() {
        let drawn = drawn(&Faults::default(), &["listens for SIGINT"]);
        let own = |fault: &Option<Fault>| fault.as_ref()?.what.downcast_ref::<Terminate>().cloned();
        let terminated: Vec<Terminate> = drawn.iter().filter_map(own).collect();
        assert!(terminated.len() > 10, "{}", terminated.len());
        assert!(terminated.iter().all(|drawn| drawn.process == "a" && drawn.signal == Signal::Interrupt));
    }

    #[test]
    fn a_schedule_names_it() {
        let text =
            "when = { at = \"1s\" }\nwhat = { terminate = \"a\", signal = \"SIGINT\", grace = \"5s\" }";
        let fault: Fault = toml::from_str(text).unwrap();
        let (signal, grace) = (Signal::Interrupt, Span::from_secs(5));
        let expected = Terminate { signal, grace, ..Terminate::of("a") };
        assert_eq!(fault, Fault::new(Trigger::At(Span::from_secs(1)), expected));
    }
}
