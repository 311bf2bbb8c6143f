//! The symbol of an event, and its description in a few words.

use history::story::holder;
use history::text::in_words;
use history::{Effect, Kind, Name, in_whole_units};

/// The symbol of an event. The shapes differ, so that the colours are not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Shape {
    /// An intermediate step.
    Dot,
    /// A step of a worker's own code.
    Step,
    /// A request.
    Request,
    /// A grant, with its token.
    Grant,
    /// The end of a lease, or of an attempt.
    End,
    /// An accepted write.
    Accepted,
    /// A refusal.
    Refused,
    /// A process stops.
    Down,
    /// A process starts, or resumes.
    Up,
    /// A fault.
    Fault,
}

impl Shape {
    /// All symbols.
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;

    /// Returns its name, which is also its class in a page's style.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns its meaning.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Dot => "an event",
            Self::Step => "a step of the work",
            Self::Request => "a request",
            Self::Grant => "a grant",
            Self::End => "an end: released, expired, lost",
            Self::Accepted => "accepted by the resource",
            Self::Refused => "refused",
            Self::Down => "paused, stopped or crashed",
            Self::Up => "resumed or restarted",
            Self::Fault => "a fault",
        }
    }
}

pub(super) fn shape(kind: &Kind) -> Shape {
    match kind {
        Kind::LeaseRequested { .. }
        | Kind::LeaseRetried { .. }
        | Kind::LeaseReleaseRequested { .. }
        | Kind::WriteSent { .. }
        | Kind::ConditionalSent { .. }
        | Kind::FlightStarted { .. } => Shape::Request,
        Kind::LeaseAcquired { .. } | Kind::KeyGranted { .. } => Shape::Grant,
        Kind::LeaseLost { .. }
        | Kind::LeaseReleased { .. }
        | Kind::LeaseNotAcquired { .. }
        | Kind::KeyDeleted { .. }
        | Kind::KeyExpired { .. }
        | Kind::WaiterGone { .. } => Shape::End,
        Kind::WriteAccepted { .. } | Kind::WriteRepeated { .. } => Shape::Accepted,
        Kind::ConditionalAccepted { .. } | Kind::ConditionalRepeated { .. } => Shape::Accepted,
        Kind::WriteRejected { .. } | Kind::ReadRejected { .. } | Kind::ConditionalRejected { .. } => {
            Shape::Refused
        }
        Kind::WriteAnswered { outcome, .. } | Kind::ConditionalAnswered { outcome, .. } => {
            let is_accepted = outcome.as_ref().is_none_or(|outcome| outcome.as_str() == "accepted");
            if is_accepted { Shape::Dot } else { Shape::Refused }
        }
        Kind::LeaseRenewFailed { .. } => Shape::Refused,
        Kind::ProcessCrashed { .. } | Kind::ServerStopped { .. } => Shape::Down,
        Kind::ServerStarted { .. } | Kind::ServerPromoted { .. } => Shape::Up,
        Kind::FaultApplied { effect: Effect::Pause | Effect::Down, .. } => Shape::Down,
        Kind::FaultHealed { .. } => Shape::Up,
        Kind::FaultApplied { .. } | Kind::ClockRate { .. } => Shape::Fault,
        Kind::WorkerStep { .. } | Kind::PointPassed { .. } => Shape::Step,
        Kind::ComputationStarted { .. } | Kind::ComputationFailed { .. } | Kind::ResultReturned { .. } => {
            Shape::Step
        }
        _ => Shape::Dot,
    }
}

/// Returns the event in a few words. `text` is the full description of the event; `key` is the name of its
/// key, if the picture has several.
pub(super) fn label(kind: &Kind, text: &str, key: Option<&str>) -> String {
    let of = key.map_or(String::new(), |key| format!(" {key}"));
    let by = |owner: &Option<Name>| holder(owner.as_ref()).to_owned();
    match kind {
        Kind::LeaseRequested { .. } => format!("asks for the lock{of}"),
        Kind::LeaseRetried { .. } => format!("asks again{of}"),
        Kind::LeaseQueued { position, .. } => format!("queued at {position}{of}"),
        Kind::LeaseAcquired { token: 0, .. } => format!("granted{of}"),
        Kind::LeaseAcquired { token, .. } => format!("granted, token {token}{of}"),
        Kind::LeaseNotAcquired { outcome, .. } => format!("not granted: {}", in_words(outcome)),
        Kind::LeaseRenewed { .. } => format!("renewed{of}"),
        Kind::LeaseTtlChanged { ttl_millis, .. } => {
            let ttl = ttl_millis.map(history::Span::from_millis);
            format!("asks for a TTL of {}", ttl.map(|ttl| ttl.to_string()).unwrap_or_default())
        }
        Kind::LeaseRenewFailed { outcome, .. } => format!("renewal failed: {}", in_words(outcome)),
        Kind::LeaseLost { .. } => format!("knows its lease is lost{of}"),
        Kind::LeaseReleaseRequested { .. } => format!("releases{of}"),
        Kind::LeaseReleased { outcome, .. } if is_done(outcome) => format!("released{of}"),
        Kind::LeaseReleased { outcome, .. } => format!("release: {}", in_words(outcome)),
        Kind::SectionEntered { .. } => format!("enters its section{of}"),
        Kind::SectionLeft { outcome, .. } if is_done(outcome) => format!("leaves its section{of}"),
        Kind::SectionLeft { outcome, .. } => format!("leaves its section: {}", in_words(outcome)),
        Kind::TermObserved { owner, token, .. } => format!("sees {} lead, term {token}{of}", by(owner)),
        Kind::KeyGranted { owner, token, .. } => {
            let token = token.map_or(String::new(), |token| format!(", token {token}"));
            format!("stored for {}{token}{of}", holder(Some(owner)))
        }
        Kind::KeyExtended { owner, ttl_millis, .. } => {
            let ttl = ttl_millis
                .map_or(String::new(), |ms| format!(" to {}", in_whole_units(ms.saturating_mul(1_000_000))));
            format!("{}'s lease extended{ttl}{of}", holder(Some(owner)))
        }
        Kind::KeyDeleted { owner, .. } => format!("{}'s lease deleted{of}", holder(Some(owner))),
        Kind::KeyExpired { owner, .. } => format!("{}'s lease expired{of}", by(owner)),
        Kind::WaiterGone { owner, .. } => format!("{} left the queue{of}", holder(Some(owner))),
        Kind::WriteSent { token, .. } => format!("writes, token {token}{of}"),
        Kind::WriteAnswered { outcome, .. } => format!("its write: {}", in_words(outcome)),
        Kind::WriteAccepted { owner, token, .. } => format!("accepts {}, token {token}{of}", by(owner)),
        Kind::WriteRepeated { owner, token, .. } => format!("{}, token {token}: a retry{of}", by(owner)),
        Kind::WriteRejected { owner, token, seen, .. } => {
            format!("refuses {}, token {token} {} {seen}{of}", by(owner), relation(*token, *seen))
        }
        Kind::ResourceRead { owner, token: Some(token), .. } => {
            format!("read by {}, token {token}{of}", by(owner))
        }
        Kind::ResourceRead { owner, .. } => format!("read by {}{of}", by(owner)),
        Kind::ReadRejected { owner, token, seen, .. } => {
            format!("refuses read of {}, token {token} {} {seen}", by(owner), relation(*token, *seen))
        }
        Kind::ConditionalSent { expected, .. } => format!("writes if version {expected}{of}"),
        Kind::ConditionalAnswered { outcome, .. } => format!("its write: {}", in_words(outcome)),
        Kind::ConditionalAccepted { owner, version, .. } => {
            format!("accepts {}, version {version}{of}", by(owner))
        }
        Kind::ConditionalRejected { owner, version: Some(version), .. } => {
            format!("refuses {}, is at version {version}", by(owner))
        }
        Kind::ConditionalRejected { owner, .. } => format!("refuses {} without a token", by(owner)),
        Kind::ClockRate { rate } => format!("clock × {}", *rate as f64 / 1e9),
        Kind::WorkerStep { step, .. } | Kind::PointPassed { step } => step.to_string(),
        Kind::FlightStarted { .. } => format!("wants a result{of}"),
        Kind::ComputationStarted { token, .. } => format!("computes, token {token}{of}"),
        Kind::ComputationFailed { token, .. } => format!("computation failed, token {token}"),
        Kind::ResultReturned { token, .. } => format!("returns result of token {token}{of}"),
        _ => text.to_owned(),
    }
}

fn is_done(outcome: &Option<Name>) -> bool {
    outcome.as_ref().is_none_or(|outcome| outcome.as_str() == "done")
}

/// Returns how a refused token relates to the highest seen.
const fn relation(token: u64, seen: u64) -> &'static str {
    if token > seen { "far above" } else { "<" }
}
