//! Describes events in words, and writes the text trace: a line for each event, in the order of true time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::events::{Event, Nanos};
pub use crate::story::holder;
use crate::story::status;
use crate::time::in_whole_units;
use crate::vocabulary::{Effect, Kind, Name};

/// The names of locks and resources by their hashes.
///
/// # Example
///
/// ```
/// use history::Name;
/// use history::text::Names;
///
/// let names = Names::new(["orders:42"]);
/// let hash = Name::from(dlock::id_hash("orders:42").as_str());
/// assert_eq!(names.key(&hash), "orders:42");
/// assert_eq!(names.key(&Name::from("6b6e")), "6b6e");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Names(BTreeMap<Name, String>);

impl Names {
    /// Collects the names `keys` (`orders:42`) under the hashes that events contain.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self(keys.into_iter().map(|key| (Name::from(dlock::id_hash(key).as_str()), key.to_owned())).collect())
    }

    /// Returns each hash with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &str)> {
        self.0.iter().map(|(hash, name)| (hash, name.as_str()))
    }

    /// Returns the name behind a hash, or the hash if it is unknown.
    pub fn key<'a>(&'a self, hash: &'a Name) -> &'a str {
        self.0.get(hash).map_or(hash.as_str(), String::as_str)
    }
}

/// Writes the whole trace. Each line ends with a line feed.
///
/// # Example
///
/// ```
/// use history::text::{Names, trace};
/// use history::{Event, Kind, Name, Nanos};
///
/// let kind = Kind::PointPassed { step: Name::from("moving money") };
/// let events = [Event { at: Nanos(12_000_000), process: Name::from("a"), kind }];
/// assert_eq!(trace(&events, &Names::default()), "   0.012  a           · moving money\n");
/// ```
pub fn trace(events: &[Event], names: &Names) -> String {
    let mut text = String::with_capacity(events.len() * 72);
    let mut paused = BTreeMap::new();
    for event in events {
        // The line of the fault also shows the rate.
        if matches!(event.kind, Kind::ClockRate { .. }) {
            continue;
        }
        note_pause(&mut paused, event);
        let is_paused = paused.get(&event.process).is_some_and(|pauses| !pauses.is_empty());
        let mark = if is_paused { '▌' } else { ' ' };
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

/// Tracks the pauses of each process by the numbers of their faults; `trace` marks the lines of a paused
/// process.
fn note_pause(paused: &mut BTreeMap<Name, BTreeSet<u64>>, event: &Event) {
    match &event.kind {
        Kind::FaultApplied { effect: Effect::Pause, fault, .. } => {
            paused.entry(event.process.clone()).or_default().insert(*fault);
        }
        Kind::FaultHealed { effect: Effect::Pause, fault, .. } => {
            paused.entry(event.process.clone()).or_default().remove(fault);
        }
        Kind::ProcessCrashed { .. } => {
            paused.remove(&event.process);
        }
        _ => {}
    }
}

/// Describes an event. The match is exhaustive, so that a new event needs a line to compile.
pub fn describe(kind: &Kind, names: &Names) -> String {
    let key = |key| names.key(key);
    let by = |owner: &Option<Name>| holder(owner.as_ref()).to_owned();
    match kind {
        Kind::LeaseRequested { key: of, ttl_millis, .. } => {
            format!("acquire {} ttl={}", key(of), millis(*ttl_millis))
        }
        Kind::LeaseRetried { key: of, ttl_millis, .. } => {
            format!("acquires {} again ttl={}", key(of), millis(*ttl_millis))
        }
        Kind::LeaseShared { key: of, .. } => format!("asks for {} beside other readers", key(of)),
        Kind::LeasePermits { key: of, permits, .. } => {
            format!("asks for one of {permits} permits of {}", key(of))
        }
        Kind::LeaseBounded { key: of, waiters_max, .. } => {
            format!("may wait for {} as one of at most {waiters_max}", key(of))
        }
        Kind::LeaseQueued { key: of, position, .. } => format!("queued for {} at {position}", key(of)),
        Kind::LeaseAcquired { token: 0, valid_micros, owner, .. } => {
            format!("granted to {} without a token, valid for {}", short(owner), micros(*valid_micros))
        }
        Kind::LeaseAcquired { token, valid_micros, owner, .. } => {
            format!("granted to {} token={token}, valid for {}", short(owner), micros(*valid_micros))
        }
        Kind::LeaseNotAcquired { key: of, outcome, .. } => {
            format!("not acquired {}: {}", key(of), in_words(outcome))
        }
        Kind::LeaseRenewed { token, valid_micros, .. } => {
            format!("renewed token={token}, valid for {}", micros(*valid_micros))
        }
        Kind::LeaseTtlChanged { token, ttl_millis, valid_micros, .. } => {
            let (ttl, valid) = (millis(*ttl_millis), micros(*valid_micros));
            format!("asks for a ttl of {ttl} token={token}, valid for {valid}")
        }
        Kind::LeaseRenewFailed { token, outcome, .. } => {
            format!("renewal failed token={token}: {}", in_words(outcome))
        }
        Kind::LeaseLost { token, outcome, .. } => format!("lost token={token}: {}", in_words(outcome)),
        Kind::LeaseReleaseRequested { key: of, token, .. } => format!("release {} token={token}", key(of)),
        Kind::LeaseReleased { token, outcome, .. } => {
            format!("released token={token}: {}", in_words(outcome))
        }
        Kind::WriteAccepted { key: of, owner, token, seq, .. } => {
            format!("{} → 200", put(key(of), owner.as_ref(), *token, *seq))
        }
        Kind::WriteRepeated { key: of, owner, token, seq, .. } => {
            format!("{} → 200 again, a retry", put(key(of), owner.as_ref(), *token, *seq))
        }
        Kind::WriteRejected { key: of, owner, token, seq, seen, outcome } => {
            let put = put(key(of), owner.as_ref(), *token, *seq);
            format!("{put} → {} {}, seen {seen}", status(outcome), in_words(outcome))
        }
        Kind::ConditionalAccepted { key: of, owner, expected, version, .. } => {
            format!("{} → 200, version {version}", put_if(key(of), owner.as_ref(), *expected))
        }
        Kind::ConditionalRepeated { key: of, owner, expected, .. } => {
            format!("{} → 200 again, a retry", put_if(key(of), owner.as_ref(), *expected))
        }
        Kind::ConditionalRejected { key: of, owner, expected, version, seen, .. } => {
            let answer = conflict(*version, *seen);
            format!("{} → {answer}", put_if(key(of), owner.as_ref(), *expected))
        }
        Kind::ResourceRead { key: of, token: Some(token), owner, version, .. } => {
            format!("GET {} {} token={token} → version {version}, claimed", key(of), by(owner))
        }
        Kind::ResourceRead { key: of, token: None, version, owner, .. } => {
            format!("GET {} {} → version {version}", key(of), by(owner))
        }
        Kind::ReadRejected { key: of, token, seen, outcome, owner } => {
            let (status, outcome) = (status(outcome), in_words(outcome));
            format!("GET {} {} token={token} → {status} {outcome}, seen {seen}", key(of), by(owner))
        }
        Kind::FenceSet { key: of, token, seen } => {
            format!("an operator sets the fence of {} from {seen} to {token}", key(of))
        }
        Kind::SectionEntered { key: of, token, .. } => {
            format!("enters the section of {} token={token}", key(of))
        }
        Kind::SectionLeft { key: of, token, outcome, .. } => {
            format!("leaves the section of {} token={token}: {}", key(of), in_words(outcome))
        }
        Kind::WorkerStep { step, .. } | Kind::PointPassed { step } => format!("· {step}"),
        Kind::WriteSent { key: of, owner, token, seq } => {
            format!("sends {}", put(key(of), owner.as_ref(), *token, *seq))
        }
        Kind::WriteAnswered { token, outcome, .. } => {
            format!("its write token={token}: {}", in_words(outcome))
        }
        Kind::ConditionalSent { key: of, owner, expected } => {
            format!("sends {}", put_if(key(of), owner.as_ref(), *expected))
        }
        Kind::ConditionalAnswered { expected, outcome, .. } => {
            format!("its write if version {expected}: {}", in_words(outcome))
        }
        Kind::UpdateEnded { key: of, outcome, .. } => format!("update of {}: {}", key(of), in_words(outcome)),
        Kind::KeyGranted { key: of, owner, token, ttl_millis, .. } => {
            let token = token.map_or(String::new(), |token| format!(" token={token}"));
            format!("granted {} to {}{token} for {}", key(of), short(owner), millis(*ttl_millis))
        }
        Kind::KeyExtended { key: of, owner, ttl_millis, client } => {
            format!("{client} extended {} of {} to {}", key(of), short(owner), millis(*ttl_millis))
        }
        Kind::KeyDeleted { key: of, owner, client } => {
            format!("{client} deleted {} of {}", key(of), short(owner))
        }
        Kind::KeyExpired { key: of, owner } => format!("expired {} of {}", key(of), by(owner)),
        Kind::WaiterGone { key: of, owner, .. } => {
            format!("{} is out of the line for {}", short(owner), key(of))
        }
        Kind::TermObserved { key: of, owner, token } => {
            format!("sees {} lead {} in term {token}", by(owner), key(of))
        }
        Kind::ServerStopped { detail } => format!("stopped{}", tail(detail)),
        Kind::ServerStarted { detail } => format!("started{}", tail(detail)),
        Kind::ServerPromoted { detail } => format!("promoted{}", tail(detail)),
        Kind::FaultApplied { detail, .. } | Kind::FaultHealed { detail, .. } => detail.to_string(),
        Kind::ClockRate { rate } => format!("its clocks run at {}", *rate as f64 / 1e9),
        // A clean shutdown has the same event, but is no crash.
        Kind::ProcessCrashed { detail } => detail.as_ref().map_or("crashed", Name::as_str).to_owned(),
        Kind::TaskDue { key: of, task } => format!("task {task} of {} is due", key(of)),
        Kind::TaskStarted { key: of, token, task, .. } => {
            format!("starts task {task} of {} token={token}", key(of))
        }
        Kind::TaskSent { key: of, token, task, .. } => {
            format!("commits task {task} of {} token={token}", key(of))
        }
        Kind::TaskEnded { token, task, outcome, .. } => {
            format!("its task {task} token={token}: {}", in_words(outcome))
        }
        Kind::TasksPassed { key: of, task: u64::MAX, .. } => format!("no task of {} is left", key(of)),
        Kind::TasksPassed { key: of, task, outcome } => {
            format!("tasks of {} up to {task}: {}", key(of), in_words(outcome))
        }
        Kind::FlightStarted { key: of, above: 0 } => format!("wants a result of {}", key(of)),
        Kind::FlightStarted { key: of, above } => {
            format!("wants a result of {} above token {above}", key(of))
        }
        Kind::ComputationStarted { key: of, token } => {
            format!("computes a result of {} token={token}", key(of))
        }
        Kind::ComputationFailed { token, .. } => format!("its computation token={token}: failed"),
        Kind::ResultReturned { key: of, token } => format!("returns a result of {} token={token}", key(of)),
    }
}

/// Describes the answer to a refused conditional write.
fn conflict(version: Option<u64>, seen: Option<u64>) -> String {
    match version {
        Some(current) => format!("412, version {current}"),
        None => format!("409 token required, seen {}", seen.unwrap_or_default()),
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

/// Returns an outcome in words.
pub fn in_words(outcome: &Option<Name>) -> &str {
    match outcome.as_ref().map(Name::as_str) {
        Some("not_owner") => "not the owner any more",
        Some(outcome) => outcome,
        None => "done",
    }
}

/// Shortens an owner token's prefix to four digits, which are unique enough within one run: `a:7f3c`.
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
