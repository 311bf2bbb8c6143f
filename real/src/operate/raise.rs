//! Raises a counter that was lost above what the resource has seen.

use serde::Serialize;

use super::{Inspection, Link, Queue, Servers, State};
use crate::systems::System;

/// The largest counter of one Redis, and revision of etcd: the next token is one more, and must fit in 64
/// bits with a sign.
const REDIS_MAX: u64 = i64::MAX.unsigned_abs() - 1;

/// The largest counter of a Redlock, whose scripts count exactly only below 2^53.
const REDLOCK_MAX: u64 = (1 << 53) - 2;

/// The largest number of writes by which a raise lifts the revision of etcd: more fill its database.
const ETCD_WRITES_MAX: u64 = 1_000_000;

/// The counter on one server after a raise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Raised {
    /// It was raised.
    Done {
        /// The counter before; `None` if there was none.
        from: Option<u64>,
    },
    /// It was as high already.
    Already {
        /// The counter.
        at: u64,
    },
    /// The server failed: it may be raised or not.
    Failed(String),
}

/// A counter can't be raised so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RaiseError {
    /// The revision of etcd is raised by writes, and these are too many.
    #[error(
        "the revision of etcd rises by one with each write: from {from} to {to} are more than {max} writes. \
         Restore the backup again with `etcdutl snapshot restore --bump-revision N --mark-compacted` (etcd \
         3.5.10 or later; `etcdctl` from 3.4.27 on), which adds N to the latest revision: choose N larger \
         than the number of writes since the backup, and such that the revision is above what the resource \
         has seen"
    )]
    TooFar {
        /// The revision now.
        from: u64,
        /// The number.
        to: u64,
        /// The largest number of writes.
        max: u64,
    },
    /// The system has no counter.
    #[error(
        "ZooKeeper has no counter to raise: its token is the zxid of the ensemble. If the ensemble was set \
         up again without its data, restore the data; or give the lock and the resource another key, of \
         which the resource has seen no token"
    )]
    ZooKeeper,
    /// The number is missing.
    #[error(
        "no number to raise the counter to: give --resource, so that it is read what the resource has seen, \
         or --to"
    )]
    NoNumber,
    /// The resource has seen a higher token.
    #[error(
        "--to {to} is below {seen}, the highest token that the resource has seen: it would still refuse \
         grants; give at least {seen}"
    )]
    BelowSeen {
        /// The number.
        to: u64,
        /// The highest token seen.
        seen: u64,
    },
    /// The number is too large.
    #[error("--to {to} is too large: {} counts to {max} at most", .system.as_str())]
    TooLarge {
        /// The number.
        to: u64,
        /// The system.
        system: System,
        /// The largest counter.
        max: u64,
    },
}

/// Returns the number to raise the counter to: `to`, or one more than `seen`, the highest token that the
/// resource has seen.
///
/// # Errors
///
/// [`RaiseError`] if the system has no counter, or the number is missing, too low or too large.
pub fn check_raise(system: System, to: Option<u64>, seen: Option<u64>) -> Result<u64, RaiseError> {
    let max = match system {
        System::Zookeeper => return Err(RaiseError::ZooKeeper),
        System::Redis | System::Etcd => REDIS_MAX,
        System::Redlock => REDLOCK_MAX,
    };
    let to = to.or_else(|| seen?.checked_add(1)).ok_or(RaiseError::NoNumber)?;
    match seen.filter(|seen| to < *seen) {
        Some(seen) => Err(RaiseError::BelowSeen { to, seen }),
        None if to > max => Err(RaiseError::TooLarge { to, system, max }),
        None => Ok(to),
    }
}

/// Checks that `inspection` is near enough to `to`, where a raise takes one write for each number.
///
/// # Errors
///
/// [`RaiseError::TooFar`].
pub fn check_writes(inspection: &Inspection, to: u64) -> Result<(), RaiseError> {
    let State::Queue(Queue { revision: Some(from), .. }) = inspection.state else { return Ok(()) };
    match to.saturating_sub(from) > ETCD_WRITES_MAX {
        true => Err(RaiseError::TooFar { from, to, max: ETCD_WRITES_MAX }),
        false => Ok(()),
    }
}

impl Servers {
    /// Sets the fencing counter to `to` on each server where it is lower. In etcd, whose tokens are
    /// revisions, it writes until the revision is at least `to`. ZooKeeper has nothing to raise: nothing is
    /// returned.
    pub async fn raise(&mut self, to: u64) -> Vec<(String, Raised)> {
        let Self { target, link, .. } = self;
        let raised = match link {
            Link::Redis(nodes) => nodes.raise(target, to).await,
            Link::Etcd(cluster) => {
                let raised = cluster.raise(target, to).await;
                vec![(target.place.addresses.join(","), raised.map(|(lower, from)| (lower, Some(from))))]
            }
            Link::ZooKeeper(_) => Vec::new(),
        };
        let raised = raised.into_iter();
        let outcome = |raised| match raised {
            Ok((true, from)) => Raised::Done { from },
            Ok((false, at)) => Raised::Already { at: at.unwrap_or(to) },
            Err(reason) => Raised::Failed(reason),
        };
        raised.map(|(server, raised)| (server, outcome(raised))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raise_ends_above_the_tokens_seen_unless_a_number_is_given() {
        let redis = |to, seen| check_raise(System::Redis, to, seen);
        assert_eq!(redis(None, Some(7)), Ok(8));
        assert_eq!(redis(Some(7), Some(7)), Ok(7));
        assert_eq!(redis(Some(3), None), Ok(3));
        assert_eq!(redis(Some(6), Some(7)), Err(RaiseError::BelowSeen { to: 6, seen: 7 }));
        assert_eq!(redis(None, None), Err(RaiseError::NoNumber));
    }

    #[test]
    fn a_number_that_the_scripts_cannot_count_is_refused() {
        let redlock = |to| check_raise(System::Redlock, Some(to), None);
        assert_eq!(redlock((1 << 53) - 2), Ok((1 << 53) - 2));
        assert!(matches!(redlock((1 << 53) - 1), Err(RaiseError::TooLarge { .. })));
        let redis = |to| check_raise(System::Redis, Some(to), None);
        assert!(redis(1 << 60).is_ok() && redis(u64::MAX / 2).is_err());
    }

    #[test]
    fn zookeeper_has_nothing_to_raise() {
        assert_eq!(check_raise(System::Zookeeper, Some(7), None), Err(RaiseError::ZooKeeper));
    }

    #[test]
    fn too_many_writes_are_refused() {
        let at = |revision| Inspection {
            key: "orders:42".to_owned(),
            system: System::Etcd,
            state: State::Queue(Queue { revision: Some(revision), ..Queue::default() }),
            resource: None,
        };
        assert_eq!(check_writes(&at(7), 1_000_007), Ok(()));
        let error = check_writes(&at(7), 1_000_008).unwrap_err().to_string();
        assert!(error.contains("--bump-revision") && error.contains("3.4.27"), "{error}");
        assert_eq!(check_writes(&at(9), 7), Ok(()));
    }
}
