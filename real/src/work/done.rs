//! The result of a round, and its words.

use std::fmt::Display;

use dlock::flight::{Flight, FlightError};
use dlock::{AcquireAllError, AcquireError, FencingToken, Left, LockKey, ReleaseError, Released};
use resource::cron::Fired;
use resource::jobs::{Fate, Worked};
use resource::worker::{Ending, Round, RoundError, RoundOfNested, RoundOfSeveral};

/// The result of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// The contender.
    pub contender: String,
    /// The key of the lock and of the resource; of several, their list.
    pub key: String,
    /// The fencing token of its grant, if it had one.
    pub token: Option<FencingToken>,
    /// What happened, in words.
    pub words: String,
    /// True if the round did not write although nobody asked it to stop.
    pub has_failed: bool,
}

impl Done {
    /// Returns one line of text: `a: account:0 token 7: written; released`.
    pub fn line(&self) -> String {
        let Self { contender, key, token, words, .. } = self;
        match token {
            Some(token) => format!("{contender}: {key} token {token}: {words}"),
            None => format!("{contender}: {key}: {words}"),
        }
    }
}

/// The end of a round, without its contender.
pub(super) struct End {
    pub(super) token: Option<FencingToken>,
    pub(super) words: String,
    pub(super) has_failed: bool,
    /// True if a full queue refused it: the next round would be refused at once, too.
    pub(super) is_refused: bool,
}

impl End {
    fn fine(token: Option<FencingToken>, words: String) -> Self {
        Self { token, words, has_failed: false, is_refused: false }
    }

    pub(super) fn failed(error: impl Display) -> Self {
        Self { token: None, words: error.to_string(), has_failed: true, is_refused: false }
    }

    fn of(token: Option<FencingToken>, ending: Ending, released: &str) -> Self {
        let words = format!("{}; {released}", explain(ending));
        Self { has_failed: !is_fine(ending), ..Self::fine(token, words) }
    }

    pub(super) fn of_round(round: Result<Round, RoundError>) -> Self {
        match round {
            Ok(Round { token, ending, released }) => Self::of(Some(token), ending, &release(released)),
            Err(RoundError::Acquire(error)) => Self::of_acquire(&error),
            Err(error) => Self::failed(error),
        }
    }

    pub(super) fn of_acquire(error: &AcquireError) -> Self {
        let is_refused = matches!(error, AcquireError::QueueFull { .. });
        Self { is_refused, ..Self::failed(error) }
    }

    pub(super) fn of_several(round: Result<RoundOfSeveral, RoundError>) -> Self {
        match round {
            Ok(RoundOfSeveral { ending, released }) => Self::of(None, ending, &released_all(released)),
            Err(error) => Self::failed(error),
        }
    }

    pub(super) fn of_acquire_all(error: &AcquireAllError) -> Self {
        match error {
            AcquireAllError::NotAcquired { source, .. } => {
                Self { words: error.to_string(), ..Self::of_acquire(source) }
            }
            error => Self::failed(error),
        }
    }

    pub(super) fn of_nested(round: Result<RoundOfNested, RoundError>) -> Self {
        match round {
            Ok(RoundOfNested { token, ending, left }) => {
                let left = match left {
                    Some(Ok(Left::Released(released))) => release(Some(Ok(released))),
                    Some(Ok(_)) => "sections of its scope are still open".to_owned(),
                    Some(Err(error)) => error.to_string(),
                    None => release(None),
                };
                Self::of(Some(token), ending, &left)
            }
            Err(error) => Self::failed(error),
        }
    }

    pub(super) fn of_flight<E: Display>(flown: Result<Flight, FlightError<E>>) -> Self {
        match flown {
            Ok(Flight { result, is_shared }) => {
                let whose = if is_shared { "shared" } else { "its own" };
                let value = if result.value.is_ok() { "a result" } else { "a failure" };
                Self::fine(Some(result.token), format!("{value}, {whose}"))
            }
            Err(error) => Self::failed(error),
        }
    }

    pub(super) fn of_firing(fired: Fired) -> Self {
        let Fired { token, ran, ending, error, released, .. } = fired;
        let end = Self::of(Some(token), ending, &release(released));
        let words = match (ran.as_slice(), error) {
            (_, Some(error)) => format!("{} ({error})", end.words),
            ([], None) if ending == Ending::Done => "no tick is left to run".to_owned(),
            (ran, None) => {
                let ticks: Vec<_> = ran.iter().map(ToString::to_string).collect();
                format!("{} (ticks: {})", end.words, ticks.join(", "))
            }
        };
        Self { words, ..end }
    }

    pub(super) fn of_job(worked: Worked) -> Self {
        let (id, fate) = match worked {
            Worked::Job { id, fate } => (id, fate),
            Worked::Wait { left } => return Self::fine(None, format!("no job is ready for {left:?}")),
            Worked::Empty => return Self::fine(None, "no job is left".to_owned()),
        };
        match fate {
            Fate::Done => Self::fine(None, format!("job {id} is done")),
            Fate::DoneBefore => Self::fine(None, format!("job {id} was done before")),
            Fate::Left(ending) => {
                let words = format!("job {id}: {}", explain(ending));
                Self { has_failed: !is_fine(ending), ..Self::fine(None, words) }
            }
            Fate::Failed(error) => Self::failed(format!("job {id} failed: {error}")),
            Fate::Dead(error) => Self::failed(format!("job {id} is dead: {error}")),
        }
    }
}

fn is_fine(ending: Ending) -> bool {
    matches!(ending, Ending::Done | Ending::Cancelled)
}

fn release(released: Option<Result<Released, ReleaseError>>) -> String {
    match released {
        None => "left to its TTL".to_owned(),
        Some(Ok(Released::Done)) => "released".to_owned(),
        Some(Ok(Released::NotOwner)) => "the lock was no longer its own".to_owned(),
        Some(Err(error)) => error.to_string(),
    }
}

fn released_all(released: Option<Vec<(LockKey, Released)>>) -> String {
    let Some(released) = released else { return "not every release was confirmed".to_owned() };
    let lost = released.iter().filter(|(_, released)| *released == Released::NotOwner);
    let lost: Vec<_> = lost.map(|(key, _)| key.name()).collect();
    if lost.is_empty() { "released".to_owned() } else { format!("no longer its own: {}", lost.join(", ")) }
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
            "no answer of the resource or of PostgreSQL, perhaps written; check that it runs where \
             --resource or --postgres says"
        }
    }
}
