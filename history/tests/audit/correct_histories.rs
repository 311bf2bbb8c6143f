//! Histories of a correct lock, correct workers and a correct resource give no verdict.

use std::time::Duration;

use history::{Event, Kind, Rules, audit};
use proptest::prelude::*;

use crate::story::{
    accepted, accepted_number, acquired, claimed, crashed, deleted, entered, expired, extended, granted,
    history, left, lines, not_acquired, queued, read, rejected, released, renewed, repeated, requested,
};

/// The actions of one worker, from its request to its end.
#[derive(Clone, Debug)]
struct Turn {
    gives_up: bool,
    /// No read, a plain one (false) or a fenced one (true).
    read: Option<bool>,
    renewals: usize,
    /// The number of numbered writes before the plain one.
    numbered_writes: u64,
    retries: bool,
    end: End,
    /// True if the next worker queues while this one waits.
    next_comes_early: bool,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Released,
    /// The holder stops in time and lets the lease expire.
    Expired,
    Crashed,
    /// A write arrives after the successor's writes, and is refused.
    LateAndRefused,
}

fn turn() -> impl Strategy<Value = Turn> {
    let end =
        prop_oneof![Just(End::Released), Just(End::Expired), Just(End::Crashed), Just(End::LateAndRefused)];
    (
        prop::bool::weighted(0.1),
        any::<Option<bool>>(),
        0..3_usize,
        0..3_u64,
        any::<bool>(),
        end,
        any::<bool>(),
    )
        .prop_map(|(gives_up, read, renewals, numbered_writes, retries, end, next_comes_early)| Turn {
            gives_up,
            read,
            renewals,
            numbered_writes,
            retries,
            end,
            next_comes_early,
        })
}

/// A correct lock and resource, one step a millisecond.
#[derive(Default)]
struct World {
    events: Vec<(u64, String, Kind)>,
    token: u64,
    version: u64,
    enqueued: usize,
    /// The worker and token of a write that is still on its way.
    late: Option<(String, u64)>,
}

impl World {
    fn run(turns: &[Turn]) -> Vec<Event> {
        let mut world = Self::default();
        for (number, turn) in turns.iter().enumerate() {
            world.turn(number, turn);
        }
        if world.enqueued > turns.len() {
            // The worker that queued early after the last one gives up.
            let worker = format!("w{}", turns.len());
            world.add(&worker, not_acquired(&worker));
        }
        history(world.events.iter().map(|(at, process, kind)| (*at, process.as_str(), kind.clone())))
    }

    fn add(&mut self, process: &str, kind: Kind) {
        self.events.push((self.events.len() as u64, process.to_owned(), kind));
    }

    fn enqueue(&mut self, number: usize) {
        if self.enqueued == number {
            let worker = format!("w{number}");
            self.add(&worker, requested(&worker));
            self.add(&worker, queued(&worker, number as u64));
            self.enqueued += 1;
        }
    }

    fn turn(&mut self, number: usize, turn: &Turn) {
        let worker = format!("w{number}");
        self.enqueue(number);
        if turn.next_comes_early {
            self.enqueue(number + 1);
        }
        if turn.gives_up {
            return self.add(&worker, not_acquired(&worker));
        }
        self.token += 1;
        self.add("redis", granted(&worker, self.token));
        self.add(&worker, acquired(&worker, self.token));
        self.add(&worker, entered(&worker, self.token));
        self.work(&worker, turn);
        self.end(&worker, turn.end);
    }

    fn work(&mut self, worker: &str, turn: &Turn) {
        match turn.read {
            Some(true) => self.add("resource", claimed(worker, self.token, self.version)),
            Some(false) => self.add("resource", read(worker, self.version)),
            None => {}
        }
        for _ in 0..turn.renewals {
            self.add("redis", extended(worker, worker));
            self.add(worker, renewed(worker, self.token));
        }
        for seq in 1..=turn.numbered_writes {
            self.version += 1;
            self.add("resource", accepted_number(worker, self.token, seq, self.version));
        }
        self.version += 1;
        self.add("resource", accepted(worker, self.token, self.version));
        if turn.retries {
            self.add("resource", repeated(worker, self.token, self.version));
        }
        if let Some((late, token)) = self.late.take() {
            self.add("resource", rejected(&late, token, self.token));
        }
    }

    fn end(&mut self, worker: &str, end: End) {
        if let End::Crashed = end {
            self.add(worker, crashed());
            return self.add("redis", expired(worker));
        }
        self.add(worker, left(worker, self.token));
        match end {
            End::Released => {
                self.add("redis", deleted(worker, worker));
                self.add(worker, released(worker, self.token, "done"));
            }
            End::LateAndRefused => {
                self.late = Some((worker.to_owned(), self.token));
                self.add("redis", expired(worker));
            }
            End::Expired | End::Crashed => self.add("redis", expired(worker)),
        }
    }
}

fn rules(events: &[Event]) -> Rules {
    Rules {
        fifo: true,
        end: events.last().map(|event| event.at.after(Duration::from_secs(60))).unwrap_or_default(),
        healed_at: Some(Default::default()),
        served_within: Some(Duration::from_secs(60)),
        ..Rules::default()
    }
}

proptest! {
    #[test]
    fn correct_histories_give_no_verdict(turns in prop::collection::vec(turn(), 0..12)) {
        let events = World::run(&turns);
        prop_assert_eq!(audit(&events, &rules(&events)), []);
    }

    /// Moves one accepted write behind that of a later worker: the audit finds this one, and nothing else.
    #[test]
    fn one_write_that_arrives_too_late_gives_one_verdict(
        turns in prop::collection::vec(turn(), 2..8),
        picks in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let blind =
            turns.into_iter().map(|turn| Turn { read: None, numbered_writes: 0, gives_up: false, ..turn });
        let mut events = World::run(&blind.collect::<Vec<_>>());
        let writes: Vec<usize> = (0..events.len())
            .filter(|index| matches!(events[*index].kind, Kind::WriteAccepted { .. }))
            .collect();
        let from = picks.0.index(writes.len() - 1);
        let to = from + 1 + picks.1.index(writes.len() - 1 - from);
        let mut moved = events.remove(writes[from]);
        // The removal has shifted the later events by one: this is the place behind the later write.
        moved.at = events[writes[to] - 1].at;
        events.insert(writes[to], moved);
        let verdicts = audit(&events, &Rules::default());
        prop_assert_eq!(lines(&verdicts), [format!("stale_write w{from} w{to}")]);
    }
}

/// An audit that went back over earlier events would take far too long.
#[test]
fn a_long_history_is_judged_in_one_pass() {
    let turn = Turn {
        gives_up: false,
        read: Some(true),
        renewals: 1,
        numbered_writes: 2,
        retries: true,
        end: End::Crashed,
        next_comes_early: true,
    };
    let events = World::run(&vec![turn; 20_000]);
    assert!(events.len() > 200_000);
    let rules = Rules { served_within: None, ..rules(&events) };
    assert_eq!(audit(&events, &rules), []);
}
