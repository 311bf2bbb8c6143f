//! Lookups of names by code on another runtime's interface, and their faults: a resolver may be slow, fail,
//! or give the address that an alias had before it moved.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use history::{LookUpFault, Span};

use super::process::ProcessId;
use super::{World, lock};

/// The beginning of the name of the point that a process passes before a lookup. The host's name follows.
pub(crate) const LOOKS_UP: &str = "looks up ";

/// The faults of lookups in force, and the former processes of aliases.
#[derive(Default)]
pub(super) struct LookUps {
    faults: Vec<Broken>,
    /// The number of faults so far.
    count: u64,
    /// The process that had each alias before it moved.
    former: BTreeMap<String, ProcessId>,
}

/// A fault in force.
struct Broken {
    number: u64,
    /// The process whose lookups it breaks; all if `None`.
    process: Option<ProcessId>,
    how: LookUpFault,
    /// The delay of each lookup, in nanoseconds.
    by: u64,
}

impl LookUps {
    /// Returns the faults of the process's lookups.
    fn of(&self, process: ProcessId) -> impl Iterator<Item = &Broken> {
        self.faults.iter().filter(move |fault| fault.process.is_none_or(|of| of == process))
    }

    fn is_any(&self, process: ProcessId, how: LookUpFault) -> bool {
        self.of(process).any(|fault| fault.how == how)
    }
}

impl World {
    /// Breaks the lookups of the process, or of all, from now on. Slow ones take `by` longer; delays add up.
    /// Returns the number by which [`World::mend_look_ups`] ends it.
    pub fn break_look_ups(&self, process: Option<ProcessId>, how: LookUpFault, by: Duration) -> u64 {
        let mut look_ups = lock(&self.0.look_ups);
        let number = look_ups.count;
        look_ups.count += 1;
        look_ups.faults.push(Broken { number, process, how, by: Span(by).as_nanos() });
        number
    }

    /// Ends a fault of lookups. Those under way stay late.
    pub fn mend_look_ups(&self, number: u64) {
        lock(&self.0.look_ups).faults.retain(|fault| fault.number != number);
    }

    /// Notes that `former` had the alias until now.
    pub(super) fn note_former(&self, alias: &str, former: ProcessId) {
        lock(&self.0.look_ups).former.insert(alias.to_owned(), former);
    }

    fn note_look_up(&self, process: ProcessId, host: &str) {
        let process = self.process(process).name().to_owned();
        lock(&self.0.exercise).look_ups.insert((process, host.to_owned()));
    }

    /// Looks up the address of `host` for the process. Addresses and `localhost` need no resolver.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotFound`] if the world has no such host, and an error as that of a resolver that
    /// does not answer while a fault has lookups fail.
    pub(super) async fn look_up_for(&self, process: ProcessId, host: &str) -> io::Result<IpAddr> {
        if host == "localhost" || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
            return self.look_up(host);
        }
        self.note_look_up(process, host);
        self.point(process, &[LOOKS_UP, host].concat());
        let late = lock(&self.0.look_ups).of(process).fold(0, |sum: u64, fault| sum.saturating_add(fault.by));
        if late > 0 {
            self.sleep_until(self.now().saturating_add(late)).await;
        }
        let look_ups = lock(&self.0.look_ups);
        if look_ups.is_any(process, LookUpFault::Failing) {
            // The words of the standard library on Linux. Its kind has no name.
            let problem = format!(
                "failed to lookup address information: Temporary failure in name resolution ({host})"
            );
            return Err(io::Error::other(problem));
        }
        let is_stale = look_ups.is_any(process, LookUpFault::Stale);
        let former = look_ups.former.get(host).copied().filter(|_| is_stale);
        drop(look_ups);
        former.map_or_else(|| self.look_up(host), |former| Ok(self.address_of(former)))
    }
}
