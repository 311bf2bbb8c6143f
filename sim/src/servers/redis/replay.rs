//! Repeats effects that come from the append-only file or from the primary.

use super::command::{self, Lookup, Run};
use super::request::{ArgBuffer, Args};
use super::state::State;

/// Applies commands. Those between MULTI and EXEC are applied together when EXEC arrives.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    unit: Option<Vec<ArgBuffer>>,
    /// The database that the commands have selected.
    database: usize,
}

impl Replay {
    /// Applies one command. An unknown one is ignored: our own servers write none.
    pub(crate) fn apply(&mut self, state: &mut State, args: Args<'_>) {
        if args.is_empty() {
            return;
        }
        if args.at(0).eq_ignore_ascii_case(b"multi") {
            self.unit = Some(Vec::new());
        } else if args.at(0).eq_ignore_ascii_case(b"exec") {
            let unit = self.unit.take().unwrap_or_default();
            unit.iter().for_each(|command| self.run(state, command.args()));
        } else if let Some(unit) = &mut self.unit {
            let mut command = ArgBuffer::default();
            args.iter().for_each(|arg| command.push(arg));
            unit.push(command);
        } else {
            self.run(state, args);
        }
    }

    pub(crate) fn is_between_units(&self) -> bool {
        self.unit.is_none()
    }

    fn run(&mut self, state: &mut State, args: Args<'_>) {
        if let Lookup::Found(command) = command::look_up(args, state.version)
            && let Run::Keys(run) = command.run
        {
            state.is_replaying = true;
            state.select(self.database);
            // A command that failed on the primary is not in the stream.
            let _ = run(state, args);
            self.database = state.selected();
            state.is_replaying = false;
        }
    }
}
