//! The faults of a run: how they learn which points have been passed, and how they act on its processes and servers.

use std::sync::Arc;

use resource::audit::{Event, Kind};

use super::cluster::Cluster;
use crate::faults::{Injector, Role, Stage};
use crate::schedule::Point;
use crate::world::World;
use crate::world::process::ProcessId;

/// Tells the faults of an event that has happened.
pub(super) fn on_event(injector: &Arc<Injector>, event: &Event) {
    if let Some(point) = point_of(&event.kind) {
        injector.on_point(event.process.as_str(), point.name());
    }
}

/// Tells the faults of a command that a server has executed.
pub(super) fn on_command(injector: &Arc<Injector>, server: &str, command: &str) {
    // Most schedules aim at no command: they pay for none.
    if injector.points().any(|point| point.eq_ignore_ascii_case(command)) {
        injector.on_point(server, &command.to_ascii_uppercase());
    }
}

impl Stage for Cluster {
    fn world(&self) -> &World {
        self.world()
    }

    fn role(&self, process: ProcessId) -> Role {
        self.role(process)
    }

    fn kill(&self, process: ProcessId, power_loss: bool) {
        self.crash(process, power_loss);
    }

    fn start(self: Arc<Self>, process: ProcessId) {
        Self::start(&self, process);
    }

    fn leave_dead(&self, process: ProcessId) {
        self.gone(process);
    }

    fn shut_down(&self, process: ProcessId) {
        self.shut_down(process);
    }

    fn clock_was_set(&self, process: ProcessId) {
        self.clock_changed(process);
    }

    fn cancel(&self, process: ProcessId) {
        self.cancel(process);
    }

    fn act(&self, server: ProcessId, action: &str, arguments: &[String]) -> bool {
        match action {
            "promote" => self.promote(server),
            "lead" => self.lead(server),
            "evict" => self.evict(server, arguments),
            _ => false,
        }
    }

    fn servers_of_keys(&self) -> Vec<ProcessId> {
        self.primaries()
    }
}

/// The point of the protocol that an event passes.
fn point_of(kind: &Kind) -> Option<Point> {
    Some(match kind {
        Kind::LeaseRequested { .. } => Point::Requested,
        Kind::LeaseAcquired { .. } | Kind::KeyGranted { .. } => Point::Granted,
        Kind::LeaseNotAcquired { .. } => Point::NotGranted,
        Kind::LeaseRenewed { .. } => Point::Renewed,
        Kind::LeaseLost { .. } => Point::Lost,
        Kind::LeaseReleaseRequested { .. } => Point::ReleaseRequested,
        Kind::LeaseReleased { .. } => Point::Released,
        Kind::SectionEntered { .. } => Point::Entered,
        Kind::WorkerStep { step, .. } => match step.as_str() {
            "read" => Point::Read,
            "worked" => Point::Worked,
            "checked" => Point::Checked,
            _ => return None,
        },
        Kind::WriteSent { .. } | Kind::ConditionalSent { .. } => Point::Sent,
        Kind::WriteAnswered { .. } | Kind::ConditionalAnswered { .. } => Point::Answered,
        Kind::WriteAccepted { .. } | Kind::ConditionalAccepted { .. } => Point::Accepted,
        Kind::WriteRepeated { .. } | Kind::ConditionalRepeated { .. } => Point::Repeated,
        Kind::WriteRejected { .. } | Kind::ReadRejected { .. } | Kind::ConditionalRejected { .. } => {
            Point::Rejected
        }
        Kind::ResourceRead { token: Some(_), .. } => Point::Claimed,
        Kind::ResourceRead { .. } => Point::Read,
        Kind::KeyExtended { .. } => Point::Extended,
        Kind::KeyExpired { .. } => Point::Expired,
        Kind::KeyDeleted { .. } => Point::Deleted,
        _ => return None,
    })
}
