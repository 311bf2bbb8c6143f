//! A round on several keys at once: all locks, then the job on each resource, then all releases.

use dlock::{AcquireAllError, Backend, Cap, Handle, Handles, LockKey, Released};

use super::{Droppable, Ending, Job, Pauses, RoundError, Section, Step, Worker};
use crate::ResourceKey;

/// The outcome of a round on several keys.
#[derive(Debug)]
pub struct RoundOfSeveral {
    /// The end of the critical section: that of the first key whose job was not done, or
    /// [`Ending::Done`].
    pub ending: Ending,
    /// The keys whose release was confirmed, newest grant first; `None` if the job leaves the locks to their
    /// TTL, if a release was not confirmed, or if it was dropped.
    pub released: Option<Vec<(LockKey, Released)>>,
}

impl<B: Backend, P: Pauses> Worker<B, P> {
    /// Acquires the locks on all `keys`, for the job of each of them; its own key is not used.
    ///
    /// # Errors
    ///
    /// As [`Lock::acquire_all`](dlock::Lock::acquire_all).
    pub async fn acquire_all(&self, keys: &[LockKey], job: &Job) -> Result<Handles<B>, AcquireAllError> {
        self.lock.acquire_all(keys, self.now() + job.acquire_timeout).await
    }

    /// Does the job on the resource of each key that is held, one after the other, and releases all. Each
    /// write carries the token of its own key. The job's own key is not used.
    ///
    /// # Errors
    ///
    /// [`RoundError::Key`] if the name of a lock is too long for a resource.
    pub async fn hold_all(&self, job: &Job, handles: Handles<B>) -> Result<RoundOfSeveral, RoundError> {
        let jobs = handles.all().iter().map(|handle| job_of(job, handle));
        let jobs: Vec<(Job, ResourceKey)> = jobs.collect::<Result<_, _>>()?;
        let enter = |handle: &Handle<B>| Section::enter(handle.key(), handle.owner(), handle.fence());
        let sections: Vec<Section> = handles.all().iter().map(enter).collect();
        let ending = match job.renew {
            None => {
                let work = self.sections(&jobs, &handles);
                self.pauses.run(Droppable::Section, work).await.unwrap_or(Ending::Cancelled)
            }
            Some(cap) => {
                let renewed = handles.while_held(Cap(cap), self.sections(&jobs, &handles));
                self.renewed(renewed).await
            }
        };
        sections.into_iter().for_each(|section| section.leave(ending.as_str()));
        let released = if job.release {
            let released = self.pauses.run(Droppable::Release, handles.release()).await;
            self.pause(job, Step::Released).await;
            released.and_then(Result::ok)
        } else {
            handles.leave();
            None
        };
        Ok(RoundOfSeveral { ending, released })
    }

    /// Does the jobs in the order of the keys, until one is not done.
    async fn sections(&self, jobs: &[(Job, ResourceKey)], handles: &Handles<B>) -> Ending {
        for (handle, (job, resource)) in handles.all().iter().zip(jobs) {
            let ending = self.section(job, resource, handle).await;
            if ending != Ending::Done {
                return ending;
            }
        }
        Ending::Done
    }
}

/// Returns the job on the key of `handle`, and its resource.
fn job_of<B: Backend>(job: &Job, handle: &Handle<B>) -> Result<(Job, ResourceKey), RoundError> {
    let resource = ResourceKey::new(handle.key().name())?;
    Ok((Job { key: handle.key().clone(), ..job.clone() }, resource))
}
