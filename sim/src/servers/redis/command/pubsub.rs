//! PUBLISH and PUBSUB. Source: `pubsub.c` of Redis 7.0.

use super::shown;
use crate::servers::redis::glob;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;
use crate::servers::redis::state::State;

/// The longest subcommand that an error repeats, in bytes.
const SHOWN_BYTES_MAX: usize = 128;

const HELP: [&str; 14] = [
    "PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CHANNELS [<pattern>]",
    "    Return the currently active channels matching a <pattern> (default: '*').",
    "NUMPAT",
    "    Return number of subscriptions to patterns.",
    "NUMSUB [<channel> ...]",
    "    Return the number of subscribers for the specified channels, excluding",
    "    pattern subscriptions(default: no channels).",
    "SHARDCHANNELS [<pattern>]",
    "    Return the currently active shard level channels matching a <pattern> (default: '*').",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Return the number of subscribers for the specified shard level channel(s)",
    "HELP",
    "    Prints this help.",
];

pub(super) fn publish(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    Ok(Reply::count(state.channels.publish(args.at(1), args.at(2), state.now_micros)))
}

/// PUBSUB. Channels come in order; Redis lists them in no order. There are no channels of shards.
pub(super) fn pubsub(state: &mut State, args: Args<'_>) -> Result<Reply, Reply> {
    let (subcommand, rest) = (args.at(1).to_ascii_lowercase(), args.skip(2));
    let channels = &state.channels;
    Ok(match (subcommand.as_slice(), rest.len()) {
        (b"help", 0) => Reply::Array(HELP.iter().map(|line| Reply::status(line)).collect()),
        (b"channels", 0) => Reply::Array(channels.active().iter().map(Reply::bulk).collect()),
        (b"channels", 1) => {
            let active = channels.active();
            let matching = active.iter().filter(|channel| glob::matches(rest.at(0), channel));
            Reply::Array(matching.map(Reply::bulk).collect())
        }
        (b"numsub", _) => numbers(rest, |channel| channels.subscribers_of(channel)),
        (b"numpat", 0) => Reply::count(channels.patterns()),
        (b"shardchannels", 0..=1) => Reply::Array(Vec::new()),
        (b"shardnumsub", _) => numbers(rest, |_| 0),
        _ => return Err(wrong_subcommand(args)),
    })
}

/// Returns each channel and a number.
fn numbers(channels: Args<'_>, number: impl Fn(&[u8]) -> usize) -> Reply {
    let pairs = channels.iter().flat_map(|channel| [Reply::bulk(channel), Reply::count(number(channel))]);
    Reply::Array(pairs.collect())
}

fn wrong_subcommand(args: Args<'_>) -> Reply {
    let mut text = b"ERR unknown subcommand or wrong number of arguments for '".to_vec();
    text.extend_from_slice(shown(args.at(1), SHOWN_BYTES_MAX));
    text.extend_from_slice(b"'. Try PUBSUB HELP.");
    Reply::error_text(text)
}
