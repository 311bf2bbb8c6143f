//! A fault: its trigger and its action.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use history::VerdictKind;
use serde::{Serialize, Serializer};

use super::fields::Fields;
use super::link::Link;
use super::reach::Reach;
use super::scene::Scene;
use super::strike::Strike;
use super::trigger::Trigger;
use crate::field_path::{FieldPath, Invalid};
use crate::span::{Shift, Span};
use crate::world::World;

/// One fault of a schedule.
#[derive(Clone, Debug, Serialize)]
pub struct Fault {
    /// Its trigger: the time or the point at which it strikes.
    pub when: Trigger,
    /// Its action: its effect when it strikes.
    #[serde(serialize_with = "write")]
    pub what: Arc<dyn Action>,
}

/// The action of a fault: its form in schedule files, its validation, its effect and the end of the effect.
///
/// To add one, implement this trait. For schedule files, add a [`FaultKind`](super::FaultKind) to a table of
/// [`Faults`](super::Faults).
pub trait Action: Any + fmt::Debug + Send + Sync {
    /// Returns the word that names it in schedule files.
    fn verb(&self) -> &'static str;

    /// Writes the fields of its table: first the one that [`Action::verb`] names, then those that differ from
    /// their defaults. Two actions are equal if they write the same fields.
    fn write(&self, fields: &mut Fields);

    /// Returns the processes that it names, in the order of a schedule file.
    fn processes(&self) -> Vec<&str>;

    /// Checks that its target exists and suits it, and that it has an effect.
    ///
    /// # Errors
    ///
    /// [`Invalid`] names the wrong field, and the remedy if it is known.
    fn check(&self, check: &FaultCheck<'_>) -> Result<(), Invalid>;

    /// Prepares the world for it, before the run begins. Default: does nothing.
    #[doc(hidden)]
    fn prepare(&self, world: &World) {
        let _ = world;
    }

    /// Applies it. This runs inside the event that triggered the fault: use [`Strike::soon`] for effects that
    /// must not interrupt a process's work.
    fn strike(&self, strike: &Strike);

    /// Returns the time from the strike until it heals by itself: zero if it ends at once, `None` if it
    /// never heals.
    fn heals_after(&self, scene: &dyn Scene) -> Option<Span>;

    /// Returns the longest time for which delayed messages are in flight after it has healed.
    fn in_flight(&self) -> Span {
        Span::ZERO
    }

    /// Returns the steps of a run that it touches, for exhaustive searches. Default: all.
    fn reach(&self) -> Reach {
        Reach::Everything
    }

    /// Returns the verdicts that it excuses: a run with this fault may have them although no lock broke a
    /// promise.
    fn excuses(&self, scene: &dyn Scene) -> Vec<VerdictKind> {
        let _ = scene;
        Vec::new()
    }

    /// Returns the process whose clocks it runs at another rate, and the rate: seconds of the clock in each
    /// second of true time. Default: none.
    fn clock_rate(&self) -> Option<(&str, f64)> {
        None
    }

    /// Returns smaller actions, for shrinking: without an option, or on fewer processes. Shrinking shortens
    /// lengths of time by itself. Default: none.
    fn smaller(&self) -> Vec<Arc<dyn Action>> {
        Vec::new()
    }

    /// Returns the process that it ends and the time until that process restarts; `None` if it ends none.
    fn ends(&self) -> Option<(&str, Option<Span>)> {
        None
    }
}

impl dyn Action {
    /// Returns the action as a `T`, if it is one.
    pub fn downcast_ref<T: Action>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    /// Returns the fields of its table in a schedule file.
    pub fn fields(&self) -> Fields {
        let mut fields = Fields::default();
        self.write(&mut fields);
        fields
    }
}

impl PartialEq for dyn Action {
    fn eq(&self, other: &Self) -> bool {
        self.verb() == other.verb() && self.fields() == other.fields()
    }
}

impl Serialize for dyn Action {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields().serialize(serializer)
    }
}

impl Fault {
    /// Creates a fault that does `what` at `when`.
    pub fn new(when: Trigger, what: impl Action) -> Self {
        Self { when, what: Arc::new(what) }
    }
}

impl PartialEq for Fault {
    fn eq(&self, other: &Self) -> bool {
        self.when == other.when && *self.what == *other.what
    }
}

fn write<S: Serializer>(what: &Arc<dyn Action>, serializer: S) -> Result<S::Ok, S::Error> {
    what.serialize(serializer)
}

/// The context of [`Action::check`].
#[derive(Clone, Copy)]
pub struct FaultCheck<'a> {
    /// The word that names the action in schedule files.
    pub verb: &'static str,
    /// The table of the action.
    pub path: &'a FieldPath,
    /// The processes and links of the schedule.
    pub scene: &'a dyn Scene,
    /// All faults of the schedule.
    pub faults: &'a [Fault],
    /// The position of the fault among them.
    pub number: usize,
}

impl FaultCheck<'_> {
    /// Returns the faults before this one.
    pub fn before(&self) -> &[Fault] {
        self.faults.get(..self.number).unwrap_or(self.faults)
    }

    /// Returns an error about the field `key`.
    pub fn refuse(&self, key: &'static str, problem: impl Into<String>) -> Invalid {
        self.path.key(key).says(problem)
    }

    /// Checks that the process in the field of the verb exists.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the names of the processes that exist.
    pub fn process(&self, name: &str) -> Result<(), Invalid> {
        self.process_at(self.path.key(self.verb), name)
    }

    /// Checks that the process `name` at `path` exists.
    ///
    /// # Errors
    ///
    /// As [`FaultCheck::process`].
    pub fn process_at(&self, path: FieldPath, name: &str) -> Result<(), Invalid> {
        let known = self.scene.processes();
        if known.iter().any(|known| known == name) {
            return Ok(());
        }
        let (verb, known) = (self.verb, known.join(", "));
        Err(path.says(format!("unknown process `{name}` in `{verb}`: the schedule has {known}")))
    }

    /// Checks that the link in the field of the verb exists.
    ///
    /// # Errors
    ///
    /// [`Invalid`] for a process that does not exist, and for two processes without a link.
    pub fn link(&self, link: &Link) -> Result<(), Invalid> {
        let Link { from, to } = link;
        let path = self.path.key(self.verb);
        for (at, name) in [from, to].into_iter().enumerate() {
            self.process_at(path.index(at), name)?;
        }
        if from == to {
            return Err(path.says(format!("`{from}` has no link to itself")));
        }
        let refused = |why| path.says(format!("there is no link from `{from}` to `{to}`: {why}"));
        self.scene.link(from, to).map_err(refused)
    }

    /// Checks that the process has an action with the name of the verb.
    ///
    /// # Errors
    ///
    /// [`Invalid`] for a process that does not exist, and for one without the action.
    pub fn host(&self, name: &str) -> Result<(), Invalid> {
        let refused = self.scene.action(name, self.verb);
        let is_known = self.scene.processes().iter().any(|known| self.scene.action(known, self.verb).is_ok());
        // If no process has the action, that error helps more than an unknown name.
        if is_known {
            self.process(name)?;
        }
        refused.map_err(|why| self.refuse(self.verb, format!("`{}` of `{name}`: {why}", self.verb)))
    }

    /// Checks that the time in the field `key` is not zero.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if it is zero.
    pub fn lasting(&self, key: &'static str, span: Option<Span>) -> Result<(), Invalid> {
        match span {
            Some(span) if span.is_zero() => {
                Err(self.refuse(key, format!("`{key}` is 0s: the fault would do nothing")))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the shift in the field `key` is not zero.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if it is zero.
    pub fn moving(&self, key: &'static str, by: Shift) -> Result<(), Invalid> {
        if by.as_nanos() != 0 {
            return Ok(());
        }
        Err(self.refuse(key, format!("`{key}` is 0s: the fault would do nothing")))
    }

    /// Checks that at most one fault ends a process for good.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if an earlier fault has ended it already.
    pub fn ends_once(&self, name: &str, restart_after: Option<Span>) -> Result<(), Invalid> {
        let is_same = |fault: &Fault| fault.what.ends() == Some((name, None));
        if restart_after.is_none() && self.before().iter().any(is_same) {
            let problem = format!("two faults end `{name}` for good: give one of them a `restart_after`");
            return Err(self.refuse(self.verb, problem));
        }
        Ok(())
    }
}
