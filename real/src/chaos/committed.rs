//! The effects of ticks and jobs that PostgreSQL holds at the end of a run, as events of its history.
//!
//! A commit without an answer may stand, which no worker knows. The resource tells of such a write in its
//! own history. PostgreSQL has none, but its rows say which tasks took effect, and by which token. Each
//! becomes an accepted write, at the time at which its worker sent it: the earliest at which it may have been
//! committed.

use std::collections::{BTreeMap, BTreeSet};

use history::{Event, Kind, Name};

use super::effect::POSTGRES;
use crate::task_rows::TaskRow;

/// A commit of a task.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Commit {
    /// The cron or the queue, as histories name it.
    key: String,
    task: u64,
    token: u64,
    owner: String,
}

impl Commit {
    fn new(key: &Name, owner: Option<&Name>, token: u64, task: u64) -> Self {
        let owner = owner.map_or_else(String::new, |owner| owner.as_str().to_owned());
        Self { key: key.as_str().to_owned(), task, token, owner }
    }
}

impl From<&TaskRow> for Commit {
    fn from(row: &TaskRow) -> Self {
        let TaskRow { key, task, token, owner } = row;
        Self { key: dlock::id_hash(key), task: *task, token: *token, owner: owner.clone() }
    }
}

/// Inserts the accepted writes. Returns the number of commits that a worker had acknowledged and that the
/// rows do not have.
pub(super) fn insert(events: &mut Vec<Event>, rows: &[TaskRow]) -> u64 {
    let rows: BTreeSet<Commit> = rows.iter().map(Commit::from).collect();
    let mut lost = 0;
    // The writes that processes have announced, and that took effect: the owner, the token and the number.
    let mut announced = BTreeMap::new();
    let mut versions: BTreeMap<Name, u64> = BTreeMap::new();
    let mut all = Vec::with_capacity(events.len() + rows.len());
    for event in events.drain(..) {
        let (at, mut accepted) = (event.at, None);
        match &event.kind {
            Kind::TaskSent { key, owner, token, seq, task } => {
                let write = (owner.clone(), *token, *seq);
                if rows.contains(&Commit::new(key, owner.as_ref(), *token, *task)) {
                    announced.insert(event.process.clone(), write);
                }
            }
            Kind::WriteSent { key, owner, token, seq } => {
                let write = (owner.clone(), *token, *seq);
                if announced.get(&event.process) == Some(&write) {
                    announced.remove(&event.process);
                    let version = versions.entry(key.clone()).or_default();
                    *version += 1;
                    let (key, owner, token, seq) = (key.clone(), owner.clone(), *token, *seq);
                    let version = *version;
                    accepted = Some(Kind::WriteAccepted { key, owner, token, seq, version, body: None });
                }
            }
            Kind::TaskEnded { key, owner, token, task, outcome: Some(outcome) } => {
                let is_there = || rows.contains(&Commit::new(key, owner.as_ref(), *token, *task));
                lost += u64::from(outcome.as_str() == "done" && !is_there());
            }
            _ => {}
        }
        all.push(event);
        all.extend(accepted.map(|kind| Event { at, process: POSTGRES.into(), kind }));
    }
    *events = all;
    lost
}

#[cfg(test)]
mod tests {
    use history::{Nanos, Rules, VerdictKind, audit};

    use super::*;

    const TASK: u64 = 7;

    fn key() -> Name {
        dlock::id_hash("account:0").as_str().into()
    }

    fn event(at: u64, process: &str, kind: Kind) -> Event {
        Event { at: Nanos(at), process: process.into(), kind }
    }

    fn owner(process: &str) -> Option<Name> {
        Some(format!("{process}:1").as_str().into())
    }

    /// A worker sends the commit of the task, and has this outcome.
    fn sent(at: u64, process: &str, token: u64, outcome: &str) -> [Event; 3] {
        let (owner, seq) = (owner(process), Some(1));
        let task_sent = Kind::TaskSent { key: key(), owner: owner.clone(), token, seq, task: TASK };
        let write_sent = Kind::WriteSent { key: "job".into(), owner: owner.clone(), token, seq };
        let outcome = Some(outcome.into());
        let ended = Kind::TaskEnded { key: key(), owner, token, task: TASK, outcome };
        [task_sent, write_sent, ended].map(|kind| event(at, process, kind))
    }

    fn passed(at: u64) -> [Event; 2] {
        let step = Kind::WorkerStep { step: "asked".into(), key: Some(key()), owner: None };
        let passed = Kind::TasksPassed { key: key(), task: u64::MAX, outcome: Some("done".into()) };
        [event(at, "c", step), event(at, "c", passed)]
    }

    fn row(process: &str, token: u64) -> TaskRow {
        let owner = format!("{process}:1");
        TaskRow { key: "account:0".to_owned(), task: TASK, token, owner }
    }

    fn judged(mut events: Vec<Event>, rows: &[TaskRow]) -> (Vec<VerdictKind>, u64) {
        let lost = insert(&mut events, rows);
        let verdicts = audit(&events, &Rules::default());
        (verdicts.iter().map(|verdict| verdict.kind).collect(), lost)
    }

    fn history(parts: &[&[Event]]) -> Vec<Event> {
        let due = event(1, "a", Kind::TaskDue { key: key(), task: TASK });
        [&[due][..], &parts.concat()[..]].concat()
    }

    #[test]
    fn a_commit_without_an_answer_stands_if_its_row_is_there() {
        let events = history(&[&sent(2, "a", 1, "unanswered"), &passed(3)]);
        assert_eq!(judged(events.clone(), &[row("a", 1)]), (vec![], 0));
        assert_eq!(judged(events, &[]), (vec![VerdictKind::TaskLost], 0));
    }

    #[test]
    fn two_rows_of_a_task_are_judged_as_two_runs() {
        let events = history(&[&sent(2, "a", 1, "unanswered"), &sent(3, "b", 2, "done")]);
        assert_eq!(judged(events.clone(), &[row("b", 2)]), (vec![], 0));
        assert_eq!(judged(events, &[row("a", 1), row("b", 2)]), (vec![VerdictKind::RanTwice], 0));
    }

    #[test]
    fn an_acknowledged_commit_without_a_row_is_lost() {
        assert_eq!(judged(history(&[&sent(2, "a", 1, "done")]), &[]).1, 1);
    }
}
