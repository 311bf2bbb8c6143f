//! A round of a leader: it campaigns, does the job in its term, and resigns. And a round of an observer.

use dlock::election::{Election, Leadership, Observer, Term};
use dlock::{AcquireError, Backend, BackendError, Cap, Instant, OptionsError, timeout_at};
use history::emit;

use super::{Droppable, Job, Pauses, Round, RoundError, Section, Step, Worker};
use crate::ResourceKey;

impl<B: Backend, P: Pauses> Worker<B, P> {
    /// Returns the election on the key of the job, whose terms are renewed for as long as the job says.
    ///
    /// # Errors
    ///
    /// As [`Election::new`].
    pub fn election(&self, job: &Job) -> Result<Election<B>, OptionsError> {
        let cap = job.renew.unwrap_or(std::time::Duration::MAX);
        Election::new(self.lock.clone(), job.key.clone(), Cap(cap))
    }

    /// Runs the first half of a round: campaigns.
    ///
    /// # Errors
    ///
    /// As [`Election::campaign`].
    pub async fn campaign(&self, election: &Election<B>, job: &Job) -> Result<Leadership<B>, AcquireError> {
        election.campaign(self.now() + job.acquire_timeout).await
    }

    /// Runs the second half: does the job as the leader, whose writes carry the term, and resigns.
    ///
    /// # Errors
    ///
    /// [`RoundError::Key`] if the name of the key is too long for a resource.
    pub async fn lead(&self, job: &Job, leadership: Leadership<B>) -> Result<Round, RoundError> {
        let resource = ResourceKey::new(job.key.name())?;
        let (lease, token) = (leadership.lease(), leadership.term());
        let section = Section::enter(&job.key, lease.owner(), token);
        let ending = self.renewed(leadership.lead(self.section(job, &resource, lease))).await;
        section.leave(ending.as_str());
        let released = self.pauses.run(Droppable::Release, leadership.resign()).await;
        self.pause(job, Step::Released).await;
        Ok(Round { token, ending, released })
    }

    /// Waits for the next term until `deadline`; returns `None` without one. Emits `term_observed`. Questions
    /// that fail are repeated.
    ///
    /// # Errors
    ///
    /// [`BackendError`] if no repetition helps.
    pub async fn observe(
        &self,
        observer: &mut Observer<B>,
        job: &Job,
        deadline: Instant,
    ) -> Result<Option<Term>, BackendError> {
        loop {
            match timeout_at(self.runtime(), deadline, std::pin::pin!(observer.next())).await {
                Err(_) => return Ok(None),
                Ok(Ok(term)) => {
                    let (key, token) = (job.key.id_hash(), term.term.as_u64());
                    emit!(TermObserved { key: key, owner: term.leader.as_str(), token: token });
                    return Ok(Some(term));
                }
                Ok(Err(error)) if error.is_passing() => {}
                Ok(Err(error)) => return Err(error),
            }
        }
    }
}
