//! Who runs on which core.
//!
//! A round trip to a Redis takes 12 µs where client and server share a core, and 57 where a wake-up must cross to another. Left to
//! the scheduler one peer would have the one and the next the other, four times the difference between any two locks.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Gives the process `server` one core, as a lock server has a machine of its own, and this thread with all that it starts
/// from here on another. Where there is but one core they share it.
///
/// # Errors
///
/// What the system says to it.
pub(super) fn part(server: u32) -> io::Result<()> {
    let ours = sched_getaffinity(None)?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| ours.is_set(*core));
    if let (Some(first), Some(last)) = (cores.next(), cores.next_back()) {
        let server = i32::try_from(server).ok().and_then(Pid::from_raw);
        sched_setaffinity(server, &only(last))?;
        sched_setaffinity(None, &only(first))?;
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
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_server_and_its_clients_have_each_a_core() {
        let mut server = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let before = sched_getaffinity(None).unwrap();
        part(server.id()).unwrap();
        let pid = Pid::from_raw(server.id().try_into().unwrap());
        let (theirs, ours) = (sched_getaffinity(pid).unwrap(), sched_getaffinity(None).unwrap());
        server.kill().unwrap();
        server.wait().unwrap();
        let both = before.count() > 1;
        let shared = (0..CpuSet::MAX_CPU).any(|core| theirs.is_set(core) && ours.is_set(core));
        assert_eq!((ours.count() == 1, theirs.count() == 1, shared), (true, true, !both));
    }
}
