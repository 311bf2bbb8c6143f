//! The text trace: a line an event, in the order of true time.

use std::collections::BTreeMap;
use std::fmt::Write;

use resource::audit::{Event, Kind, Name, Nanos};

use crate::span::in_whole_units;

/// What hashed ids and whole seconds look like to a reader.
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<Name, String>);

impl Names {
    /// The names of the resources `keys` (`orders:42`), under the hashes that events know them by.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(|key| (Name::from(dlock::id_hash(key).as_str()), key.to_owned())).collect())
    }

    /// The resource's name, or its hash if the run does not know it.
    pub fn key<'a>(&'a self, hash: &'a Name) -> &'a str {
        self.0.get(hash).map_or(hash.as_str(), String::as_str)
    }
}

/// The whole trace. Each line ends with a line feed.
pub fn trace(events: &[Event], names: &Names) -> String {
    let mut text = String::with_capacity(events.len() * 72);
    let mut paused = BTreeMap::new();
    for event in events {
        // The fault behind it has a line that says so.
        if matches!(event.kind, Kind::ClockRate { .. }) {
            continue;
        }
        note_pause(&mut paused, event);
        let mark = if paused.contains_key(&event.process) { '▌' } else { ' ' };
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "{:>8}  {:<10}{mark} {}",
            event.at.to_string(),
            event.process.as_str(),
            describe(&event.kind, names)
        );
    }
    text
}

/// Keeps track of which processes are paused: their lines bear a mark.
fn note_pause(paused: &mut BTreeMap<Name, ()>, event: &Event) {
    match &event.kind {
        Kind::FaultApplied { verb, .. } if verb.as_str() == "pause" => {
            paused.insert(event.process.clone(), ());
        }
        Kind::FaultHealed { .. } | Kind::ProcessCrashed { .. } => {
            paused.remove(&event.process);
        }
        _ => {}
    }
}

/// An event in words.
pub fn describe(kind: &Kind, names: &Names) -> String {
    match kind {
        Kind::LeaseRequested { .. }
        | Kind::LeaseRetried { .. }
        | Kind::LeaseQueued { .. }
        | Kind::LeaseAcquired { .. }
        | Kind::LeaseNotAcquired { .. }
        | Kind::LeaseRenewed { .. }
        | Kind::LeaseRenewFailed { .. }
        | Kind::LeaseLost { .. }
        | Kind::LeaseReleaseRequested { .. }
        | Kind::LeaseReleased { .. } => lease(kind, names),
        Kind::WriteAccepted { .. }
        | Kind::WriteRepeated { .. }
        | Kind::WriteRejected { .. }
        | Kind::ConditionalAccepted { .. }
        | Kind::ConditionalRepeated { .. }
        | Kind::ConditionalRejected { .. }
        | Kind::ResourceRead { .. }
        | Kind::ReadRejected { .. } => resource(kind, names),
        Kind::SectionEntered { .. }
        | Kind::SectionLeft { .. }
        | Kind::WorkerStep { .. }
        | Kind::WriteSent { .. }
        | Kind::WriteAnswered { .. }
        | Kind::ConditionalSent { .. }
        | Kind::ConditionalAnswered { .. }
        | Kind::UpdateEnded { .. } => worker(kind, names),
        _ => server(kind, names),
    }
}

fn lease(kind: &Kind, names: &Names) -> String {
    match kind {
        Kind::LeaseRequested { key, ttl_millis, .. } => {
            format!("acquire {} ttl={}", names.key(key), millis(*ttl_millis))
        }
        Kind::LeaseRetried { key, ttl_millis, .. } => {
            format!("acquires {} again ttl={}", names.key(key), millis(*ttl_millis))
        }
        Kind::LeaseQueued { key, position, .. } => format!("queued for {} at {position}", names.key(key)),
        Kind::LeaseAcquired { token, valid_micros, owner, .. } => {
            format!("granted to {} token={token}, valid for {}", short(owner), micros(*valid_micros))
        }
        Kind::LeaseNotAcquired { key, outcome, .. } => {
            format!("not acquired {}: {}", names.key(key), word(outcome))
        }
        Kind::LeaseRenewed { token, valid_micros, .. } => {
            format!("renewed token={token}, valid for {}", micros(*valid_micros))
        }
        Kind::LeaseRenewFailed { token, outcome, .. } => {
            format!("renewal failed token={token}: {}", word(outcome))
        }
        Kind::LeaseLost { token, outcome, .. } => format!("lost token={token}: {}", word(outcome)),
        Kind::LeaseReleaseRequested { key, token, .. } => format!("release {} token={token}", names.key(key)),
        Kind::LeaseReleased { token, outcome, .. } => format!("released token={token}: {}", word(outcome)),
        _ => String::new(),
    }
}

fn resource(kind: &Kind, names: &Names) -> String {
    match kind {
        Kind::WriteAccepted { key, owner, token, seq, .. } => {
            format!("{} → 200", put(names.key(key), owner.as_ref(), *token, *seq))
        }
        Kind::WriteRepeated { key, owner, token, seq, .. } => {
            format!("{} → 200 again, a retry", put(names.key(key), owner.as_ref(), *token, *seq))
        }
        Kind::WriteRejected { key, owner, token, seq, seen, outcome } => {
            format!(
                "{} → 409 {}, seen {seen}",
                put(names.key(key), owner.as_ref(), *token, *seq),
                word(outcome)
            )
        }
        Kind::ConditionalAccepted { key, owner, expected, version, .. } => {
            format!("{} → 200, version {version}", put_if(names.key(key), owner.as_ref(), *expected))
        }
        Kind::ConditionalRepeated { key, owner, expected, .. } => {
            format!("{} → 200 again, a retry", put_if(names.key(key), owner.as_ref(), *expected))
        }
        Kind::ConditionalRejected { key, owner, expected, version, seen, .. } => {
            let answer = match (version, seen) {
                (Some(current), _) => format!("412, version {current}"),
                (None, seen) => format!("409 token required, seen {}", seen.unwrap_or_default()),
            };
            format!("{} → {answer}", put_if(names.key(key), owner.as_ref(), *expected))
        }
        Kind::ResourceRead { key, token: Some(token), owner, version, .. } => {
            format!(
                "GET {} {} token={token} → version {version}, claimed",
                names.key(key),
                holder(owner.as_ref())
            )
        }
        Kind::ResourceRead { key, version, owner, .. } => {
            format!("GET {} {} → version {version}", names.key(key), holder(owner.as_ref()))
        }
        Kind::ReadRejected { key, token, seen, outcome, owner } => format!(
            "GET {} {} token={token} → 409 {}, seen {seen}",
            names.key(key),
            holder(owner.as_ref()),
            word(outcome)
        ),
        _ => String::new(),
    }
}

fn worker(kind: &Kind, names: &Names) -> String {
    match kind {
        Kind::SectionEntered { key, token, .. } => {
            format!("enters the section of {} token={token}", names.key(key))
        }
        Kind::SectionLeft { key, token, outcome, .. } => {
            format!("leaves the section of {} token={token}: {}", names.key(key), word(outcome))
        }
        Kind::WorkerStep { step, .. } => format!("· {step}"),
        Kind::WriteSent { key, owner, token, seq } => {
            format!("sends {}", put(names.key(key), owner.as_ref(), *token, *seq))
        }
        Kind::WriteAnswered { token, outcome, .. } => format!("its write token={token}: {}", word(outcome)),
        Kind::ConditionalSent { key, owner, expected } => {
            format!("sends {}", put_if(names.key(key), owner.as_ref(), *expected))
        }
        Kind::ConditionalAnswered { expected, outcome, .. } => {
            format!("its write if version {expected}: {}", word(outcome))
        }
        Kind::UpdateEnded { key, outcome, .. } => format!("update of {}: {}", names.key(key), word(outcome)),
        _ => String::new(),
    }
}

fn server(kind: &Kind, names: &Names) -> String {
    match kind {
        Kind::KeyGranted { key, owner, token, ttl_millis, .. } => {
            let token = token.map_or(String::new(), |token| format!(" token={token}"));
            format!("granted {} to {}{token} for {}", names.key(key), short(owner), millis(*ttl_millis))
        }
        Kind::KeyExtended { key, owner, ttl_millis, client } => {
            format!("{client} extended {} of {} to {}", names.key(key), short(owner), millis(*ttl_millis))
        }
        Kind::KeyDeleted { key, owner, client } => {
            format!("{client} deleted {} of {}", names.key(key), short(owner))
        }
        Kind::KeyExpired { key, owner } => {
            format!("expired {} of {}", names.key(key), holder(owner.as_ref()))
        }
        Kind::WaiterGone { key, owner } => {
            format!("{} is out of the line for {}", short(owner), names.key(key))
        }
        Kind::ServerStopped { detail } => format!("stopped{}", tail(detail)),
        Kind::ServerStarted { detail } => format!("started{}", tail(detail)),
        Kind::ServerPromoted { detail } => format!("promoted{}", tail(detail)),
        Kind::FaultApplied { detail, .. } | Kind::FaultHealed { detail, .. } => detail.as_str().to_owned(),
        // A clean shutdown is the same event, and no crash.
        Kind::ProcessCrashed { detail } => detail.as_ref().map_or("crashed", Name::as_str).to_owned(),
        _ => String::new(),
    }
}

fn put(key: &str, owner: Option<&Name>, token: u64, seq: Option<u64>) -> String {
    match seq {
        Some(seq) if seq != u64::MAX => format!("PUT {key} {} token={token}.{seq}", holder(owner)),
        _ => format!("PUT {key} {} token={token}", holder(owner)),
    }
}

fn put_if(key: &str, owner: Option<&Name>, expected: u64) -> String {
    format!("PUT {key} {} if version {expected}", holder(owner))
}

fn tail(detail: &Option<Name>) -> String {
    detail.as_ref().map_or(String::new(), |detail| format!(": {detail}"))
}

fn word(outcome: &Option<Name>) -> &str {
    match outcome.as_ref().map(Name::as_str) {
        Some("not_owner") => "not the owner any more",
        Some(outcome) => outcome,
        None => "done",
    }
}

/// Who holds an owner token: the name before its random part.
pub fn holder(owner: Option<&Name>) -> &str {
    match owner {
        Some(owner) => owner.as_str().rsplit_once(':').map_or(owner.as_str(), |(name, _)| name),
        None => "somebody",
    }
}

/// An owner token's prefix with four digits, enough within one run: `a:7f3c`.
pub fn short(owner: &Name) -> &str {
    let owner = owner.as_str();
    let digits = owner.rfind(':').map_or(0, |colon| colon + 1);
    owner.get(..digits + 4).unwrap_or(owner)
}

fn millis(millis: Option<u64>) -> String {
    millis.map_or_else(|| "ever".to_owned(), |millis| in_whole_units(millis.saturating_mul(1_000_000)))
}

fn micros(micros: Option<u64>) -> String {
    micros.map_or_else(|| "?".to_owned(), |micros| Nanos(micros.saturating_mul(1000)).to_string())
}
