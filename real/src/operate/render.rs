//! The state of a lock as a table of at most 80 columns.

use std::fmt;

use super::{Answer, Inspection, Queue, RedisServer, Session, State};
use crate::report::Table;

/// The most columns of an owner or a server.
const NAME_COLUMNS: usize = 20;

/// The most waiters that are listed.
const WAITERS_MAX: usize = 20;

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.key, self.system.as_str())?;
        match &self.state {
            State::Servers(servers) => write!(f, "\n\n{}", of_servers(servers).text())?,
            State::Queue(queue) => {
                if let Some(revision) = queue.revision {
                    write!(f, ", at {revision}")?;
                }
                write!(f, "\n\n{}", of_queue(queue))?;
            }
        }
        if let Some(seen) = &self.resource {
            let highest = seen.highest_token.map_or_else(|| "none".to_owned(), |token| token.to_string());
            write!(f, "\nresource: highest token {highest}, {} writes accepted\n", seen.writes)?;
        }
        Ok(())
    }
}

fn of_servers(servers: &[RedisServer]) -> Table {
    let mut table = Table::new("", &["server", "owner", "left", "counter", "waiting"]);
    for RedisServer { server, answer } in servers {
        let server = cut(server, NAME_COLUMNS);
        let Answer::Read(state) = answer else {
            table.row([server, "unread".to_owned()]);
            continue;
        };
        let (owner, left) = match &state.lease {
            Some(lease) => (
                cut(lease.owner.prefix(), NAME_COLUMNS),
                lease.left_ms.map_or("never ends".to_owned(), seconds),
            ),
            None => ("free".to_owned(), "–".to_owned()),
        };
        table.row([server, owner, left, number(state.counter), number(state.listeners)]);
    }
    table
}

fn of_queue(queue: &Queue) -> String {
    if queue.claims.is_empty() {
        return "free: the queue is empty\n".to_owned();
    }
    let mut table = Table::new("", &["place", "owner", "token", "session", "left"]);
    let mut clients = String::new();
    for (place, claim) in queue.claims.iter().enumerate().take(WAITERS_MAX + 1) {
        let place = if place == 0 { "holder".to_owned() } else { place.to_string() };
        let owner = cut(claim.owner.prefix(), NAME_COLUMNS);
        let (id, left) = match &claim.session {
            None => ("none".to_owned(), "never ends".to_owned()),
            Some(session) => (session.id.clone(), left(session)),
        };
        let client = claim.session.as_ref().and_then(|session| session.client.as_ref());
        clients.extend(client.map(|client| format!("{owner} is connected from {client}\n")));
        table.row([place, owner, claim.token.to_string(), id, left]);
    }
    let more = queue.claims.len().saturating_sub(WAITERS_MAX + 1);
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    let gap = if clients.is_empty() { "" } else { "\n" };
    [&table.text(), &more, gap, &clients].concat()
}

/// Returns the time that is left of a session, or its whole TTL if only that is known.
fn left(session: &Session) -> String {
    match (session.is_gone, session.left_ms, session.ttl_ms) {
        (Some(true), ..) => "gone".to_owned(),
        (_, Some(left), _) => seconds(left),
        (_, None, Some(ttl)) => format!("≤ {}", seconds(ttl)),
        (_, None, None) => "?".to_owned(),
    }
}

fn seconds(millis: u64) -> String {
    format!("{}.{} s", millis / 1000, millis % 1000 / 100)
}

fn number(number: Option<u64>) -> String {
    number.map_or_else(|| "–".to_owned(), |number| number.to_string())
}

/// Shortens a text in the middle, so that its end, which tells names apart, stays.
fn cut(text: &str, columns: usize) -> String {
    let count = text.chars().count();
    if count <= columns {
        return text.to_owned();
    }
    let (head, tail) = (columns / 2 - 1, columns - columns / 2);
    let first: String = text.chars().take(head).collect();
    let last: String = text.chars().skip(count - tail).collect();
    format!("{first}…{last}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::{Claim, Owner, Path, RedisLease, RedisState, Seen};
    use crate::systems::System;

    fn owner() -> Owner {
        Owner(format!("{}:0123456789abcdef0123456789abcdef", "a-long-name".repeat(9)))
    }

    fn assert_fits(state: State, system: System) -> String {
        let resource = Some(Seen { highest_token: Some(u64::MAX), writes: 1_000_000_000 });
        let text = Inspection { key: "orders:42".to_owned(), system, state, resource }.to_string();
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        text
    }

    #[test]
    fn the_longest_values_fit_into_80_columns() {
        let server = RedisServer {
            server: "a-host-with-a-long-name.example.org:63790".to_owned(),
            answer: Answer::Read(RedisState {
                lease: Some(RedisLease { owner: owner(), left_ms: Some(86_400_000) }),
                counter: Some(1_764_127_493_123_456),
                counter_left_ms: None,
                listeners: Some(1000),
            }),
        };
        let text = assert_fits(State::Servers(vec![server]), System::Redis);
        assert!(text.contains(":01234567") && !text.contains(":012345678"), "{text}");
        let session = Session {
            id: "694d8c0b1e5f2a31".to_owned(),
            left_ms: Some(86_400_000),
            ttl_ms: Some(86_400_000),
            client: Some("192.168.100.200:51234".to_owned()),
            ..Session::default()
        };
        let claim = |left_ms| Claim {
            name: "lock/v1/orders:42/0".to_owned(),
            owner: owner(),
            token: 1_234_567,
            session: Some(Session { left_ms, ..session.clone() }),
            is_used_up: false,
            version: 1,
            path: Path::default(),
        };
        let queue = |left| Queue { revision: Some(9), claims: vec![claim(left); 40], strangers: Vec::new() };
        let text = assert_fits(State::Queue(queue(None)), System::Zookeeper);
        assert!(text.contains("and 19 more"), "{text}");
        assert_fits(State::Queue(queue(Some(86_400_000))), System::Etcd);
    }
}
