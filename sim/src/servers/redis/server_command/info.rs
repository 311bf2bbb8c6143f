//! INFO and CLIENT INFO.

use std::fmt::Write;

use crate::servers::redis::core::{Client, Core};
use crate::servers::redis::reply::Protocol;
use crate::servers::redis::request::Args;

/// Returns the reply to INFO: the requested sections, or all.
pub(crate) fn text(core: &Core, asked: Args<'_>) -> String {
    let wants = |section: &str| {
        let every = [&b"all"[..], b"everything", b"default"];
        let is_asked = |name: &[u8]| {
            name.eq_ignore_ascii_case(section.as_bytes())
                || every.iter().any(|every| name.eq_ignore_ascii_case(every))
        };
        asked.is_empty() || asked.iter().any(is_asked)
    };
    let sections = [
        ("Server", server as fn(&Core, &mut String)),
        ("Clients", clients),
        ("Persistence", persistence),
        ("Stats", stats),
        ("Replication", replication),
        ("Keyspace", keyspace),
    ];
    let mut text = String::new();
    for (name, write) in sections.into_iter().filter(|(name, _)| wants(name)) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let _ = write!(text, "# {name}\r\n");
        write(core, &mut text);
    }
    text
}

/// Returns the line of CLIENT INFO.
pub(crate) fn client_line(client: &Client) -> String {
    let resp = if client.protocol == Protocol::Resp3 { 3 } else { 2 };
    let (id, name, database) = (client.id, String::from_utf8_lossy(&client.name), client.database);
    format!("id={id} name={name} db={database} resp={resp}\n")
}

fn server(core: &Core, text: &mut String) {
    let version = core.state.version;
    let _ = write!(text, "redis_version:{}\r\n", version.redis_number());
    if version.server() == "valkey" {
        let _ = write!(text, "server_name:valkey\r\nvalkey_version:{}\r\n", version.number());
    }
    let mode = if version.server() == "valkey" { "server_mode" } else { "redis_mode" };
    let _ = write!(text, "{mode}:standalone\r\narch_bits:64\r\n");
}

fn clients(core: &Core, text: &mut String) {
    let _ = write!(text, "connected_clients:{}\r\n", core.connected);
    let _ = write!(text, "blocked_clients:{}\r\n", core.state.wishes.len());
}

fn persistence(core: &Core, text: &mut String) {
    let _ = write!(text, "loading:0\r\naof_enabled:{}\r\n", u8::from(core.journal.is_enabled()));
}

fn stats(core: &Core, text: &mut String) {
    let _ = write!(text, "total_connections_received:{}\r\n", core.clients);
    let _ = write!(text, "total_commands_processed:{}\r\n", core.state.executed);
    let _ = write!(text, "expired_keys:{}\r\n", core.state.expired);
}

fn replication(core: &Core, text: &mut String) {
    let role = if core.state.is_replica { "slave" } else { "master" };
    let replication = &core.replication;
    let _ = write!(text, "role:{role}\r\nconnected_slaves:{}\r\n", replication.connected());
    let _ = write!(text, "master_replid:{}\r\nmaster_repl_offset:{}\r\n", replication.id, replication.offset);
}

fn keyspace(core: &Core, text: &mut String) {
    for (number, database) in core.state.databases().iter().enumerate().filter(|(_, keys)| keys.len() > 0) {
        let keys = database.len();
        let volatile = database.iter().filter(|(_, entry)| entry.expires_at.is_some()).count();
        let _ = write!(text, "db{number}:keys={keys},expires={volatile},avg_ttl=0\r\n");
    }
}
