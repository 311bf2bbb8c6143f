//! Pins peers and the Redis to cores.
//!
//! A round trip to a Redis takes 12 µs if client and server share a core, and 57 µs if a wake-up crosses
//! cores. The scheduler would give one peer the first and another the second, a difference four times that
//! between any two locks.

use std::fs;
use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores of this machine, and the server that may be pinned to one.
#[derive(Debug)]
pub(super) struct Cores {
    server: u32,
    all: CpuSet,
}

impl Cores {
    /// Uses the cores that this process may run on.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub(super) fn with(server: u32) -> io::Result<Self> {
        Ok(Self { server, all: sched_getaffinity(None)? })
    }

    /// Pins the server to one core, and its client to another: this thread and those it starts later, or the
    /// process `client`. On a machine with one core they share it.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub(super) fn part(&self, client: Option<u32>) -> io::Result<()> {
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| self.all.is_set(*core));
        match (cores.next(), cores.next_back()) {
            (Some(first), Some(last)) => self.place(&only(last), client, &only(first)),
            _ => Ok(()),
        }
    }

    /// Unpins both: with many requests in flight, each may use the whole machine.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub(super) fn share(&self, client: Option<u32>) -> io::Result<()> {
        self.place(&self.all, client, &self.all)
    }

    fn place(&self, server: &CpuSet, client: Option<u32>, theirs: &CpuSet) -> io::Result<()> {
        place(self.server, server)?;
        sched_setaffinity(None, theirs)?;
        client.map_or(Ok(()), |client| place(client, theirs))
    }
}

/// Pins all threads of a process.
fn place(process: u32, cores: &CpuSet) -> io::Result<()> {
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let number = thread?.file_name().to_string_lossy().parse().ok();
        match sched_setaffinity(number.and_then(Pid::from_raw), cores) {
            // The thread has exited.
            Err(rustix::io::Errno::SRCH) => {}
            other => other?,
        }
    }
    Ok(())
}

fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap()
    }

    fn cores_of(process: u32) -> CpuSet {
        sched_getaffinity(Pid::from_raw(process.try_into().unwrap())).unwrap()
    }

    #[test]
    fn server_and_client_are_pinned_and_unpinned() {
        let (mut server, mut client) = (sleeper(), sleeper());
        let all = sched_getaffinity(None).unwrap();
        let cores = Cores::with(server.id()).unwrap();
        cores.part(Some(client.id())).unwrap();
        let apart = [cores_of(server.id()), cores_of(client.id()), sched_getaffinity(None).unwrap()];
        cores.share(Some(client.id())).unwrap();
        let together = [cores_of(server.id()), cores_of(client.id()), sched_getaffinity(None).unwrap()];
        for process in [&mut server, &mut client] {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        assert_eq!(together, [all; 3]);
        if all.count() > 1 {
            assert_eq!(apart.map(|cores| cores.count()), [1, 1, 1]);
            assert!(apart[0] != apart[1] && apart[1] == apart[2]);
        }
    }
}
