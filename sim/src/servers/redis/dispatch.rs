//! Runs one request: looks the command up, checks it, and queues or runs it.

use super::command::{self, Command, Lookup, Run, ServerCommand};
use super::core::{Client, Core};
use super::reply::Reply;
use super::request::Args;
use super::server_command::{channels, connection, info, replica, scripting, server, transaction};

impl Core {
    /// Runs one request. `args` holds at least the command's name.
    pub(crate) fn execute(&mut self, client: &mut Client, args: Args<'_>, now_micros: i64) -> Reply {
        self.state.now_micros = now_micros;
        self.state.select(client.database);
        let reply = self.respond(client, args);
        client.database = self.state.selected();
        reply
    }

    fn respond(&mut self, client: &mut Client, args: Args<'_>) -> Reply {
        match self.admit(args) {
            Ok(command) => {
                if let Some(reply) = channels::while_listening(self, client, command.name, args) {
                    return reply;
                }
                let version = self.state.version;
                let transaction = client.transaction.as_mut();
                let queued = transaction.and_then(|queue| queue.queue(command, args, version));
                queued.unwrap_or_else(|| {
                    self.state.may_wait = true;
                    self.carry_out(command, client, args)
                })
            }
            Err(refusal) => transaction::refuse(self, client, args, refusal),
        }
    }

    /// Returns the command that `args` name, or the error if the server refuses it.
    fn admit(&mut self, args: Args<'_>) -> Result<&'static Command, Reply> {
        match command::look_up(args, self.state.version) {
            Lookup::Found(command) if command.writes && self.state.is_replica => {
                Err(Reply::error(command::READ_ONLY))
            }
            Lookup::Found(command) => Ok(command),
            Lookup::Unknown => {
                self.state.record.refuse(args, false);
                Err(command::unknown_command(args))
            }
            Lookup::UnknownSubcommand(command) => {
                self.state.record.refuse(args, true);
                Err(command::unknown_subcommand(command.name, args.at(1)))
            }
            Lookup::WrongArity(name) => Err(command::wrong_arity(&name)),
        }
    }

    /// Runs an admitted command.
    fn carry_out(&mut self, command: &Command, client: &mut Client, args: Args<'_>) -> Reply {
        match command.run {
            Run::Keys(run) | Run::Clients(run) => self.state.execute(command.name, run, args),
            Run::Server(run) => {
                self.state.executed(command.name);
                self.run(run, client, args)
            }
        }
    }

    /// Runs a command that works on the connection or the whole server.
    fn run(&mut self, command: ServerCommand, client: &mut Client, args: Args<'_>) -> Reply {
        match command {
            ServerCommand::Client => connection::client(client, args),
            ServerCommand::Command => server::catalogue(self, args),
            ServerCommand::Config => server::config(self, args),
            ServerCommand::Discard => transaction::discard(self, client),
            ServerCommand::Eval => scripting::eval(self, args),
            ServerCommand::EvalSha => scripting::eval_sha(self, args),
            ServerCommand::Exec => self.exec(client),
            ServerCommand::Hello => connection::hello(self, client, args),
            ServerCommand::Info => Reply::verbatim(info::text(self, args.skip(1))),
            ServerCommand::Multi => transaction::multi(client),
            ServerCommand::Psync => replica::psync(self, client),
            ServerCommand::Quit => connection::quit(client),
            ServerCommand::ReplConf => Reply::OK,
            ServerCommand::ReplicaOf => replica::replica_of(self, args),
            ServerCommand::Reset => connection::reset(self, client),
            ServerCommand::Role => replica::role(self),
            ServerCommand::Script => scripting::script(self, args),
            ServerCommand::Subscribe => channels::subscribe(self, client, args),
            ServerCommand::Unsubscribe => channels::unsubscribe(self, client, args),
            ServerCommand::Unwatch => transaction::unwatch(self, client),
            ServerCommand::Wait => replica::wait(self, client, args),
            ServerCommand::Watch => transaction::watch(self, client, args),
        }
    }

    /// EXEC: runs all queued commands, or none.
    fn exec(&mut self, client: &mut Client) -> Reply {
        let commands = match transaction::begin_exec(self, client) {
            Ok(transaction) => transaction.commands,
            Err(reply) => return reply,
        };
        client.is_in_exec = true;
        self.state.may_wait = false;
        let mut replies: Vec<Reply> = Vec::with_capacity(commands.len());
        for (command, args) in &commands {
            let protocol = client.protocol;
            let reply = self.carry_out(command, client, args.args());
            // CLIENT INFO tells the database that the transaction has selected.
            client.database = self.state.selected();
            if client.protocol != protocol {
                // HELLO changed the protocol: earlier replies are sent in the former one.
                replies.iter_mut().for_each(|reply| *reply = reply.encoded(protocol));
            }
            replies.push(reply);
        }
        client.is_in_exec = false;
        Reply::Array(replies)
    }
}
