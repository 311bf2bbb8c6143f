//! The lock or resource that an event is about.

use history::{Kind, Name};

/// Returns the hash of the event's key, if it has one.
pub(super) fn key_of(kind: &Kind) -> Option<&Name> {
    match kind {
        Kind::LeaseRequested { key, .. }
        | Kind::LeaseRetried { key, .. }
        | Kind::LeaseQueued { key, .. }
        | Kind::LeaseAcquired { key, .. }
        | Kind::LeaseNotAcquired { key, .. }
        | Kind::LeaseRenewed { key, .. }
        | Kind::LeaseRenewFailed { key, .. }
        | Kind::LeaseLost { key, .. }
        | Kind::LeaseReleaseRequested { key, .. }
        | Kind::LeaseReleased { key, .. }
        | Kind::WriteAccepted { key, .. }
        | Kind::WriteRepeated { key, .. }
        | Kind::WriteRejected { key, .. }
        | Kind::ResourceRead { key, .. }
        | Kind::ReadRejected { key, .. }
        | Kind::ConditionalAccepted { key, .. }
        | Kind::ConditionalRepeated { key, .. }
        | Kind::ConditionalRejected { key, .. }
        | Kind::SectionEntered { key, .. }
        | Kind::SectionLeft { key, .. }
        | Kind::WriteSent { key, .. }
        | Kind::WriteAnswered { key, .. }
        | Kind::ConditionalSent { key, .. }
        | Kind::ConditionalAnswered { key, .. }
        | Kind::UpdateEnded { key, .. }
        | Kind::KeyGranted { key, .. }
        | Kind::KeyExtended { key, .. }
        | Kind::KeyDeleted { key, .. }
        | Kind::KeyExpired { key, .. }
        | Kind::WaiterGone { key, .. } => Some(key),
        Kind::WorkerStep { key, .. } => key.as_ref(),
        Kind::PointPassed { .. }
        | Kind::ServerStopped { .. }
        | Kind::ServerStarted { .. }
        | Kind::ServerPromoted { .. }
        | Kind::FaultApplied { .. }
        | Kind::FaultHealed { .. }
        | Kind::ClockRate { .. }
        | Kind::ProcessCrashed { .. } => None,
    }
}
