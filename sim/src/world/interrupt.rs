//! Looks at the stack of a run's thread that does not return, by a signal: its handler runs on that thread.
#![allow(unsafe_code, reason = "signals are libc's")]

use std::ffi::{c_int, c_void};
use std::sync::Once;
use std::thread::park_timeout;
use std::time::Duration;

use super::escape::{self, Sight, Watched};

/// Ignored by default, and used by no library here.
const SIGNAL: c_int = libc::SIGURG;

/// The real time between two looks for the handler's answer, and their number: reading the lines of a large
/// program takes seconds. The handler has no answer if it waits for a lock that the thread itself holds.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS: usize = 6_000;

/// Says that the run of `watched` is on this thread, for [`look`].
pub(crate) fn begin(watched: &Watched) {
    // SAFETY: it has no conditions.
    watched.set_thread(unsafe { libc::pthread_self() });
}

/// Returns what the thread of the run does at this moment; `None` if it does not answer. The thread must not
/// have been joined.
pub(crate) fn look(watched: &Watched) -> Option<Sight> {
    let thread = watched.thread()?;
    install();
    // SAFETY: the thread has not been joined, so that its number is valid.
    if unsafe { libc::pthread_kill(thread, SIGNAL) } != 0 {
        return None;
    }
    (0..LOOKS).find_map(|_| {
        park_timeout(LOOK);
        watched.sight()
    })
}

fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_signal;
        // SAFETY: all bits zero are a valid value, with no flags and an empty mask. Without SA_ONSTACK the
        // handler runs on the thread's own stack, which is large enough to find lines.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
        // SAFETY: the action is valid; the signal's former action is to ignore it.
        unsafe { libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut()) };
    });
}

/// Notes what the thread does. It allocates, which a handler should not: the run has failed already, and
/// [`look`] does not wait for ever. A panic would abort the program.
extern "C" fn on_signal(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the pointer is valid for this thread.
    let errno = unsafe { *libc::__errno_location() };
    // SAFETY: with SA_SIGINFO the third argument is the context of the interrupted code.
    let interrupted = address(unsafe { &*context.cast::<libc::ucontext_t>() });
    let _ = std::panic::catch_unwind(|| escape::note_sight(interrupted));
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Returns the address of the instruction before which the code was interrupted.
#[cfg(target_arch = "x86_64")]
fn address(context: &libc::ucontext_t) -> usize {
    let register = libc::REG_RIP as usize;
    context.uc_mcontext.gregs.get(register).and_then(|address| usize::try_from(*address).ok()).unwrap_or(0)
}

#[cfg(target_arch = "aarch64")]
fn address(context: &libc::ucontext_t) -> usize {
    usize::try_from(context.uc_mcontext.pc).unwrap_or(0)
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn address(_: &libc::ucontext_t) -> usize {
    0
}
