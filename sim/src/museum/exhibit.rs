//! The part that a mutant replaces: the lock on one or more systems, or the resource.

use dlock::AnyBackend;
use resource::http::Config;

use crate::lab::{Lab, Options, System, Workplace};
use crate::servers::resource::ResourceHost;
use crate::world::runtime::SimRuntime;

type MakeLock = fn(&Workplace<'_>) -> Option<AnyBackend<SimRuntime>>;
type MakeResource = fn(&Options, Config) -> ResourceHost;

/// The lock or the resource with the mistake. On a system without such a lock, the system's own lock is used.
#[derive(Default)]
pub(super) struct Exhibit {
    redis: Option<MakeLock>,
    redlock: Option<MakeLock>,
    resource: Option<MakeResource>,
}

impl Exhibit {
    /// Returns an exhibit of a lock on one Redis.
    pub(super) fn lock(make: MakeLock) -> Self {
        Self { redis: Some(make), ..Self::default() }
    }

    /// Returns an exhibit of a lock on several Redis.
    pub(super) fn redlock(make: MakeLock) -> Self {
        Self::default().and_redlock(make)
    }

    /// Adds a lock on several Redis.
    pub(super) fn and_redlock(self, make: MakeLock) -> Self {
        Self { redlock: Some(make), ..self }
    }

    /// Returns an exhibit of a resource, which is used with any lock.
    pub(super) fn resource(make: MakeResource) -> Self {
        Self { resource: Some(make), ..Self::default() }
    }

    /// Returns true if the mistake can be made on this system.
    pub(super) fn applies_to(&self, system: System) -> bool {
        self.resource.is_some() || self.lock_on(system).is_some()
    }

    /// Returns the laboratory with this lock or resource.
    pub(super) fn put_into(self, lab: Lab) -> Lab {
        match self.resource {
            Some(make) => lab.with_resource(make),
            None => lab.with_lock(move |place| self.lock_on(place.options.system)?(place)),
        }
    }

    fn lock_on(&self, system: System) -> Option<MakeLock> {
        match system {
            System::Redis => self.redis,
            System::Redlock => self.redlock,
            _ => None,
        }
    }
}
