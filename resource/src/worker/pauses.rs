//! The points of a round at which a worker can be made to pause, and the calls that it can be made to drop.

use std::future::Future;

use history::emit;

/// A point in a round at which a worker can be made to pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The lock is held; nothing has been done with it.
    Granted,
    /// The resource has been read.
    Read,
    /// The work is done; nothing has been written.
    Worked,
    /// The lease has been checked and was still valid.
    Checked,
    /// A write has been answered.
    Written,
    /// The lock has been released, or the worker is done with a job.
    Released,
    /// The worker of a queue is about to claim a job.
    Asked,
}

impl Step {
    /// Returns the value of the field `step` of the event `worker_step`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::Read => "read",
            Self::Worked => "worked",
            Self::Checked => "checked",
            Self::Written => "written",
            Self::Released => "released",
            Self::Asked => "asked",
        }
    }

    /// Emits that a worker on the resource with the hash `key` has reached the step.
    pub(crate) fn emit(self, key: &str) {
        emit!(WorkerStep { step: self.as_str(), key: key, owner: None::<&str> });
    }
}

/// A future of a round that its caller may drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Droppable {
    /// The critical section, without renewals.
    Section,
    /// The critical section, with the renewals beside it.
    Renewed,
    /// The release.
    Release,
}

/// Makes a worker pause, as a garbage collection or a frozen host does.
///
/// # Example
///
/// ```
/// use std::future::Future;
///
/// use resource::worker::{Pauses, Step};
///
/// /// Notes each step of a worker, and pauses nowhere.
/// #[derive(Clone)]
/// struct Notes;
///
/// impl Pauses for Notes {
///     fn at(&self, step: Step) -> impl Future<Output = ()> + Send {
///         println!("the worker has reached {}", step.as_str());
///         std::future::ready(())
///     }
/// }
/// ```
pub trait Pauses: Clone + Send + Sync + 'static {
    /// Completes when the worker may continue after `step`.
    fn at(&self, step: Step) -> impl Future<Output = ()> + Send;

    /// Runs a future of a round. Returns `None` if it drops the future before its end. Default: runs it to
    /// its end.
    fn run<F>(&self, which: Droppable, future: F) -> impl Future<Output = Option<F::Output>> + Send
    where
        F: Future + Send,
        F::Output: Send,
    {
        let _ = which;
        async { Some(future.await) }
    }
}

/// No pauses.
impl Pauses for () {
    async fn at(&self, _: Step) {}
}
