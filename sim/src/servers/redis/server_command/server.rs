//! COMMAND and CONFIG: commands on the whole server.

use crate::servers::redis::command::{count, shown};
use crate::servers::redis::core::Core;
use crate::servers::redis::glob;
use crate::servers::redis::reply::Reply;
use crate::servers::redis::request::Args;

/// COMMAND: returns an empty catalogue. Interactive clients use it only for completion.
pub(crate) fn catalogue(core: &Core, args: Args<'_>) -> Reply {
    if args.len() > 1 && args.at(1).eq_ignore_ascii_case(b"count") {
        return Reply::count(count(core.state.version));
    }
    let is_docs = args.len() > 1 && args.at(1).eq_ignore_ascii_case(b"docs");
    if is_docs { Reply::Map(Vec::new()) } else { Reply::Array(Vec::new()) }
}

/// CONFIG: returns constants for the settings that benchmarks and clients read.
pub(crate) fn config(core: &Core, args: Args<'_>) -> Reply {
    match args.at(1).to_ascii_lowercase().as_slice() {
        b"get" => {
            let known = [
                ("appendonly", if core.journal.is_enabled() { "yes" } else { "no" }),
                ("databases", "16"),
                ("maxmemory", "0"),
                ("save", ""),
            ];
            let asked =
                |name: &str| args.skip(2).iter().any(|pattern| glob::matches(pattern, name.as_bytes()));
            let found = known.into_iter().filter(|(name, _)| asked(name));
            Reply::Map(found.map(|(name, value)| (name, Reply::bulk(value))).collect())
        }
        b"set" => {
            let option = shown(args.at(2), usize::MAX);
            let text = b"ERR Unknown option or number of arguments for CONFIG SET - '";
            Reply::error_text([text, option, b"'"].concat())
        }
        _ => Reply::OK,
    }
}
