//! The table of all commands with their names, arities and rights, as in `commands.def` of Redis 7.0 and of
//! newer servers, and the functions of the commands that work on keys.

mod choices;
mod databases;
mod expiry;
mod fields;
mod hashes;
mod keys;
mod lists;
mod many;
mod object;
mod pubsub;
mod ranges;
mod renames;
mod scan;
mod set_operations;
mod sets;
mod sorted_sets;
mod strings;
mod table;
mod timeouts;

use std::borrow::Cow;

use super::reply::Reply;
use super::request::Args;
use super::state::State;
use super::version::Version;

pub(crate) use table::count;

/// A command.
#[derive(Debug)]
pub(crate) struct Command {
    /// In lower case.
    pub(crate) name: &'static str,
    /// The number of arguments, the name included; a negative one is a minimum.
    arity: i32,
    /// The second words that the command takes and their arities, if it takes only some.
    subcommands: &'static [(&'static str, i32)],
    /// Changes keys: refused by a replica.
    pub(crate) writes: bool,
    /// The versions that have it.
    versions: &'static [Version],
    pub(crate) run: Run,
}

/// The function that runs a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    /// Runs this function on the keys. Scripts may call it.
    Keys(fn(&mut State, Args<'_>) -> Result<Reply, Reply>),
    /// As `Keys`, but scripts may not call it.
    Clients(fn(&mut State, Args<'_>) -> Result<Reply, Reply>),
    /// Works on the connection or the whole server: `dispatch` knows the function. Scripts may not call it.
    Server(ServerCommand),
}

/// The commands that need more than the keys.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ServerCommand {
    Client,
    Command,
    Config,
    Discard,
    Eval,
    EvalSha,
    Exec,
    Hello,
    Info,
    Monitor,
    Multi,
    PSubscribe,
    Psync,
    PUnsubscribe,
    Quit,
    ReplConf,
    ReplicaOf,
    Reset,
    Role,
    Script,
    Subscribe,
    Unsubscribe,
    Unwatch,
    Wait,
    Watch,
}

/// The result of looking a request up in the table.
#[derive(Debug)]
pub(crate) enum Lookup {
    Found(&'static Command),
    Unknown,
    /// The command is known, but its second word is not.
    UnknownSubcommand(&'static Command),
    /// There are too few or too many words. The name is complete: `client|setname`.
    WrongArity(Cow<'static, str>),
}

impl Command {
    /// Returns the name that errors show: with the subcommand, if it has one, such as `pubsub|channels`.
    pub(crate) fn full_name(&self, args: Args<'_>) -> Cow<'static, str> {
        let wanted = |(name, _): &&(&str, i32)| args.at(1).eq_ignore_ascii_case(name.as_bytes());
        match self.subcommands.iter().filter(|_| args.len() > 1).find(wanted) {
            Some((name, _)) => format!("{}|{name}", self.name).into(),
            None => self.name.into(),
        }
    }
}

/// Finds the command of `version` that `args` name. There must be at least one word.
pub(crate) fn look_up(args: Args<'_>, version: Version) -> Lookup {
    let Some(command) = table::find(args.at(0), version) else { return Lookup::Unknown };
    if !command.subcommands.is_empty() && args.len() > 1 {
        let wanted = |(name, _): &&(&str, _)| args.at(1).eq_ignore_ascii_case(name.as_bytes());
        match command.subcommands.iter().find(wanted) {
            None => return Lookup::UnknownSubcommand(command),
            Some((_, arity)) if fits(*arity, args.len()) => {}
            Some((name, _)) => return Lookup::WrongArity(format!("{}|{name}", command.name).into()),
        }
    }
    if fits(command.arity, args.len()) {
        Lookup::Found(command)
    } else {
        Lookup::WrongArity(command.name.into())
    }
}

fn fits(arity: i32, arguments: usize) -> bool {
    let least = usize::try_from(arity.unsigned_abs()).unwrap_or(usize::MAX);
    if arity < 0 { arguments >= least } else { arguments == least }
}

pub(crate) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
pub(crate) const OUT_OF_RANGE: &str = "ERR value is out of range";
pub(crate) const OVERFLOW: &str = "ERR increment or decrement would overflow";
pub(crate) const NO_SUCH_KEY: &str = "ERR no such key";
pub(crate) const SYNTAX_ERROR: &str = "ERR syntax error";
/// The longest part of a request that an error repeats, in bytes.
const SHOWN_BYTES_MAX: usize = 128;

pub(crate) const READ_ONLY: &str = "READONLY You can't write against a read only replica.";

/// Returns the words of a command, as it is repeated by replicas.
fn words(args: Args<'_>) -> Vec<&[u8]> {
    args.iter().collect()
}

pub(crate) fn wrong_arity(name: &str) -> Reply {
    Reply::error_text(format!("ERR wrong number of arguments for '{name}' command"))
}

/// Quotes what the client sent, truncated as in Redis.
pub(crate) fn unknown_command(args: Args<'_>) -> Reply {
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(shown(args.at(0), SHOWN_BYTES_MAX));
    text.extend_from_slice(b"', with args beginning with: ");
    let mut left = SHOWN_BYTES_MAX;
    for arg in args.skip(1).iter() {
        if left == 0 {
            break;
        }
        let arg = shown(arg, left);
        text.push(b'\'');
        text.extend_from_slice(arg);
        text.extend_from_slice(b"' ");
        left = left.saturating_sub(arg.len() + 3);
    }
    Reply::error_text(text)
}

/// Returns the part of a text that Redis prints: up to the first zero byte, since Redis prints it as a C
/// string.
pub(crate) fn shown(text: &[u8], bytes_max: usize) -> &[u8] {
    let end = text.iter().take(bytes_max).position(|byte| *byte == 0);
    &text[..end.unwrap_or(text.len().min(bytes_max))]
}

pub(crate) fn unknown_subcommand(command: &str, subcommand: &[u8]) -> Reply {
    let mut text = b"ERR unknown subcommand '".to_vec();
    text.extend_from_slice(shown(subcommand, SHOWN_BYTES_MAX));
    text.extend_from_slice(format!("'. Try {} HELP.", command.to_ascii_uppercase()).as_bytes());
    Reply::error_text(text)
}
