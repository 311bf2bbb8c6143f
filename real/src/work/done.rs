//! The result of a round, and its words.

use resource::worker::{Ending, Round, RoundError};

/// The result of a round.
#[derive(Debug)]
pub struct Done {
    /// The contender.
    pub contender: String,
    /// The key of the lock and of the resource.
    pub key: String,
    /// The round, or the error.
    pub round: Result<Round, RoundError>,
}

impl Done {
    /// Returns whether the round did not write although nobody asked it to stop.
    pub fn has_failed(&self) -> bool {
        let is_fine = |round: &Round| matches!(round.ending, Ending::Done | Ending::Cancelled);
        !self.round.as_ref().is_ok_and(is_fine)
    }

    /// Returns one line of text: `a: account:0 token 7: done, released`.
    pub fn line(&self) -> String {
        let Self { contender, key, round } = self;
        match round {
            Err(error) => format!("{contender}: {key}: {error}"),
            Ok(Round { token, ending, released }) => {
                let release = match released {
                    None => "left to its TTL".to_owned(),
                    Some(Ok(dlock::Released::Done)) => "released".to_owned(),
                    Some(Ok(dlock::Released::NotOwner)) => "the lock was no longer its own".to_owned(),
                    Some(Err(error)) => error.to_string(),
                };
                format!("{contender}: {key} token {token}: {}; {release}", explain(*ending))
            }
        }
    }
}

const fn explain(ending: Ending) -> &'static str {
    match ending {
        Ending::Done => "written",
        Ending::Expired => "not written, the lease was no longer valid",
        Ending::Lost => "not written, the lease was lost",
        Ending::Cancelled => "stopped, perhaps before its write",
        Ending::Refused => "refused, 409 stale fencing token",
        Ending::Jumped => {
            "refused, 422 fencing token too far above the highest seen; see --max-jump of resource"
        }
        Ending::Unanswered => {
            "no answer of the resource, perhaps written; check that it runs where --resource says"
        }
    }
}
