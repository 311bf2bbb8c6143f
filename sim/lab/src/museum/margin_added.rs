//! B15: the drift margin is added to the validity instead of subtracted from it.
//!
//! Source: redlock-py issue 3, redsync issue 37.

use crate::Correct;
use crate::kit::{Attempt, LockMistake};
use dlock::{Acquisition, Answer, BackendError, Instant, Renewal};

/// Adds the margin.
pub(super) struct MarginAdded;

impl<B: Correct> LockMistake<B> for MarginAdded {
    async fn request(own: &mut Attempt<B>, deadline: Instant) -> Result<Answer, BackendError> {
        let answer = own.correct.request(deadline).await?;
        Ok(match answer {
            Answer::Granted { token, since, left } => {
                Answer::Granted { token, since: later(own, since), left }
            }
            held => held,
        })
    }

    async fn renew(own: &mut Attempt<B>, deadline: Instant) -> Result<Renewal, BackendError> {
        let renewal = own.correct.renew(deadline).await?;
        Ok(match renewal {
            Renewal::Extended { since, left } => Renewal::Extended { since: later(own, since), left },
            lost => lost,
        })
    }
}

/// Returns `since` moved by twice the margin: the lock subtracts the margin once, so this adds it.
fn later<B: Correct>(own: &Attempt<B>, since: Instant) -> Instant {
    since + own.margin * 2
}
