//! The four-letter words: commands of operators in plain text.

use super::Server;
use super::member::Role;
use crate::world::machine::Machine;

/// Returns the answer to `input`, if it is a four-letter word.
pub(super) fn answer<M: Machine>(input: &[u8], server: &Server<M>) -> Option<String> {
    match input.get(..4)? {
        b"ruok" => Some("imok".to_owned()),
        b"isro" => Some("rw".to_owned()),
        b"srvr" => Some(with_mode(server, srvr)),
        b"mntr" => Some(with_mode(server, mntr)),
        _ => None,
    }
}

struct Facts {
    mode: &'static str,
    zxid: i64,
    nodes: usize,
    connections: usize,
    sessions: usize,
}

fn with_mode<M: Machine>(server: &Server<M>, text: fn(&Facts) -> String) -> String {
    server.attended(|core, _| {
        let member = &core.members[server.member];
        let mode = match member.role {
            Role::Down | Role::Looking => {
                return "This ZooKeeper instance is not currently serving requests\n".to_owned();
            }
            Role::Leading { .. } if core.members.len() == 1 => "standalone",
            Role::Leading { .. } => "leader",
            Role::Following { .. } => "follower",
        };
        let theirs = core.connections.values().filter(|connected| connected.member == server.member);
        text(&Facts {
            mode,
            zxid: member.zxid(core.zxid),
            // The real server counts the root twice.
            nodes: core.tree.len() + 1,
            connections: theirs.count(),
            sessions: core.sessions.len(),
        })
    })
}

fn srvr(facts: &Facts) -> String {
    format!(
        "Zookeeper version: 3.8.0-simulated\nConnections: {}\nOutstanding: 0\nZxid: 0x{:x}\nMode: {}\n\
         Node count: {}\n",
        facts.connections, facts.zxid, facts.mode, facts.nodes
    )
}

fn mntr(facts: &Facts) -> String {
    format!(
        "zk_version\t3.8.0-simulated\nzk_server_state\t{}\nzk_znode_count\t{}\nzk_num_alive_connections\t{}\n\
         zk_global_sessions\t{}\n",
        facts.mode, facts.nodes, facts.connections, facts.sessions
    )
}
