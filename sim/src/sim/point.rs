//! Points: the named moments of a run at which faults can be aimed.
//!
//! Every event that a history holds is one, by the name below; a process names others itself
//! ([`Process::point`](super::Process::point)); servers name the commands that they execute; and every process has those of
//! its network: it connects to a peer, sends to it, receives from it.

use resource::audit::Kind;

/// The name of the point that an event passes.
pub fn of(kind: &Kind) -> Option<&str> {
    Some(match kind {
        Kind::LeaseRequested { .. } => "requested",
        Kind::LeaseAcquired { .. } | Kind::KeyGranted { .. } => "granted",
        Kind::LeaseNotAcquired { .. } => "not-granted",
        Kind::LeaseRenewed { .. } => "renewed",
        Kind::LeaseLost { .. } => "lost",
        Kind::LeaseReleaseRequested { .. } => "release-requested",
        Kind::LeaseReleased { .. } => "released",
        Kind::SectionEntered { .. } => "entered",
        Kind::WorkerStep { step, .. } => step.as_str(),
        Kind::WriteSent { .. } | Kind::ConditionalSent { .. } => "sent",
        Kind::WriteAnswered { .. } | Kind::ConditionalAnswered { .. } => "answered",
        Kind::WriteAccepted { .. } | Kind::ConditionalAccepted { .. } => "accepted",
        Kind::WriteRepeated { .. } | Kind::ConditionalRepeated { .. } => "repeated",
        Kind::WriteRejected { .. } | Kind::ReadRejected { .. } | Kind::ConditionalRejected { .. } => {
            "rejected"
        }
        Kind::ResourceRead { token: Some(_), .. } => "claimed",
        Kind::ResourceRead { .. } => "read",
        Kind::KeyExtended { .. } => "extended",
        Kind::KeyExpired { .. } => "expired",
        Kind::KeyDeleted { .. } => "deleted",
        _ => return None,
    })
}

/// The point at which a process has opened a connection to `peer`.
pub fn connects_to(peer: &str) -> String {
    format!("connects to {peer}")
}

/// The point at which a process has handed bytes for `peer` to the network.
pub fn sends_to(peer: &str) -> String {
    format!("sends to {peer}")
}

/// The point at which a process has read bytes that `peer` sent.
pub fn receives_from(peer: &str) -> String {
    format!("receives from {peer}")
}
