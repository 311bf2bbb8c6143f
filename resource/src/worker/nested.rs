//! A round with nested sections: a reentrant lock, and writes in each section before and after the one inside
//! it.

use dlock::{Backend, Cap, EnterError, Entered, FencingToken, Left, ReleaseError, Runtime, Scope};

use super::{Droppable, Ending, Job, Pauses, RoundError, Section, Step, Worker, beside};
use crate::ResourceKey;

/// The outcome of a round with nested sections.
#[derive(Debug)]
pub struct RoundOfNested {
    /// The fencing token, that of all sections.
    pub token: FencingToken,
    /// The end of the outermost section: that of the first section whose work was not done, or
    /// [`Ending::Done`].
    pub ending: Ending,
    /// The outcome of leaving the outermost section; `None` if its future was dropped.
    pub left: Option<Result<Left, ReleaseError>>,
}

/// A job with nested sections.
struct Nested<'a, B: Backend> {
    job: &'a Job,
    resource: &'a ResourceKey,
    scope: &'a Scope<B>,
    depth: u32,
}

impl<B: Backend, P: Pauses> Worker<B, P> {
    /// Begins a scope, within which the worker's lock is reentrant.
    pub fn scope(&self) -> Scope<B> {
        self.lock.scope()
    }

    /// Enters the outermost section of a round.
    ///
    /// # Errors
    ///
    /// As [`Scope::acquire`].
    pub async fn enter(&self, scope: &Scope<B>, job: &Job) -> Result<Entered<B>, EnterError> {
        scope.acquire(&job.key, self.now() + job.acquire_timeout).await
    }

    /// Does the job in sections nested `depth` deep, and leaves the outermost one, which `entered` is. Each
    /// section writes, enters the next one, and writes again after that has left; the innermost one works and
    /// writes once. A `depth` of 0 is one of 1. The writes are numbered; [`Job::writes`] is not used, and
    /// neither is [`Job::release`]: the sections always leave.
    ///
    /// # Errors
    ///
    /// [`RoundError::Key`] if the lock's name is too long for a resource.
    pub async fn hold_nested(
        &self,
        job: &Job,
        depth: u32,
        scope: &Scope<B>,
        entered: Entered<B>,
    ) -> Result<RoundOfNested, RoundError> {
        let resource = ResourceKey::new(job.key.name())?;
        let depth = depth.max(1);
        let job = &Job { writes: u64::from(depth) * 2 - 1, ..job.clone() };
        let nested = Nested { job, resource: &resource, scope, depth };
        let token = entered.fence();
        let section = Section::enter(&job.key, entered.owner(), token);
        let ending = match job.renew {
            None => {
                let work = self.outermost(&nested, &entered);
                self.pauses.run(Droppable::Section, work).await.unwrap_or(Ending::Cancelled)
            }
            Some(cap) => {
                let renewed = entered.while_held(Cap(cap), self.outermost(&nested, &entered));
                match self.pauses.run(Droppable::Renewed, renewed).await {
                    Some(Ok(ending)) => ending,
                    Some(Err(_)) => Ending::Lost,
                    None => Ending::Cancelled,
                }
            }
        };
        section.leave(ending.as_str());
        let left = self.pauses.run(Droppable::Release, entered.leave()).await;
        self.pause(job, Step::Released).await;
        Ok(RoundOfNested { token, ending, left })
    }

    async fn outermost(&self, nested: &Nested<'_, B>, entered: &Entered<B>) -> Ending {
        self.pause(nested.job, Step::Granted).await;
        let read = self.read_first(nested.job, nested.resource, entered, &beside(entered)).await;
        match read {
            Some(ending) => ending,
            None => self.write_around(nested, entered, 1).await,
        }
    }

    /// Writes in the section at `level`, counted from 1, before and after the section inside it.
    async fn write_around(&self, nested: &Nested<'_, B>, entered: &Entered<B>, level: u32) -> Ending {
        if level == nested.depth {
            self.runtime().sleep_until(self.now() + nested.job.work).await;
            self.pause(nested.job, Step::Worked).await;
            return self.write_checked(nested, entered, level).await;
        }
        let before = self.write_checked(nested, entered, level).await;
        if before != Ending::Done {
            return before;
        }
        let inside = self.nest(nested, level + 1).await;
        if inside != Ending::Done {
            return inside;
        }
        self.write_checked(nested, entered, 2 * nested.depth - level).await
    }

    /// Enters the section at `level`, writes in it and leaves it.
    async fn nest(&self, nested: &Nested<'_, B>, level: u32) -> Ending {
        let inner = match nested.scope.acquire(&nested.job.key, self.now() + nested.job.acquire_timeout).await
        {
            Ok(inner) => inner,
            Err(EnterError::Lost { .. }) => return Ending::Expired,
            Err(_) => return Ending::Lost,
        };
        let ending = Box::pin(self.write_around(nested, &inner, level)).await;
        // An inner section that leaves sends nothing, so it can't fail.
        let _ = inner.leave().await;
        ending
    }

    /// Writes as the write numbered `number`, if the lease is still valid or the job does not check it.
    async fn write_checked(&self, nested: &Nested<'_, B>, entered: &Entered<B>, number: u32) -> Ending {
        let Nested { job, resource, .. } = nested;
        if job.check {
            if !entered.is_valid() {
                return Ending::Expired;
            }
            self.pause(job, Step::Checked).await;
        }
        let ending = self.write(job, resource, entered, &beside(entered), u64::from(number)).await;
        self.pause(job, Step::Written).await;
        ending
    }
}
