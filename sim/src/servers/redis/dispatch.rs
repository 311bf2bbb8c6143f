//! Runs one request: looks the command up, checks it, and queues or runs it.

use super::channels::Topic;
use super::command::{self, Command, Lookup, Run, ServerCommand};
use super::core::{Client, Core};
use super::monitor;
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
                match self.answer_as_listener(command, client, args) {
                    Ok(None) => {}
                    Ok(Some(reply)) => return reply,
                    Err(refusal) => return self.refuse(client, args, refusal),
                }
                let version = self.state.version;
                let transaction = client.transaction.as_mut();
                let queued = transaction.and_then(|queue| queue.queue(command, args, version));
                queued.unwrap_or_else(|| {
                    self.state.may_wait = true;
                    self.carry_out(command, client, args)
                })
            }
            Err(refusal) => self.refuse(client, args, refusal),
        }
    }

    /// Returns the reply to a command that subscribers and monitors get in place of the usual one, or the
    /// error if they may not send it.
    fn answer_as_listener(
        &mut self,
        command: &Command,
        client: &mut Client,
        args: Args<'_>,
    ) -> Result<Option<Reply>, Reply> {
        if client.wake.is_none() {
            return Ok(None);
        }
        let reply = channels::while_listening(self, client, command, args)?;
        if reply.is_some() {
            self.show(client, args);
        } else if self.state.channels.is_monitor(client.id) && command.is_kept_from_monitors() {
            return Err(Reply::error("ERR Replica can't interact with the keyspace"));
        }
        Ok(reply)
    }

    /// Refuses a command, which aborts its transaction. Returns the reply.
    fn refuse(&mut self, client: &mut Client, args: Args<'_>, refusal: Reply) -> Reply {
        let reply = transaction::refuse(self, client, args, refusal);
        if args.at(0).eq_ignore_ascii_case(b"exec") {
            self.show(client, args);
        }
        reply
    }

    /// Shows a command to the monitors. A monitor that sent it gets the line after the reply.
    fn show(&mut self, client: &mut Client, args: Args<'_>) {
        if !self.state.channels.has_monitors() {
            return;
        }
        let now_micros = self.state.now_micros;
        let line = monitor::line(now_micros, self.state.selected(), &client.label, args);
        self.state.channels.show(&line, Some(client.id), now_micros);
        if self.state.channels.is_monitor(client.id) {
            client.own_lines.extend_from_slice(&line);
        }
    }

    /// Returns the command that `args` name, or the error if the server refuses it.
    fn admit(&mut self, args: Args<'_>) -> Result<&'static Command, Reply> {
        match command::look_up(args, self.state.version) {
            Lookup::Found(command) if self.state.is_replica && self.may_write(command, args) => {
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

    /// Returns true if a command writes, or is a script that declares to.
    fn may_write(&self, command: &Command, args: Args<'_>) -> bool {
        match command.run {
            Run::Server(ServerCommand::Eval) => scripting::text_declares_writes(args.at(1)),
            Run::Server(ServerCommand::EvalSha) => scripting::known_declares_writes(self, args.at(1)),
            _ => command.writes,
        }
    }

    /// Runs an admitted command, and shows it to the monitors.
    fn carry_out(&mut self, command: &Command, client: &mut Client, args: Args<'_>) -> Reply {
        if !self.state.channels.has_monitors() {
            return self.run_any(command, client, args);
        }
        if command.is_shown_first() {
            self.show(client, args);
        }
        let reply = self.run_any(command, client, args);
        if !command.is_hidden(args) && !command.is_shown_first() {
            self.show(client, args);
        }
        reply
    }

    fn run_any(&mut self, command: &Command, client: &mut Client, args: Args<'_>) -> Reply {
        match command.run {
            Run::Keys(run) | Run::Clients(run) => {
                self.state.execute(command.name, !command.writes, run, args)
            }
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
            ServerCommand::Monitor => channels::monitor(self, client),
            ServerCommand::Multi => transaction::multi(client),
            ServerCommand::PSubscribe => channels::subscribe(self, client, Topic::Pattern, args),
            ServerCommand::Psync => replica::psync(self, client),
            ServerCommand::PUnsubscribe => channels::unsubscribe(self, client, Topic::Pattern, args),
            ServerCommand::Quit => connection::quit(client),
            ServerCommand::ReplConf => Reply::OK,
            ServerCommand::ReplicaOf => replica::replica_of(self, args),
            ServerCommand::Reset => connection::reset(self, client),
            ServerCommand::Role => replica::role(self),
            ServerCommand::Script => scripting::script(self, args),
            ServerCommand::Subscribe => channels::subscribe(self, client, Topic::Channel, args),
            ServerCommand::Unsubscribe => channels::unsubscribe(self, client, Topic::Channel, args),
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
