//! Points: the named moments of a run at which faults can be aimed.
//!
//! Most events of a history are points, with the names below. A process adds others itself
//! ([`Process::point`](super::Process::point)). Servers pass a point for each command that they execute.
//! Every process has points of its network: `opens to PEER` (it asks for a connection), `accepts from PEER`
//! (its kernel answers such a request), `connects to PEER` (a connection is open), `sends to PEER` (bytes
//! were given to the network), `receives from PEER` (bytes were read) and `closes to PEER` (it has closed its
//! end). Code on tokio's interface passes `looks up HOST` when it asks for the address of a host.

use history::Kind;

/// Returns the name of the point that an event passes; `None` if it passes none.
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
        Kind::WorkerStep { step, .. } => match step.as_str() {
            // Events of the lock already pass these points: a second passing would count in `nth`. An event
            // of the queue passes nothing.
            "granted" | "released" | "asked" => return None,
            step => step,
        },
        Kind::PointPassed { step } => step.as_str(),
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

/// The beginnings of the names of network points. The name of the peer follows.
const NETWORK: [&str; 6] =
    ["opens to ", "accepts from ", "connects to ", "sends to ", "receives from ", "closes to "];

/// Returns true for a point of the network.
pub fn is_of_network(name: &str) -> bool {
    peer(name).is_some()
}

/// Returns the peer that a point of the network names; `None` for other points.
pub fn peer(name: &str) -> Option<&str> {
    NETWORK.iter().find_map(|beginning| name.strip_prefix(beginning))
}
