//! Builds short histories of `(milliseconds, process, event)`.

use history::{
    ClockFault, Effect, Event, InstantFault, Kind, LinkFault, Name, Nanos, RoleFault, Rules, Verdict,
    VerdictKind, audit,
};

/// The key of every event.
pub(crate) const KEY: &str = "2f1a6b03c9de";

pub(crate) fn history<'a>(events: impl IntoIterator<Item = (u64, &'a str, Kind)>) -> Vec<Event> {
    let event = |(millis, process, kind): (u64, &str, Kind)| Event {
        at: millis_at(millis),
        process: process.into(),
        kind,
    };
    events.into_iter().map(event).collect()
}

pub(crate) fn millis_at(millis: u64) -> Nanos {
    Nanos(millis * 1_000_000)
}

/// Returns the verdicts under the default rules, which judge safety alone.
pub(crate) fn judge<'a>(events: impl IntoIterator<Item = (u64, &'a str, Kind)>) -> Vec<Verdict> {
    audit(&history(events), &Rules::default())
}

/// Returns the verdicts' kinds and processes: `stale_write a b`.
pub(crate) fn lines(verdicts: &[Verdict]) -> Vec<String> {
    let line = |verdict: &Verdict| {
        let processes = verdict.processes.iter().map(|process| format!(" {process}"));
        verdict.kind.to_string() + &processes.collect::<String>()
    };
    verdicts.iter().map(line).collect()
}

/// Returns the only verdict, which must be of this kind.
pub(crate) fn only(kind: VerdictKind, verdicts: &[Verdict]) -> &Verdict {
    assert_eq!(verdicts.iter().map(|verdict| verdict.kind).collect::<Vec<_>>(), [kind], "{verdicts:#?}");
    &verdicts[0]
}

/// Returns the owner prefix of the acquisition of `worker`; a name with a colon is one already.
pub(crate) fn owner(worker: &str) -> Name {
    if worker.contains(':') { worker.into() } else { format!("{worker}:7f3c9e12").as_str().into() }
}

pub(crate) fn key() -> Name {
    KEY.into()
}

pub(crate) fn requested(worker: &str) -> Kind {
    Kind::LeaseRequested { resource_type: None, key: key(), owner: owner(worker), ttl_millis: Some(2000) }
}

/// Returns the event that the request of `worker` is for reading.
pub(crate) fn shared(worker: &str) -> Kind {
    Kind::LeaseShared { resource_type: None, key: key(), owner: owner(worker) }
}

pub(crate) fn retried(worker: &str) -> Kind {
    Kind::LeaseRetried { resource_type: None, key: key(), owner: owner(worker), ttl_millis: Some(2000) }
}

pub(crate) fn waiter_gone(worker: &str) -> Kind {
    Kind::WaiterGone { key: key(), owner: owner(worker), position: None }
}

pub(crate) fn waiter_gone_from(worker: &str, position: u64) -> Kind {
    Kind::WaiterGone { key: key(), owner: owner(worker), position: Some(position) }
}

pub(crate) fn queued(worker: &str, position: u64) -> Kind {
    Kind::LeaseQueued { resource_type: None, key: key(), owner: owner(worker), position }
}

pub(crate) fn acquired(worker: &str, token: u64) -> Kind {
    let (resource_type, key, owner) = (None, key(), owner(worker));
    let (ttl_millis, valid_micros) = (Some(2000), Some(1_978_000));
    Kind::LeaseAcquired { resource_type, key, owner, token, ttl_millis, valid_micros }
}

pub(crate) fn not_acquired(worker: &str) -> Kind {
    Kind::LeaseNotAcquired {
        resource_type: None,
        key: key(),
        owner: owner(worker),
        outcome: Some("timeout".into()),
    }
}

pub(crate) fn renewed(worker: &str, token: u64) -> Kind {
    Kind::LeaseRenewed {
        resource_type: None,
        key: key(),
        owner: owner(worker),
        token,
        valid_micros: Some(1_978_000),
    }
}

/// Returns the same renewal with a validity of `millis` milliseconds.
pub(crate) fn valid_for(kind: Kind, millis: u64) -> Kind {
    match kind {
        Kind::LeaseRenewed { resource_type, key, owner, token, .. } => {
            let valid_micros = Some(millis * 1000);
            Kind::LeaseRenewed { resource_type, key, owner, token, valid_micros }
        }
        kind => kind,
    }
}

pub(crate) fn lost(worker: &str, token: u64) -> Kind {
    Kind::LeaseLost {
        resource_type: None,
        key: key(),
        owner: owner(worker),
        token,
        outcome: Some("expired".into()),
    }
}

pub(crate) fn release_requested(worker: &str, token: u64) -> Kind {
    Kind::LeaseReleaseRequested { resource_type: None, key: key(), owner: owner(worker), token }
}

pub(crate) fn struck(fault: u64, verb: &str) -> Kind {
    Kind::FaultApplied { fault, verb: verb.into(), effect: effect(verb), until: None, detail: verb.into() }
}

pub(crate) fn healed(fault: u64, verb: &str) -> Kind {
    Kind::FaultHealed { fault, verb: verb.into(), effect: effect(verb), detail: "over".into() }
}

/// Returns the effect of the simulator's fault of this name.
fn effect(verb: &str) -> Effect {
    match verb {
        "pause" => Effect::Pause,
        "crash" => Effect::Down,
        "cut" => Effect::links(LinkFault::Cut, [("a", "redis-1")]),
        "delay" => Effect::links(LinkFault::Delay, [("a", "redis-1")]),
        "reset" => Effect::links(LinkFault::Reset, [("a", "redis-1")]),
        "step" => Effect::Clock(ClockFault::StepNanos(1_000_000_000)),
        "lead" => Effect::Role(RoleFault::Lead),
        "evict" => Effect::Instant(InstantFault::Erase),
        "cancel" => Effect::Instant(InstantFault::Cancel),
        other => panic!("no effect for {other}"),
    }
}

pub(crate) fn released(worker: &str, token: u64, outcome: &str) -> Kind {
    Kind::LeaseReleased {
        resource_type: None,
        key: key(),
        owner: owner(worker),
        token,
        outcome: Some(outcome.into()),
    }
}

pub(crate) fn entered(worker: &str, token: u64) -> Kind {
    Kind::SectionEntered { key: key(), owner: owner(worker), token }
}

pub(crate) fn left(worker: &str, token: u64) -> Kind {
    Kind::SectionLeft { key: key(), owner: owner(worker), token, outcome: None }
}

pub(crate) fn crashed() -> Kind {
    Kind::ProcessCrashed { detail: None }
}

pub(crate) fn sent(worker: &str, token: u64) -> Kind {
    Kind::WriteSent { key: key(), owner: Some(owner(worker)), token, seq: None }
}

/// Returns an accepted plain write, the last of its grant.
pub(crate) fn accepted(worker: &str, token: u64, version: u64) -> Kind {
    Kind::WriteAccepted { key: key(), owner: Some(owner(worker)), token, seq: None, version, body: None }
}

pub(crate) fn accepted_number(worker: &str, token: u64, seq: u64, version: u64) -> Kind {
    Kind::WriteAccepted { key: key(), owner: Some(owner(worker)), token, seq: Some(seq), version, body: None }
}

/// Returns an accepted write of a client that sends its token and no owner.
pub(crate) fn accepted_unnamed(token: u64, version: u64) -> Kind {
    Kind::WriteAccepted { key: key(), owner: None, token, seq: None, version, body: None }
}

pub(crate) fn repeated(worker: &str, token: u64, version: u64) -> Kind {
    Kind::WriteRepeated { key: key(), owner: Some(owner(worker)), token, seq: None, version, body: None }
}

pub(crate) fn rejected(worker: &str, token: u64, seen: u64) -> Kind {
    let (key, owner) = (key(), Some(owner(worker)));
    Kind::WriteRejected { key, owner, token, seq: None, seen, outcome: Some("stale".into()) }
}

/// Returns a plain read.
pub(crate) fn read(worker: &str, version: u64) -> Kind {
    Kind::ResourceRead { key: key(), owner: Some(owner(worker)), token: None, version, seen: 0 }
}

/// Returns a fenced read, which claims the token.
pub(crate) fn claimed(worker: &str, token: u64, version: u64) -> Kind {
    Kind::ResourceRead { key: key(), owner: Some(owner(worker)), token: Some(token), version, seen: token }
}

pub(crate) fn granted(worker: &str, token: u64) -> Kind {
    let (key, owner, client) =
        (key(), owner(worker), owner(worker).as_str().split(':').next().unwrap().into());
    Kind::KeyGranted { key, owner, token: Some(token), ttl_millis: Some(2000), client }
}

pub(crate) fn extended(held: &str, client: &str) -> Kind {
    Kind::KeyExtended { key: key(), owner: owner(held), ttl_millis: Some(2000), client: client.into() }
}

pub(crate) fn deleted(held: &str, client: &str) -> Kind {
    Kind::KeyDeleted { key: key(), owner: owner(held), client: client.into() }
}

pub(crate) fn expired(held: &str) -> Kind {
    Kind::KeyExpired { key: key(), owner: Some(owner(held)) }
}

/// Returns an accepted write on the condition that the version is still `expected`.
pub(crate) fn conditional(worker: &str, expected: u64, version: u64) -> Kind {
    Kind::ConditionalAccepted { key: key(), owner: Some(owner(worker)), expected, version, body: None }
}

pub(crate) fn conditional_unnamed(expected: u64, version: u64) -> Kind {
    Kind::ConditionalAccepted { key: key(), owner: None, expected, version, body: None }
}
