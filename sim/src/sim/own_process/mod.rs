//! A run in a process of its own: statics that it changes are as they were for the next one.
//!
//! The process is a fork of the program. So each run begins with the statics that the program has, and its
//! end takes all that it left behind along: a changed static, a thread that hangs, even an abort.
//!
//! Only the thread that forks exists in the new process. A lock that another thread holds at that moment
//! stays locked there: the locks of memory and of the standard output are safe, but not those of other
//! libraries.

mod sent;

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::FromRawFd;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::error::RunError;
use super::report::Report;

/// The time that a process gets beyond the limit of a run, in real time, to report that it exceeded it.
const GRACE: Duration = Duration::from_secs(10);

/// Calls `run` in a fork of the program, and returns its result without its messages.
///
/// # Errors
///
/// The error of `run`; [`RunError::Died`] if the process ends without one, or exceeds `limit` by far;
/// [`RunError::Thread`] if no process can be started.
pub(super) fn call(
    seed: u64,
    limit: Duration,
    run: impl FnOnce() -> Result<Report, RunError>,
) -> Result<Report, RunError> {
    let (mut result, sink) = pipe()?;
    // SAFETY: the child only calls `run` and ends.
    #[allow(unsafe_code, reason = "only libc forks")]
    let child = unsafe { libc::fork() };
    match child {
        -1 => return Err(io::Error::last_os_error().into()),
        0 => {
            drop(result);
            answer(sink, run);
        }
        _ => drop(sink),
    }
    let (sender, received) = channel();
    // The thread ends with the child, which has the other end of the pipe.
    std::thread::Builder::new().name("result".to_owned()).spawn(move || {
        let mut bytes = Vec::new();
        let read = result.read_to_end(&mut bytes);
        let _ = sender.send(read.map(|_| bytes));
    })?;
    let bytes = match received.recv_timeout(limit.saturating_add(GRACE)) {
        Ok(read) => read?,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            kill(child);
            Vec::new()
        }
    };
    let end = wait(child);
    sent::read(&bytes).unwrap_or(Err(RunError::Died { seed, end }))
}

/// Ends this process, the fork, with the result of `run` in `sink`.
fn answer(mut sink: File, run: impl FnOnce() -> Result<Report, RunError>) -> ! {
    let bytes = sent::write(run());
    // A parent that is gone reads nothing.
    let _ = sink.write_all(&bytes);
    // SAFETY: it returns to nobody. Destructors and other threads belong to the parent.
    #[allow(unsafe_code, reason = "`std::process::exit` calls what the parent will call")]
    unsafe {
        libc::_exit(0)
    }
}

/// Returns the two ends of a pipe: what is written to the second can be read from the first.
fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors, which nobody else has.
    #[allow(unsafe_code, reason = "only libc makes pipes")]
    unsafe {
        if libc::pipe(ends.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])))
    }
}

fn kill(child: libc::pid_t) {
    // SAFETY: the child has not been waited for, so that the number is still its own.
    #[allow(unsafe_code, reason = "only libc kills")]
    unsafe {
        libc::kill(child, libc::SIGKILL);
    }
}

/// Waits for the end of the child, and describes it.
fn wait(child: libc::pid_t) -> String {
    let mut status = 0;
    // SAFETY: the status is written to a variable.
    #[allow(unsafe_code, reason = "only libc waits")]
    while unsafe { libc::waitpid(child, &raw mut status, 0) } == -1 {
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return "for an unknown reason".to_owned();
        }
    }
    if libc::WIFSIGNALED(status) {
        format!("by signal {}", libc::WTERMSIG(status))
    } else {
        format!("with exit code {}", libc::WEXITSTATUS(status))
    }
}
