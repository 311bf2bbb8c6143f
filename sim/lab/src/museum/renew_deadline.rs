//! R19: a leader whose renewals fail goes on until a deadline of its own, which is longer than its lease. The
//! next leader begins before that.
//!
//! Source: leader elections of Kubernetes' kind whose `renewDeadline` is not below `leaseDuration`; client-go
//! refuses that, other implementations do not.

use dlock::{Acquisition, Answer, BackendError, Instant, Renewal, Runtime};

use crate::kit::{Attempt, LockMistake};
use crate::{Correct, Options, ReleaseMode, WorkerMode};

/// Leads until one and a half TTLs after the last renewal.
pub(super) struct RenewDeadline;

impl<B: Correct> LockMistake<B> for RenewDeadline {
    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        if let Answer::Granted { since, .. } = answer {
            own.renewed = Some(since);
        }
        Ok(answer)
    }

    async fn renew(own: &mut Attempt<B>, deadline: Instant) -> Result<Renewal, BackendError> {
        let renewal = own.correct.renew(deadline).await;
        if let Ok(Renewal::Extended { since, .. }) = renewal {
            own.renewed = Some(since);
        }
        let (now, renew_deadline) = (own.runtime().now(), own.claim.ttl * 3 / 2);
        match (renewal, own.renewed) {
            (Err(_), Some(renewed)) if now < renewed + renew_deadline => {
                Ok(Renewal::Extended { since: now, left: (renewed + renew_deadline).saturating_since(now) })
            }
            (renewal, _) => renewal,
        }
    }
}

/// Makes all drawn workers that lock candidates of an election.
pub(super) fn campaign(options: &mut Options) {
    (options.permits, options.readers) = (None, false);
    for worker in &mut options.workers {
        worker.shared = false;
        if worker.flies() {
            (worker.mode, worker.fails) = (WorkerMode::default(), None);
        }
    }
    for worker in options.workers.iter_mut().filter(|worker| worker.mode == WorkerMode::default()) {
        worker.mode = WorkerMode::new("election");
        (worker.renew, worker.renew_cap, worker.release) = (false, None, ReleaseMode::default());
    }
}
