//! Runs a simulated server: starts it in each life of its process, stops it, and calls its actions.

use futures_util::future::BoxFuture;

use crate::world::machine::{Machine, WorldMachine};

/// A simulated server, in all lives of its process. It holds the data that survive a crash of the process,
/// except for the disk, which belongs to the machine.
///
/// `M` is the kind of machine that it runs on; the default is a process of a simulated world.
pub trait Host<M: Machine = WorldMachine>: Send + Sync + 'static {
    /// Returns the kind of server for error messages: "a Redis server".
    fn noun(&self) -> &'static str;

    /// Returns the bytes that it needs on a connection before the first request, for error messages; `None`
    /// if it needs none.
    fn greeting(&self) -> Option<&'static str> {
        None
    }

    /// Starts a new life of its process. Returns the main task of that life, which ends with the process.
    fn start(&self, machine: M) -> BoxFuture<'static, ()>;

    /// Syncs its writes, for a clean shutdown. The process is killed right afterwards.
    fn shut_down(&self) {}

    /// Drops the state of the present life, after the process was killed.
    fn died(&self) {}

    /// Reacts to a change of its machine's wall clock.
    fn clock_set(&self) {}

    /// Returns the actions that [`Host::act`] knows.
    fn actions(&self) -> &'static [Action] {
        &[]
    }

    /// Returns true if it can do the action now: it is up, and in the role that the action needs.
    fn offers(&self, action: &str) -> bool {
        self.actions().iter().any(|known| known.name == action)
    }

    /// Runs one of its [`Host::actions`].
    ///
    /// # Errors
    ///
    /// As [`Host::check`].
    fn act(&self, action: &str, argument: Option<&str>) -> Result<Acted, ActionError> {
        self.check(action, argument).map(|_| Acted::Down)
    }

    /// Looks an action up, and checks that it has an argument exactly if it needs one.
    ///
    /// # Errors
    ///
    /// [`ActionError`] if there is no such action, or the argument is missing or superfluous.
    fn check(&self, action: &str, argument: Option<&str>) -> Result<&'static Action, ActionError> {
        let (noun, actions) = (self.noun(), self.actions());
        let Some(found) = actions.iter().find(|known| known.name == action) else {
            let known: Vec<_> = actions.iter().map(|known| known.name).collect();
            let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
            return Err(ActionError::Unknown { noun, action: action.to_owned(), known });
        };
        match (found.argument, argument) {
            (Some(needed), None) => Err(ActionError::NoArgument { noun, action: found.name, needed }),
            (None, Some(given)) => {
                Err(ActionError::Argument { noun, action: found.name, given: given.to_owned() })
            }
            _ => Ok(found),
        }
    }

    /// Returns true if its data survive a restart, on its machine's disk or with its peers. If not, a power
    /// loss is the same as a crash.
    fn keeps_on_disk(&self) -> bool {
        false
    }

    /// Returns the number of requests that it has executed in all lives.
    fn executed(&self) -> u64 {
        0
    }

    /// Drops references that would keep the world alive. Called at the end of a run.
    fn close(&self) {}
}

/// An action of a server.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Its name in schedules: "promote".
    pub name: &'static str,
    /// A description of its argument, if it needs one: "the key".
    pub argument: Option<&'static str>,
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acted {
    /// It was done. The text is for the history: "leads from now on".
    Done(String),
    /// The server could not do it. The text is for the history: "was to lead, and has no majority".
    Failed(String),
    /// Nothing was done: the server is down.
    Down,
}

/// An action that the server does not have, or that needs another argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// There is no such action.
    #[error("{noun} has no action `{action}`: known are {known}")]
    Unknown {
        /// The server.
        noun: &'static str,
        /// The action.
        action: String,
        /// The actions that it has.
        known: String,
    },
    /// The argument is missing.
    #[error("`{action}` of {noun} needs an argument: {needed}")]
    NoArgument {
        /// The server.
        noun: &'static str,
        /// The action.
        action: &'static str,
        /// The description of the argument.
        needed: &'static str,
    },
    /// There is an argument, and the action takes none.
    #[error("`{action}` of {noun} takes no argument, and `{given}` was given: leave it out")]
    Argument {
        /// The server.
        noun: &'static str,
        /// The action.
        action: &'static str,
        /// The argument.
        given: String,
    },
}
