//! Decides whether a waiter that was not served kept asking for the lock.

use history::text::{Names, holder};
use history::{Event, Kind, Message, Name, Nanos, Verdict};

use crate::sim::{CorePhase, Report};

/// The requests of a run, and the times at which the lock became free.
pub(super) struct Asking<'a> {
    core: Option<&'a CorePhase>,
    events: &'a [Event],
    messages: &'a [Message],
    names: &'a Names,
}

impl<'a> Asking<'a> {
    /// Returns the requests of the run, if it has recorded its messages.
    pub(super) fn of(core: Option<&'a CorePhase>, report: &'a Report) -> Self {
        let Report { events, messages, names, .. } = report;
        Self { core, events, messages, names }
    }

    /// Returns the time of the last request of the verdict's waiter, if it sent none after it could have been
    /// served. Returns `None` for a run without recorded messages.
    pub(super) fn gave_up(&self, verdict: &Verdict) -> Option<Nanos> {
        let waiter = verdict.processes.first()?;
        let key = self.names.key(&verdict.key);
        let is_request = |message: &&Message| {
            message.from == waiter.as_str() && !message.is_reply && message.words.contains(key)
        };
        let last = self.messages.iter().filter(is_request).map(|message| message.sent).max()?;
        (last < self.served_from(waiter, verdict)).then_some(last)
    }

    /// Returns the time from which the waiter could have been served: the last, before the verdict, of the
    /// begin of the core phase, the end of a fault and the removal of another process's key.
    fn served_from(&self, waiter: &Name, verdict: &Verdict) -> Nanos {
        let by_other = |owner: Option<&Name>| holder(owner) != waiter.as_str();
        let frees = |event: &&Event| match &event.kind {
            Kind::KeyDeleted { key, owner, .. } => *key == verdict.key && by_other(Some(owner)),
            Kind::KeyExpired { key, owner } => *key == verdict.key && by_other(owner.as_ref()),
            kind => matches!(kind, Kind::FaultHealed { .. }),
        };
        let freed = self.events.iter().filter(frees).map(|event| event.at);
        let core = self.core.map(|core| Nanos(core.at.as_nanos()));
        freed.chain(core).filter(|at| *at <= verdict.at).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use history::{Fate, VerdictKind};

    use super::*;
    use crate::span::Span;

    fn request(millis: u64, words: &str) -> Message {
        Message {
            connection: 0,
            from: "a".to_owned(),
            to: "redis-1".to_owned(),
            sent: Nanos(Span::from_millis(millis).as_nanos()),
            fate: Fate::Held,
            is_reply: false,
            words: words.to_owned(),
            bytes: Vec::new(),
        }
    }

    /// Returns when the waiter `a` asked last, if it gave up: the other process's key is deleted at 2 s, the
    /// core phase begins at 3 s, and the waiter counts as stuck at 9 s.
    fn gave_up(messages: &[Message]) -> Option<u64> {
        let names = Names::new(["orders:42"]);
        let key = Name::from(dlock::id_hash("orders:42").as_str());
        let at = |secs| Nanos(Span::from_secs(secs).as_nanos());
        let (owner, client) = (Name::from("b:7f3c"), Name::from("b"));
        let deleted = Kind::KeyDeleted { key: key.clone(), owner, client };
        let events = [Event { at: at(2), process: Name::from("redis-1"), kind: deleted }];
        let (core, detail) = (CorePhase::at(Span::from_secs(3)), String::new());
        let processes = vec![Name::from("a")];
        let verdict = Verdict {
            kind: VerdictKind::Stuck,
            key,
            processes,
            at: at(9),
            event: None,
            because: Vec::new(),
            detail,
        };
        let asking = Asking { core: Some(&core), events: &events, messages, names: &names };
        asking.gave_up(&verdict).map(|last| last.0 / 1_000_000)
    }

    #[test]
    fn a_waiter_that_asks_in_the_core_phase_did_not_give_up() {
        let asks = [request(1000, "SET orders:42 a NX"), request(3500, "SET orders:42 a NX")];
        assert_eq!((gave_up(&asks), gave_up(&[])), (None, None));
    }

    #[test]
    fn a_waiter_that_asks_for_something_else_gave_up() {
        let asks = [request(2500, "SET orders:42 a NX"), request(3500, "SET orders:43 a NX")];
        assert_eq!(gave_up(&asks), Some(2500));
    }
}
