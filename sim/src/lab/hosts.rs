//! The servers of the laboratory's world: those of its system, and the resource.

use std::sync::Arc;

use resource::Fencing;
use resource::http::{App, Config};

use super::options::{Options, RESOURCE};
use super::servers::Store;
use crate::mutants::Mutant;
use crate::mutants::store::{MutantStore, Rows};
use crate::servers::host::Host;
use crate::servers::resource::ResourceHost;
use crate::world::machine::WorldMachine;
use crate::world::runtime::SimRuntime;

/// The servers of `options` by the names of their processes. `mutant` is the one mistake of the resource, if
/// it has one.
pub(super) fn hosts(
    options: &Options,
    fencing: Fencing,
    mutant: Option<Mutant>,
) -> Vec<(String, Arc<dyn Host>)> {
    let mut hosts = options.system.get().hosts(options);
    hosts.push((RESOURCE.to_owned(), Arc::new(resource(options, fencing, mutant))));
    hosts
}

fn resource(options: &Options, fencing: Fencing, mutant: Option<Mutant>) -> ResourceHost {
    let config = Config { fencing, ..Config::default() };
    match (mutant, options.resource.store) {
        (Some(mutant), store) => {
            let rows = Rows::default();
            // The same faults apply to it as to the correct one, and one that forgets is to be caught by them.
            ResourceHost::new(store == Store::Redb, move |machine: &WorldMachine| {
                let runtime = SimRuntime::new(machine.world(), machine.process());
                Ok(App::new(Arc::new(MutantStore::new(mutant, runtime, &rows)), config))
            })
        }
        (None, Store::Memory) => ResourceHost::in_memory(config),
        (None, Store::Redb) => ResourceHost::on_disk(config),
    }
}
