//! What makes a mutant: a lock on one system or another, or the resource.

use dlock::AnyBackend;
use resource::http::Config;

use crate::lab::{Lab, Options, System, Workplace};
use crate::servers::resource::ResourceHost;
use crate::world::runtime::SimRuntime;

type MakeLock = fn(&Workplace<'_>) -> Option<AnyBackend<SimRuntime>>;
type MakeResource = fn(&Options, Config) -> ResourceHost;

/// Who makes the mistake. A lock of a system that can't make it is the system's own.
#[derive(Default)]
pub(super) struct Exhibit {
    redis: Option<MakeLock>,
    redlock: Option<MakeLock>,
    resource: Option<MakeResource>,
}

impl Exhibit {
    /// A lock on one Redis.
    pub(super) fn lock(make: MakeLock) -> Self {
        Self { redis: Some(make), ..Self::default() }
    }

    /// A lock on several.
    pub(super) fn redlock(make: MakeLock) -> Self {
        Self::default().and_redlock(make)
    }

    /// A lock on several, too.
    pub(super) fn and_redlock(self, make: MakeLock) -> Self {
        Self { redlock: Some(make), ..self }
    }

    /// The resource, beside any lock.
    pub(super) fn resource(make: MakeResource) -> Self {
        Self { resource: Some(make), ..Self::default() }
    }

    /// Whether it can be shown on this system.
    pub(super) fn applies_to(&self, system: System) -> bool {
        self.resource.is_some() || self.lock_on(system).is_some()
    }

    /// The laboratory with it.
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
