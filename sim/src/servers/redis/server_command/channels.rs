//! SUBSCRIBE and UNSUBSCRIBE.

use std::sync::Arc;

use crate::servers::redis::core::{Client, Core};
use crate::servers::redis::reply::{Protocol, Reply};
use crate::servers::redis::request::Args;

/// The commands that a subscribed connection may send in RESP2.
const ALLOWED: [&str; 5] = ["subscribe", "unsubscribe", "ping", "quit", "reset"];

/// SUBSCRIBE: one reply for each channel.
pub(crate) fn subscribe(core: &mut Core, client: &mut Client, args: Args<'_>) -> Reply {
    let wake = Arc::clone(client.wake.get_or_insert_default());
    let mut subscribe = |channel: &[u8]| {
        let count = core.state.channels.subscribe(client.id, client.protocol, &wake, channel);
        confirmed("subscribe", Reply::bulk(channel), count)
    };
    Reply::Several(args.skip(1).iter().map(&mut subscribe).collect())
}

/// UNSUBSCRIBE: one reply for each channel. Without arguments it means all channels; if there are none, one
/// reply says so.
pub(crate) fn unsubscribe(core: &mut Core, client: &Client, args: Args<'_>) -> Reply {
    let channels = &mut core.state.channels;
    let named = match args.len() {
        1 => channels.of(client.id),
        _ => args.skip(1).iter().map(Into::into).collect(),
    };
    if named.is_empty() {
        return confirmed("unsubscribe", Reply::Nil, 0);
    }
    let mut unsubscribe = |channel: &[u8]| {
        let count = channels.unsubscribe(client.id, channel);
        confirmed("unsubscribe", Reply::bulk(channel), count)
    };
    Reply::Several(named.iter().map(|channel| unsubscribe(channel)).collect())
}

fn confirmed(what: &str, channel: Reply, count: usize) -> Reply {
    Reply::Push(vec![Reply::bulk(what), channel, Reply::count(count)])
}

/// Returns the reply of a subscribed connection in RESP2 to a command that it refuses or answers in another
/// form; `None` for all other commands.
pub(crate) fn while_listening(core: &Core, client: &Client, command: &str, args: Args<'_>) -> Option<Reply> {
    if client.protocol == Protocol::Resp3 || !core.state.channels.listens(client.id) {
        return None;
    }
    if command == "ping" && args.len() <= 2 {
        let text: &[u8] = if args.len() == 2 { args.at(1) } else { b"" };
        return Some(Reply::Array(vec![Reply::bulk("pong"), Reply::bulk(text)]));
    }
    (!ALLOWED.contains(&command)).then(|| {
        Reply::error_text(format!(
            "ERR Can't execute '{command}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
             are allowed in this context"
        ))
    })
}
