//! The commands of subscribers, and MONITOR.

use std::sync::Arc;

use crate::servers::redis::channels::Topic;
use crate::servers::redis::command::Command;
use crate::servers::redis::core::{Client, Core};
use crate::servers::redis::reply::{Protocol, Reply};
use crate::servers::redis::request::Args;

/// The commands that a subscribed connection may send in RESP2.
const ALLOWED: [&str; 7] =
    ["psubscribe", "punsubscribe", "subscribe", "unsubscribe", "ping", "quit", "reset"];

/// SUBSCRIBE and PSUBSCRIBE: one reply for each channel or pattern.
pub(crate) fn subscribe(core: &mut Core, client: &mut Client, topic: Topic, args: Args<'_>) -> Reply {
    let wake = Arc::clone(client.wake.get_or_insert_default());
    let word = match topic {
        Topic::Channel => "subscribe",
        Topic::Pattern => "psubscribe",
    };
    let mut subscribe = |name: &[u8]| {
        let count = core.state.channels.subscribe(client.id, client.protocol, &wake, topic, name);
        confirmed(word, Reply::bulk(name), count)
    };
    Reply::Several(args.skip(1).iter().map(&mut subscribe).collect())
}

/// UNSUBSCRIBE and PUNSUBSCRIBE: one reply for each channel or pattern. Without arguments they mean all; if
/// there are none, one reply says so.
pub(crate) fn unsubscribe(core: &mut Core, client: &Client, topic: Topic, args: Args<'_>) -> Reply {
    let channels = &mut core.state.channels;
    let word = match topic {
        Topic::Channel => "unsubscribe",
        Topic::Pattern => "punsubscribe",
    };
    let named = match args.len() {
        1 => channels.of(client.id, topic),
        _ => args.skip(1).iter().map(Into::into).collect(),
    };
    if named.is_empty() {
        return confirmed(word, Reply::Nil, channels.count(client.id));
    }
    let mut unsubscribe = |name: &[u8]| {
        let count = channels.unsubscribe(client.id, topic, name);
        confirmed(word, Reply::bulk(name), count)
    };
    Reply::Several(named.iter().map(|name| unsubscribe(name)).collect())
}

fn confirmed(word: &str, name: Reply, count: usize) -> Reply {
    Reply::Push(vec![Reply::bulk(word), name, Reply::count(count)])
}

/// MONITOR. A second one gets no reply.
pub(crate) fn monitor(core: &mut Core, client: &mut Client) -> Reply {
    if client.is_in_exec {
        return Reply::error("ERR MONITOR isn't allowed for DENY BLOCKING client");
    }
    let wake = Arc::clone(client.wake.get_or_insert_default());
    let is_new = core.state.channels.monitor(client.id, client.protocol, &wake);
    if is_new { Reply::OK } else { Reply::Silence }
}

/// Returns the reply of a subscribed connection in RESP2 to a command that it answers in another form: PING.
/// Returns the error if it refuses the command, and `None` for all other commands.
pub(crate) fn while_listening(
    core: &Core,
    client: &Client,
    command: &Command,
    args: Args<'_>,
) -> Result<Option<Reply>, Reply> {
    if client.protocol == Protocol::Resp3 || core.state.channels.count(client.id) == 0 {
        return Ok(None);
    }
    if command.name == "ping" && args.len() <= 2 {
        let text: &[u8] = if args.len() == 2 { args.at(1) } else { b"" };
        return Ok(Some(Reply::Array(vec![Reply::bulk("pong"), Reply::bulk(text)])));
    }
    if ALLOWED.contains(&command.name) {
        return Ok(None);
    }
    Err(Reply::error_text(format!(
        "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
         are allowed in this context",
        command.full_name(args)
    )))
}
