//! The server behind the connections: data, scripts, clients; and how one request is carried out.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use tokio::sync::Notify;

use super::command::transaction::{self, Transaction};
use super::command::{self, Command, Lookup, Run, channels, server};
use super::effects::encode_unit;
use super::lua::{Digest, PooledEngine, Script};
use super::persistence::Journal;
use super::replication::{Feed, Replication};
use super::reply::{Protocol, Reply};
use super::request::Args;
use super::state::{Record, State};
use super::watch::Watches;

/// All that connections share.
#[derive(Debug, Default)]
pub(crate) struct Core {
    pub(crate) state: Box<State>,
    pub(crate) scripts: BTreeMap<Digest, Script>,
    pub(crate) journal: Journal,
    pub(crate) replication: Replication,
    pub(crate) watches: Watches,
    /// How many connections there have been; the newest has this number.
    pub(crate) clients: u64,
    /// Connections that are open.
    pub(crate) connected: usize,
    /// When the background task will look again, in microseconds on the wall clock; `None` while it does not
    /// sleep.
    pub(crate) alarm_micros: Option<i64>,
    /// When the append-only file was last synced.
    pub(crate) synced_micros: i64,
    /// The encoded effects of the last command; kept to reuse its memory.
    unit: Vec<u8>,
}

/// The state of one connection.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) id: u64,
    /// The name that CLIENT SETNAME gave it.
    pub(crate) name: Vec<u8>,
    /// The protocol that HELLO chose.
    pub(crate) protocol: Protocol,
    /// The connection ends once the reply is out.
    pub(crate) is_closing: bool,
    /// Set by MULTI, until EXEC or DISCARD.
    pub(crate) transaction: Option<Transaction>,
    /// Set while EXEC runs the commands of a transaction: none may block.
    pub(crate) is_in_exec: bool,
    /// The end of the replication stream after the client's last write. WAIT waits until replicas have it.
    pub(crate) written_offset: u64,
    /// Set by WAIT: the reply is sent when enough replicas have acknowledged.
    pub(crate) wait: Option<Wait>,
    /// Set by PSYNC: the connection belongs to a replica from now on.
    pub(crate) feed: Option<Feed>,
    /// Notified of published messages; set by the first SUBSCRIBE.
    pub(crate) wake: Option<Arc<Notify>>,
    /// What the running command did; emptied once the observer has heard of it.
    pub(crate) record: Record,
}

/// How long WAIT blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) replicas: usize,
    pub(crate) offset: u64,
    /// `None`: there is no deadline.
    pub(crate) deadline_micros: Option<i64>,
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
        match self.admit(args) {
            Ok(command) => {
                if let Some(reply) = channels::while_listening(self, client, command.name, args) {
                    return reply;
                }
                let queued = client.transaction.as_mut().and_then(|queue| queue.queue(command, args));
                queued.unwrap_or_else(|| self.carry_out(command, client, args))
            }
            Err(refusal) => transaction::refuse(self, client, args, refusal),
        }
    }

    /// The command that `args` name, or the error if the server refuses it.
    fn admit(&self, args: Args<'_>) -> Result<&'static Command, Reply> {
        match command::look_up(args) {
            Lookup::Found(command) if command.writes && self.state.is_replica => {
                Err(Reply::error(command::READ_ONLY))
            }
            Lookup::Found(command) => Ok(command),
            Lookup::Unknown => Err(command::unknown_command(args)),
            Lookup::UnknownSubcommand(command) => Err(command::unknown_subcommand(command.name, args.at(1))),
            Lookup::WrongArity(name) => Err(command::wrong_arity(&name)),
        }
    }

    /// Carries out an admitted command.
    pub(crate) fn carry_out(&mut self, command: &Command, client: &mut Client, args: Args<'_>) -> Reply {
        match command.run {
            Run::Keys(run) => self.state.execute(command.name, run, args),
            Run::Server(run) => {
                self.state.executed(command.name);
                server::run(run, self, client, args)
            }
        }
    }

    /// Hands the effects of the last command to the append-only file and to the replicas.
    pub(crate) fn publish(&mut self) {
        self.watches.touch(&self.state.record.effects);
        let has_readers = self.journal.is_enabled() || self.replication.connected() > 0;
        if self.state.record.effects.is_empty() || !has_readers {
            return;
        }
        self.unit.clear();
        encode_unit(&self.state.record.effects, &mut self.unit);
        self.journal.add(&self.unit);
        self.replication.send(&self.unit);
    }

    /// Moves what was done since the last call into `record`, which must be empty, and reuses the memory of
    /// `record`.
    pub(crate) fn take_record(&mut self, record: &mut Record) {
        std::mem::swap(&mut self.state.record, record);
    }

    /// Runs a script, or returns `None` if the server does not know it.
    pub(crate) fn run_script(&mut self, name: &Digest, keys: usize, args: Args<'_>) -> Option<Reply> {
        let script = self.scripts.get(name)?;
        Some(match engine() {
            Ok(mut engine) => engine.run(name, script, keys, args, &mut self.state),
            Err(error) => error,
        })
    }

    /// Learns a script, if it compiles, and returns its name.
    pub(crate) fn learn_script(&mut self, text: &[u8]) -> Result<Digest, Reply> {
        let mut engine = engine()?;
        let name = engine.digest(text);
        if let Entry::Vacant(unknown) = self.scripts.entry(name) {
            let script = Script::parse(text)?;
            engine.compile(&name, &script)?;
            unknown.insert(script);
        }
        Ok(name)
    }
}

/// An interpreter for one script.
fn engine() -> Result<PooledEngine, Reply> {
    PooledEngine::take().map_err(|error| Reply::error_text(format!("ERR no interpreter: {error}")))
}
