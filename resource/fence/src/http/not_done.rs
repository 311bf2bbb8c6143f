//! The error of a handler whose work was not done, and its answer.

use std::borrow::Cow;
use std::time::Duration;

use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use dlock::{AcquireError, LostError, TryAcquireError};

use super::{Explained, json};
use crate::{NextStep, Refusal};

/// The seconds in `Retry-After` if nobody knows how long to wait.
const RETRY_AFTER_SECONDS: u64 = 1;

const BUSY_HELP: &str = "nothing was done: send the request again after the seconds in Retry-After";
const UNKNOWN_HELP: &str = "the work may have been done: send the very same request again, with the same \
     X-Fence-Token, X-Fence-Seq and X-Lock-Owner";
const VOID_HELP: &str = "do not send the request again: the work is void";
const FAILED_HELP: &str = "a retry does not help: tell the operator of the service";

/// The reason why a handler did not do the work, or does not know that it did. Use it as the error of an axum
/// handler: `?` turns a refusal, a lock that is taken, a lost lease or a failed transaction into its answer.
/// The texts name no server, since clients read them: log the error itself before.
///
/// | | answer | |
/// |---|---|---|
/// | `Refused` | 409, 412 or 422 | the body of the resource: `{"error":…,"seen":34,"got":33}` |
/// | `Busy` | 503 with `Retry-After` | `{"error":…,"help":…,"retry_after":2}`: nothing was done |
/// | `Unknown` | 503 | `{"error":…,"help":…}`: send the very same request again |
/// | `Void` | 409 | `{"error":…,"help":…}` |
/// | `Failed` | 500 | `{"error":…,"help":…}` |
///
/// # Example
///
/// ```
/// use std::time::Duration;
///
/// use axum::response::IntoResponse;
/// use dlock::TryAcquireError;
/// use fence::http::NotDone;
///
/// let taken = TryAcquireError::Taken { retry_after: Some(Duration::from_millis(1200)) };
/// let answer = NotDone::from(taken).into_response();
/// assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (503, &"2".parse()?));
/// # Ok::<(), axum::http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotDone {
    /// The resource refused the write.
    #[error("refused: {}", .0.as_str())]
    Refused(Refusal),
    /// The lock is taken, the lease was lost, or a server can't be reached. Nothing was done.
    #[error("{error}")]
    Busy {
        /// The problem.
        error: Cow<'static, str>,
        /// The time to wait, if it is known.
        retry_after: Option<Duration>,
    },
    /// The write was sent, and no answer came.
    #[error("{0}")]
    Unknown(Cow<'static, str>),
    /// The work is void: the program ends, or a later holder has written.
    #[error("{0}")]
    Void(Cow<'static, str>),
    /// The request or the configuration must be changed. The client gets this text.
    #[error("{0}")]
    Failed(Cow<'static, str>),
}

impl NotDone {
    /// Creates the outcome of a problem with this next step. The client reads `error`: it must not name
    /// servers.
    pub fn of(error: impl Into<Cow<'static, str>>, next: NextStep) -> Self {
        let error = error.into();
        match next {
            NextStep::Busy { retry_after } => Self::Busy { error, retry_after },
            NextStep::RetryWithNewLease => Self::Busy { error, retry_after: None },
            NextStep::RepeatSameWrite => Self::Unknown(error),
            NextStep::Stop | NextStep::Compensate | NextStep::Done => Self::Void(error),
            NextStep::Repair => Self::Failed(error),
        }
    }

    fn without_lease(next: NextStep, is_taken: bool) -> Self {
        let error = match next {
            _ if is_taken => "the lock is taken by another owner",
            NextStep::Stop => "the service ends",
            NextStep::Repair => "the lock of this service can't be used",
            _ => "the lock can't be had at the moment",
        };
        Self::of(error, next)
    }
}

impl From<Refusal> for NotDone {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<TryAcquireError> for NotDone {
    fn from(error: TryAcquireError) -> Self {
        Self::without_lease(NextStep::from(&error), matches!(error, TryAcquireError::Taken { .. }))
    }
}

impl From<AcquireError> for NotDone {
    fn from(error: AcquireError) -> Self {
        let is_taken = matches!(error, AcquireError::Taken { .. } | AcquireError::QueueFull { .. });
        Self::without_lease(NextStep::from(&error), is_taken)
    }
}

impl From<LostError> for NotDone {
    /// Returns `Busy`: the request may be sent again, and is then done under a new lease. For a lease that
    /// was lost before the write was sent.
    fn from(_: LostError) -> Self {
        Self::Busy { error: "the lease of this request has ended".into(), retry_after: None }
    }
}

#[cfg(any(feature = "tokio-postgres", feature = "sqlx", feature = "mysql"))]
impl<E> From<crate::Stop<E>> for NotDone {
    /// Returns `Refused` for a refusal, and `Unknown` if the commit may have been done. Answer
    /// [`Stop::Repeated`](crate::Stop::Repeated) as the first time: it is no failure.
    fn from(stop: crate::Stop<E>) -> Self {
        use crate::Stop;
        match stop {
            Stop::Refused(refusal) => Self::Refused(refusal),
            Stop::Repeated(_) => Self::Void("this request was done before".into()),
            // Nothing of it stands.
            Stop::Retry(_) => {
                Self::Busy { error: "other requests were in the way".into(), retry_after: None }
            }
            Stop::Failed(_) => Self::Unknown("the database did not answer".into()),
            Stop::TooLarge(_) | Stop::Corrupt(_) => {
                Self::Failed("the database can't judge this request".into())
            }
        }
    }
}

impl IntoResponse for NotDone {
    fn into_response(self) -> Response {
        let (status, error, help, seconds) = match self {
            Self::Refused(refusal) => return refusal.into_response(),
            Self::Busy { error, retry_after } => {
                let seconds = retry_after.map_or(RETRY_AFTER_SECONDS, whole_seconds);
                (StatusCode::SERVICE_UNAVAILABLE, error, BUSY_HELP, Some(seconds))
            }
            Self::Unknown(error) => (StatusCode::SERVICE_UNAVAILABLE, error, UNKNOWN_HELP, None),
            Self::Void(error) => (StatusCode::CONFLICT, error, VOID_HELP, None),
            Self::Failed(error) => (StatusCode::INTERNAL_SERVER_ERROR, error, FAILED_HELP, None),
        };
        let mut response = json(status, &Explained { error, help: help.into(), retry_after: seconds });
        if let Some(seconds) = seconds {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// Returns the seconds of a `Retry-After`, rounded up: an earlier request would come in vain. At least one.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1)
}
