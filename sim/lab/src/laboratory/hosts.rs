//! The servers of the laboratory's world: those of its system, PostgreSQL if it is needed, and the resource.

use std::sync::Arc;

use resource::Fencing;
use resource::http::Config;
use sim::servers::host::Host;
use sim::servers::resource::ResourceHost;

use super::given::{MakeResource, StoredLock};
use super::options::{Options, RESOURCE};
use super::postgres::{self, POSTGRES};
use super::servers::Store;

/// Returns the servers of `options` with the names of their processes. `given` replaces the laboratory's
/// resource; `stored` are the locks that the library does not know, each with its key in the schedule.
pub(super) fn hosts(
    options: &Options,
    fencing: Fencing,
    given: Option<&MakeResource>,
    stored: &[(StoredLock, &str)],
) -> Vec<(String, Arc<dyn Host>)> {
    let mut hosts = options.system.get().hosts(options, stored);
    if options.has_postgres() {
        hosts.push((POSTGRES.to_owned(), Arc::new(postgres::host())));
    }
    hosts.push((RESOURCE.to_owned(), Arc::new(resource(options, fencing, given))));
    hosts
}

fn resource(options: &Options, fencing: Fencing, given: Option<&MakeResource>) -> ResourceHost {
    let config = Config { fencing, ..Config::default() };
    match (given, options.resource.store) {
        (Some(make), _) => make(options, config),
        (None, Store::Memory) => ResourceHost::in_memory(config),
        (None, Store::Redb) => ResourceHost::on_disk(config),
    }
}
