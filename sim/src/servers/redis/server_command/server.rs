//! COMMAND and CONFIG: commands on the whole server.

use crate::servers::redis::command::{SYNTAX_ERROR, count, shown};
use crate::servers::redis::core::Core;
use crate::servers::redis::events::Classes;
use crate::servers::redis::glob;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;

/// The setting of the events that are published.
const EVENTS: &str = "notify-keyspace-events";

/// COMMAND: returns an empty catalogue. Interactive clients use it only for completion.
pub(crate) fn catalogue(core: &Core, args: Args<'_>) -> Reply {
    if args.len() > 1 && args.at(1).eq_ignore_ascii_case(b"count") {
        return Reply::count(count(core.state.version));
    }
    let is_docs = args.len() > 1 && args.at(1).eq_ignore_ascii_case(b"docs");
    if is_docs { Reply::Map(Vec::new()) } else { Reply::Array(Vec::new()) }
}

/// CONFIG: returns constants for the settings that benchmarks and clients read. Only
/// `notify-keyspace-events` can be set.
pub(crate) fn config(core: &mut Core, args: Args<'_>) -> Reply {
    match args.at(1).to_ascii_lowercase().as_slice() {
        b"get" => {
            let letters = core.state.published.letters();
            let appendonly: &[u8] = if core.journal.is_enabled() { b"yes" } else { b"no" };
            let known = [
                ("appendonly", appendonly),
                ("databases", b"16"),
                ("maxmemory", b"0"),
                (EVENTS, &letters),
                ("save", b""),
            ];
            let asked =
                |name: &str| args.skip(2).iter().any(|pattern| glob::matches(pattern, name.as_bytes()));
            let found = known.into_iter().filter(|(name, _)| asked(name));
            Reply::Map(found.map(|(name, value)| (name, Reply::bulk(value))).collect())
        }
        b"set" => set(core, args.skip(2)),
        _ => Reply::OK,
    }
}

/// CONFIG SET: sets all options, or none.
fn set(core: &mut Core, options: Args<'_>) -> Reply {
    if !options.len().is_multiple_of(2) {
        return Reply::error(SYNTAX_ERROR);
    }
    let is_unknown = |name: &&[u8]| !name.eq_ignore_ascii_case(EVENTS.as_bytes());
    if let Some(option) = options.iter().step_by(2).find(is_unknown) {
        let text = b"ERR Unknown option or number of arguments for CONFIG SET - '";
        return Reply::error_text([text, shown(option, usize::MAX), b"'"].concat());
    }
    if options.len() > 2 {
        return refused(options.at(2), "duplicate parameter");
    }
    let Some(classes) = Classes::parse(shown(options.at(1), usize::MAX)) else {
        let reason = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
        return refused(EVENTS.as_bytes(), reason);
    };
    core.state.published = classes;
    Reply::OK
}

fn refused(option: &[u8], reason: &str) -> Reply {
    let mut text = b"ERR CONFIG SET failed (possibly related to argument '".to_vec();
    text.extend_from_slice(option);
    text.extend_from_slice(format!("') - {reason}").as_bytes());
    Reply::error_text(text)
}
