//! Judges the state of a lock: what does not fit together. Pure: an inspection in, findings out.

use std::fmt;

use serde::Serialize;

use super::{Answer, Claim, Inspection, Owner, Queue, RedisServer, RedisState, State};
use crate::systems::System;

/// Something about a lock that does not fit together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// A server of several can't be read.
    Unread {
        /// The server.
        server: String,
        /// The error.
        reason: String,
    },
    /// A lease in Redis never ends.
    NoExpiry {
        /// The server.
        server: String,
        /// The owner.
        owner: Owner,
    },
    /// The lock is held, and the counter of its tokens is missing.
    NoCounter {
        /// The servers without a counter.
        servers: Vec<String>,
    },
    /// The counter will be deleted.
    CounterExpires {
        /// The server.
        server: String,
        /// The time until then, in milliseconds.
        left_ms: u64,
    },
    /// The next token of the counter may be one that the resource refuses.
    CounterBehind {
        /// The counter; with Redlock, the one that decides the next token at worst.
        counter: u64,
        /// The highest token that the resource has seen.
        seen: u64,
    },
    /// The servers of a Redlock have voted for different owners.
    SplitVotes {
        /// The owners, each with the number of its votes, most votes first.
        votes: Vec<(Owner, usize)>,
        /// The number of votes that make a majority.
        needed: usize,
    },
    /// An owner has votes, but no majority of them: it does not hold the lock, and hinders others.
    Minority {
        /// The owner.
        owner: Owner,
        /// The number of its votes.
        votes: usize,
        /// The number of votes that make a majority.
        needed: usize,
    },
    /// The holder's token is below one that the resource has seen: its writes are refused.
    TokenBehind {
        /// The holder.
        owner: Owner,
        /// Its token.
        token: u64,
        /// The highest token that the resource has seen.
        seen: u64,
    },
    /// The cluster counts below a token that the resource has seen: it was set back.
    RevisionBehind {
        /// The last revision (etcd) or transaction (ZooKeeper).
        revision: u64,
        /// The highest token that the resource has seen.
        seen: u64,
    },
    /// A claim belongs to no session: it never ends by itself.
    NoSession {
        /// The claim.
        name: String,
        /// Its owner.
        owner: Owner,
    },
    /// The session of a claim is gone, and the claim is still there.
    SessionGone {
        /// The claim.
        name: String,
        /// Its owner.
        owner: Owner,
        /// The session.
        session: String,
    },
    /// The numbers of a queue in ZooKeeper are used up: it grants nothing until it is empty.
    QueueUsedUp {
        /// The first claim with such a number.
        name: String,
    },
    /// A node in a queue is no claim.
    Stranger {
        /// Its name.
        name: String,
    },
}

/// Returns what does not fit together in an inspection.
pub fn findings(inspection: &Inspection) -> Vec<Finding> {
    let seen = inspection.resource.as_ref().and_then(|resource| resource.highest_token);
    match &inspection.state {
        State::Servers(servers) => of_servers(inspection, servers, seen),
        State::Queue(queue) => of_queue(queue, seen),
    }
}

fn of_servers(inspection: &Inspection, servers: &[RedisServer], seen: Option<u64>) -> Vec<Finding> {
    let mut found: Vec<_> = servers.iter().flat_map(of_server).collect();
    let needed = servers.len() / 2 + 1;
    if inspection.system == System::Redlock {
        found.extend(of_votes(inspection, needed));
    }
    // `None` if too few servers were read to know the next token.
    let Some(counter) = deciding_counter(servers, needed) else { return found };
    let is_held = inspection.holders().first().is_some_and(|holder| holder.servers.len() >= needed);
    if counter == 0 && is_held {
        found.push(Finding::NoCounter { servers: without_counter(servers) });
    }
    if let Some(seen) = seen.filter(|seen| counter < *seen) {
        found.push(Finding::CounterBehind { counter, seen });
    }
    found
}

fn of_server(RedisServer { server, answer }: &RedisServer) -> Vec<Finding> {
    let state = match answer {
        Answer::Read(state) => state,
        Answer::Failed(reason) => {
            return vec![Finding::Unread { server: server.clone(), reason: reason.clone() }];
        }
    };
    let mut found = Vec::new();
    if let Some(lease) = state.lease.as_ref().filter(|lease| lease.left_ms.is_none()) {
        found.push(Finding::NoExpiry { server: server.clone(), owner: lease.owner.clone() });
    }
    if let Some(left_ms) = state.counter_left_ms {
        found.push(Finding::CounterExpires { server: server.clone(), left_ms });
    }
    found
}

fn of_votes(inspection: &Inspection, needed: usize) -> Option<Finding> {
    let mut holders = inspection.holders();
    if holders.len() > 1 {
        let votes = holders.into_iter().map(|holder| (holder.owner, holder.servers.len())).collect();
        return Some(Finding::SplitVotes { votes, needed });
    }
    let holder = holders.pop().filter(|holder| holder.servers.len() < needed)?;
    Some(Finding::Minority { owner: holder.owner, votes: holder.servers.len(), needed })
}

fn read(server: &RedisServer) -> Option<&RedisState> {
    match &server.answer {
        Answer::Read(state) => Some(state),
        Answer::Failed(_) => None,
    }
}

/// Returns the counter above which every next token is: the highest one of the majority with the lowest
/// counters. A missing counter is zero. `None` if no majority was read.
fn deciding_counter(servers: &[RedisServer], needed: usize) -> Option<u64> {
    let mut counters: Vec<_> =
        servers.iter().filter_map(read).map(|state| state.counter.unwrap_or(0)).collect();
    counters.sort_unstable();
    counters.get(needed - 1).copied()
}

fn without_counter(servers: &[RedisServer]) -> Vec<String> {
    let lacks = |server: &&RedisServer| read(server).is_some_and(|state| state.counter.is_none());
    servers.iter().filter(lacks).map(|server| server.server.clone()).collect()
}

fn of_queue(queue: &Queue, seen: Option<u64>) -> Vec<Finding> {
    let mut found: Vec<_> = queue.claims.iter().filter_map(of_claim).collect();
    let used_up = queue.claims.iter().find(|claim| claim.is_used_up);
    found.extend(used_up.map(|claim| Finding::QueueUsedUp { name: claim.name.clone() }));
    found.extend(queue.strangers.iter().map(|name| Finding::Stranger { name: name.clone() }));
    let Some(seen) = seen else { return found };
    let holder = queue.claims.first().filter(|claim| claim.token < seen);
    found.extend(holder.map(|claim| Finding::TokenBehind {
        owner: claim.owner.clone(),
        token: claim.token,
        seen,
    }));
    let revision = queue.revision.filter(|revision| *revision < seen);
    found.extend(revision.map(|revision| Finding::RevisionBehind { revision, seen }));
    found
}

fn of_claim(claim: &Claim) -> Option<Finding> {
    let (name, owner) = (claim.name.clone(), claim.owner.clone());
    match &claim.session {
        None => Some(Finding::NoSession { name, owner }),
        Some(session) if session.is_gone == Some(true) => {
            Some(Finding::SessionGone { name, owner, session: session.id.clone() })
        }
        Some(_) => None,
    }
}

impl Finding {
    /// Returns true if `other` is the same problem, perhaps with other numbers. What an acquire in progress
    /// shows for a moment differs from one reading to the next.
    pub fn is_same_problem(&self, other: &Self) -> bool {
        use Finding::{Minority, NoExpiry, NoSession, SessionGone, SplitVotes, TokenBehind};
        match (self, other) {
            (NoExpiry { owner, .. }, NoExpiry { owner: other, .. })
            | (Minority { owner, .. }, Minority { owner: other, .. })
            | (NoSession { owner, .. }, NoSession { owner: other, .. })
            | (SessionGone { owner, .. }, SessionGone { owner: other, .. })
            | (TokenBehind { owner, .. }, TokenBehind { owner: other, .. }) => owner == other,
            (SplitVotes { votes, .. }, SplitVotes { votes: other, .. }) => votes == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread { server, reason } => write!(
                f,
                "{server} can't be read: {reason}. Check that it runs; the others still decide if they are a \
                 majority."
            ),
            Self::NoExpiry { server, owner } => write!(
                f,
                "The lease of {} on {server} has no expiry: if its owner is dead, nobody gets the lock. This \
                 library always sets one: find out who wrote the key, then `real clear`.",
                owner.prefix()
            ),
            Self::NoCounter { servers } => write!(
                f,
                "The lock is held, and its fencing counter is missing ({}): the data was lost or evicted. \
                 Tokens begin again at 1: `real raise`.",
                servers.join(", ")
            ),
            Self::CounterExpires { server, left_ms } => write!(
                f,
                "The fencing counter on {server} expires in {left_ms} ms, and tokens then begin again at 1. \
                 It must never expire: run PERSIST on its key."
            ),
            Self::CounterBehind { counter, seen } => write!(
                f,
                "The counter is at {counter}, and the resource has seen token {seen}: it refuses every \
                 grant until the counter is above that. `real raise` sets it to {}.",
                seen.saturating_add(1)
            ),
            Self::SplitVotes { votes, needed } => {
                let list: Vec<_> =
                    votes.iter().map(|(owner, count)| format!("{} {count}", owner.prefix())).collect();
                write!(
                    f,
                    "The servers have voted for different owners ({}; {needed} votes hold the lock). Votes \
                     of a failed round end with their TTL.",
                    list.join(", ")
                )
            }
            Self::Minority { owner, votes, needed } => write!(
                f,
                "{} has {votes} of the {needed} votes that hold the lock: it does not hold it, and its votes \
                 hinder others until they end.",
                owner.prefix()
            ),
            Self::TokenBehind { owner, token, seen } => write!(
                f,
                "The holder {} has token {token}, and the resource has seen {seen}: its writes are refused.",
                owner.prefix()
            ),
            Self::RevisionBehind { revision, seen } => write!(
                f,
                "The cluster is at {revision}, and the resource has seen token {seen}: the cluster was set \
                 back, as by a restore. `real raise` raises the revision of etcd, and says what to do with \
                 ZooKeeper."
            ),
            Self::NoSession { name, owner } => write!(
                f,
                "The claim of {} ({name}) belongs to no session: it never ends by itself. This library \
                 always sets one: find out who wrote it, then `real clear --owner {0}`.",
                owner.prefix()
            ),
            Self::SessionGone { name, owner, session } => write!(
                f,
                "The session {session} of {} has gone, and its claim {name} is still there. It ends within \
                 the session's TTL; if not, `real clear --owner {1}`.",
                owner.prefix(),
                owner.prefix()
            ),
            Self::QueueUsedUp { name } => write!(
                f,
                "The numbers of the queue are used up ({name}): it grants nothing until it is empty. Stop \
                 all clients of this lock for a moment."
            ),
            Self::Stranger { name } => write!(f, "{name} in the queue is no claim: find out who created it."),
        }
    }
}

#[cfg(test)]
mod tests;
