//! The lock or resource that an event is about.

use super::kind::Kind;
use super::name::Name;

impl Kind {
    /// Returns the hash of the event's key, if it has one.
    pub fn key(&self) -> Option<&Name> {
        match self {
            Self::LeaseRequested { key, .. }
            | Self::LeaseRetried { key, .. }
            | Self::LeaseShared { key, .. }
            | Self::LeasePermits { key, .. }
            | Self::LeaseBounded { key, .. }
            | Self::LeaseQueued { key, .. }
            | Self::LeaseAcquired { key, .. }
            | Self::LeaseNotAcquired { key, .. }
            | Self::LeaseRenewed { key, .. }
            | Self::LeaseRenewFailed { key, .. }
            | Self::LeaseTtlChanged { key, .. }
            | Self::LeaseLost { key, .. }
            | Self::LeaseReleaseRequested { key, .. }
            | Self::LeaseReleased { key, .. }
            | Self::WriteAccepted { key, .. }
            | Self::WriteRepeated { key, .. }
            | Self::WriteRejected { key, .. }
            | Self::ResourceRead { key, .. }
            | Self::ReadRejected { key, .. }
            | Self::ConditionalAccepted { key, .. }
            | Self::ConditionalRepeated { key, .. }
            | Self::ConditionalRejected { key, .. }
            | Self::FenceSet { key, .. }
            | Self::SectionEntered { key, .. }
            | Self::SectionLeft { key, .. }
            | Self::WriteSent { key, .. }
            | Self::WriteAnswered { key, .. }
            | Self::ConditionalSent { key, .. }
            | Self::ConditionalAnswered { key, .. }
            | Self::UpdateEnded { key, .. }
            | Self::KeyGranted { key, .. }
            | Self::KeyExtended { key, .. }
            | Self::KeyDeleted { key, .. }
            | Self::KeyExpired { key, .. }
            | Self::WaiterGone { key, .. }
            | Self::TermObserved { key, .. }
            | Self::TaskDue { key, .. }
            | Self::TaskStarted { key, .. }
            | Self::TaskSent { key, .. }
            | Self::TaskEnded { key, .. }
            | Self::TasksPassed { key, .. }
            | Self::FlightStarted { key, .. }
            | Self::ComputationStarted { key, .. }
            | Self::ComputationFailed { key, .. }
            | Self::ResultReturned { key, .. } => Some(key),
            Self::WorkerStep { key, .. } => key.as_ref(),
            Self::PointPassed { .. }
            | Self::ServerStopped { .. }
            | Self::ServerStarted { .. }
            | Self::ServerPromoted { .. }
            | Self::FaultApplied { .. }
            | Self::FaultHealed { .. }
            | Self::ClockRate { .. }
            | Self::ProcessCrashed { .. } => None,
        }
    }
}
