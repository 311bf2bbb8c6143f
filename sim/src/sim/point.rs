//! Points: the named moments of a run at which faults can be aimed.
//!
//! Every event that a history holds is one, by the name below; a process names others itself
//! ([`Process::point`](super::Process::point)); servers name the commands that they execute; and every
//! process has those of its network: `opens to PEER` (it asks for a connection), `accepts from PEER` (its
//! kernel has answered such a request), `connects to PEER` (a connection is open), `sends to PEER` (bytes
//! were handed to the network), `receives from PEER` (bytes were read) and `closes to PEER` (it has closed
//! its end).

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
        Kind::WorkerStep { step, .. } | Kind::PointPassed { step } => step.as_str(),
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

/// How the names of the network's points begin, before the name of the peer.
const NETWORK: [&str; 6] =
    ["opens to ", "accepts from ", "connects to ", "sends to ", "receives from ", "closes to "];

/// Whether it is a point of the network.
pub fn is_of_network(name: &str) -> bool {
    peer(name).is_some()
}

/// Returns the peer that a point of the network names; `None` for other points.
pub fn peer(name: &str) -> Option<&str> {
    NETWORK.iter().find_map(|beginning| name.strip_prefix(beginning))
}
