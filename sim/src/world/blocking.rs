//! Code of a process that blocks, such as a `main` without `async`: it runs on a stack of its own, which the
//! simulator leaves while the code waits.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll, Waker};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use send_wrapper::SendWrapper;

use super::escape;

/// The size of a stack in bytes, half of that of a thread. Only the pages that are used take memory.
const STACK_BYTES: usize = 1 << 20;

thread_local! {
    /// The code that runs on a stack of its own, if any does.
    static CURRENT: Cell<*const Turns> = const { Cell::new(ptr::null()) };
    /// The waker of the task of that code, while it does not wait.
    static WAKER: Cell<Option<Waker>> = const { Cell::new(None) };
}

/// The code on a stack gets the waker of its task at each turn, or nothing if it is to end. It says if it
/// waits in a function of C.
type Turns = Yielder<Option<Waker>, bool>;

/// A call of code that blocks. Dropping it unwinds the code's stack.
struct Blocking {
    code: Coroutine<Option<Waker>, bool, ()>,
    /// True if the code waits in a function of C, which can't be unwound.
    is_in_c: bool,
}

/// The caller of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// Rust, which is unwound if the process dies.
    Rust,
    /// A function of C, which gets an error if the process dies.
    C,
}

/// Calls `f`, which may wait by [`block_on`].
pub(crate) async fn call(f: Box<dyn FnOnce() + Send>) {
    let stack = DefaultStack::new(STACK_BYTES);
    #[allow(clippy::expect_used, reason = "a machine without memory can't go on")]
    let stack = stack.expect("memory for a stack");
    let code = Coroutine::with_stack(stack, move |turns: &Turns, waker| {
        let _entered = Entered::new(turns, waker);
        f();
    });
    SendWrapper::new(Blocking { code, is_in_c: false }).await;
}

/// The simulator's own stack runs again. Dropping this says so.
struct Entered;

impl Entered {
    fn new(turns: &Turns, waker: Option<Waker>) -> Self {
        CURRENT.set(turns);
        WAKER.set(waker);
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(ptr::null());
        WAKER.set(None);
    }
}

impl Future for Blocking {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.code.resume(Some(cx.waker().clone())) {
            CoroutineResult::Yield(is_in_c) => {
                self.is_in_c = is_in_c;
                Poll::Pending
            }
            CoroutineResult::Return(()) => {
                self.is_in_c = false;
                Poll::Ready(())
            }
        }
    }
}

impl Drop for Blocking {
    fn drop(&mut self) {
        while self.is_in_c {
            let code = AssertUnwindSafe(&mut self.code);
            // A panic ends the code, which is what is wanted.
            let turn = catch_unwind(move || { code }.resume(None));
            self.is_in_c = matches!(turn, Ok(CoroutineResult::Yield(true)));
        }
    }
}

/// Polls until it is ready. Meanwhile the simulator runs other tasks.
///
/// # Errors
///
/// If the caller is on the simulator's own stack, which can't wait, in `sim::allow`, or in C while the
/// process dies.
pub(super) fn block_on(caller: Caller, poll: &mut dyn FnMut(&mut Context<'_>) -> Poll<()>) -> io::Result<()> {
    let turns = CURRENT.get();
    if turns.is_null() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "a task of the simulator can't block"));
    }
    if escape::is_allowed() {
        let problem = "code in `sim::allow` can't wait in simulated time";
        return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
    }
    let mut waker = WAKER.take().unwrap_or_else(|| Waker::noop().clone());
    loop {
        // The polled future is a task, and can't block.
        CURRENT.set(ptr::null());
        let polled = poll(&mut Context::from_waker(&waker));
        CURRENT.set(turns);
        if polled.is_ready() {
            WAKER.set(Some(waker));
            return Ok(());
        }
        CURRENT.set(ptr::null());
        // SAFETY: the turns lives as long as the code on its stack, which is the caller.
        #[allow(unsafe_code, reason = "the stack below the caller has the turns")]
        let next = unsafe { &*turns }.suspend(caller == Caller::C);
        CURRENT.set(turns);
        let Some(next) = next else { return Err(io::ErrorKind::Interrupted.into()) };
        waker = next;
    }
}
