//! How a simulated server is run: started in each life of its process, stopped, and asked to act.

use futures_util::future::BoxFuture;

use crate::world::machine::{Machine, WorldMachine};

/// A simulated server, in all lives of its process. What must survive a crash (its disk aside) is kept here.
///
/// It runs on any [`Machine`]; without the parameter, on a process of a simulated world.
pub trait Host<M: Machine = WorldMachine>: Send + Sync + 'static {
    /// What errors call it: "a Redis server".
    fn noun(&self) -> &'static str;

    /// Begins a new life of its process, and returns the main task of that life. The task ends with the
    /// process.
    fn start(&self, machine: M) -> BoxFuture<'static, ()>;

    /// Shuts down in order, as the process is about to be killed: what it wrote is synced.
    fn shut_down(&self) {}

    /// The process was killed: the server of this life is gone.
    fn died(&self) {}

    /// The wall clock of its machine was set.
    fn clock_set(&self) {}

    /// What it can be asked to do ([`Host::act`]).
    fn actions(&self) -> &'static [Action] {
        &[]
    }

    /// Whether it could do the action now: it is up, and in the role that the action needs.
    fn offers(&self, action: &str) -> bool {
        self.actions().iter().any(|known| known.name == action)
    }

    /// Does one of its [`Host::actions`].
    ///
    /// # Errors
    ///
    /// As [`Host::check`].
    fn act(&self, action: &str, argument: Option<&str>) -> Result<Acted, ActionError> {
        self.check(action, argument).map(|_| Acted::Down)
    }

    /// Looks an action up, and checks that its argument is there if it needs one, and only then.
    ///
    /// # Errors
    ///
    /// [`ActionError`] says what is wrong, and what would be right.
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

    /// Whether its data survive a restart, on its machine's disk or with its peers. If not, a loss of power
    /// loses no more than a crash.
    fn keeps_on_disk(&self) -> bool {
        false
    }

    /// Requests that it has carried out, in all lives together.
    fn executed(&self) -> u64 {
        0
    }

    /// The run is over: drops what would keep the world alive.
    fn close(&self) {}
}

/// Something that a server can be asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Its name, as schedules write it: "promote".
    pub name: &'static str,
    /// What its argument is, if it needs one: "the key".
    pub argument: Option<&'static str>,
}

/// What came of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acted {
    /// It was done; in words for the history: "leads from now on".
    Done(String),
    /// The server was asked, and could not; in words for the history.
    Failed(String),
    /// The server is down: nobody was asked.
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
        /// What the argument is.
        needed: &'static str,
    },
    /// There is an argument too many.
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
