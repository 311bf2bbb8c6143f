//! Validates the names of workers.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use sim::faults::NETWORK;
use sim::{FieldPath, Invalid};

use super::super::options::Options;
use super::super::point::ProcessKind;
use super::super::system::System;
use super::TTL_MAX;

/// The longest name of a worker in bytes: `dlock` allows as many in owner tokens.
const NAME_BYTES_MAX: usize = 64;

/// Checks a worker's name. It is part of owner tokens, traces and expectations, so it must be readable, and
/// must not be the name of a server.
pub(super) fn check_name(path: &FieldPath, name: &str) -> Result<(), Invalid> {
    if name.is_empty() {
        return Err(path.says("a worker has no name: write name = \"a\""));
    }
    let letters = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let problem = if name.len() > NAME_BYTES_MAX {
        format!("`{name}` is too long for a worker's name: {NAME_BYTES_MAX} bytes are allowed")
    } else if !letters || name.starts_with('-') {
        format!("`{name}` is no name for a worker: take lower-case letters, digits and dashes")
    } else if let Some(owner) = reserved(name) {
        format!("`{name}` is no name for a worker: {owner} is called so")
    } else {
        return Ok(());
    };
    Err(path.key("name").says(problem))
}

/// The names of the servers of all systems, without their numbers.
static SERVERS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let servers = System::all().flat_map(|system| Options::new(system, TTL_MAX, Vec::new()).servers());
    servers.map(|name| name.trim_end_matches(|c: char| c == '-' || c.is_ascii_digit()).to_owned()).collect()
});

/// Returns a noun for the process that has `name` in any schedule, if there is one. Servers are numbered
/// (`redis-1`, `replica-1`, `etcd-1`); a name without a number is that of a cluster, or the address of the
/// lock. Events of links belong to `network`, and events of no process to `harness`.
fn reserved(name: &str) -> Option<&'static str> {
    let is_number = |rest: &str| {
        let number = rest.strip_prefix('-');
        rest.is_empty() || number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_server = |kind: &&ProcessKind| name.strip_prefix(kind.name()).is_some_and(is_number);
    let servers = ProcessKind::ALL.iter().filter(|kind| kind.is_server());
    match name {
        NETWORK => Some("the network"),
        "harness" => Some("the simulator itself"),
        _ if name == ProcessKind::Resource.name() => Some(ProcessKind::Resource.noun()),
        _ if name == ProcessKind::Postgres.name() => Some(ProcessKind::Postgres.noun()),
        _ => servers.into_iter().find(is_server).map(|kind| kind.noun()).or_else(|| {
            let is_other = |server: &String| name.strip_prefix(server.as_str()).is_some_and(is_number);
            SERVERS.iter().any(is_other).then(|| ProcessKind::Server.noun())
        }),
    }
}
