//! The server behind the connections: data, scripts, clients; and how one request is carried out.

use std::collections::BTreeMap;

use super::command::{self, Run, server};
use super::lua::{Digest, PooledEngine, Script};
use super::reply::Reply;
use super::request::Args;
use super::state::{Record, State};

/// All that connections share.
#[derive(Debug, Default)]
pub(crate) struct Core {
    pub(crate) state: Box<State>,
    pub(crate) scripts: BTreeMap<Digest, Script>,
    pub(crate) clients: u64,
    pub(crate) connected: usize,
    engine: Option<PooledEngine>,
}

/// One connection's part of the server.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) id: u64,
    /// What CLIENT SETNAME gave it.
    pub(crate) name: Vec<u8>,
    /// The connection ends once the reply is out.
    pub(crate) is_closing: bool,
    /// What the running command did, until the observer has seen it.
    pub(crate) record: Record,
}

impl Core {
    pub(crate) fn connect(&mut self) -> Client {
        self.clients += 1;
        self.connected += 1;
        Client { id: self.clients, ..Client::default() }
    }

    /// Carries out one request. `args` holds at least the command's name.
    pub(crate) fn execute(&mut self, client: &mut Client, args: Args<'_>, now_micros: i64) -> Reply {
        self.state.now_micros = now_micros;
        let Some(command) = command::find(args.at(0)) else { return command::unknown_command(args) };
        if !command.takes(args.len()) {
            return command::wrong_arity(command.name);
        }
        if command.writes && self.state.is_replica {
            return Reply::error(command::READ_ONLY);
        }
        match command.run {
            Run::Keys(run) => self.state.execute(command.name, run, args),
            Run::Server(run) => {
                self.state.executed(command.name);
                server::run(run, self, client, args)
            }
        }
    }

    /// Moves what was done since the last call into `record`, which must be empty, and keeps its memory for the next.
    pub(crate) fn take_record(&mut self, record: &mut Record) {
        std::mem::swap(&mut self.state.record, record);
    }

    /// Runs a script that the server knows.
    pub(crate) fn run_script(&mut self, name: &Digest, keys: usize, args: Args<'_>) -> Option<Reply> {
        let script = self.scripts.get(name)?;
        let engine = match &mut self.engine {
            Some(engine) => engine,
            none => match PooledEngine::take() {
                Ok(engine) => none.insert(engine),
                Err(error) => return Some(Reply::error_text(format!("ERR no interpreter: {error}"))),
            },
        };
        Some(engine.run(name, script, keys, args, &mut self.state))
    }

    /// Learns a script, if it compiles.
    pub(crate) fn learn_script(&mut self, name: Digest, text: &[u8]) -> Result<(), Reply> {
        if self.scripts.contains_key(&name) {
            return Ok(());
        }
        let script = Script::parse(text)?;
        let engine = match &mut self.engine {
            Some(engine) => engine,
            none => none.insert(
                PooledEngine::take()
                    .map_err(|error| Reply::error_text(format!("ERR no interpreter: {error}")))?,
            ),
        };
        engine.compile(&name, &script)?;
        self.scripts.insert(name, script);
        Ok(())
    }
}
