//! The answers that the client returns, and its errors.

use std::fmt;
use std::time::Duration;

use dlock::FencingToken;

use crate::fence::Refusal;
use crate::store::Snapshot;

/// The answer to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutAnswer {
    /// It is applied, now or by an earlier attempt.
    Accepted {
        /// The number of writes that the resource has accepted, this one included.
        version: u64,
    },
    /// It is not applied. If an earlier attempt's answer is unknown, that attempt may have been applied, and
    /// overwritten since.
    Refused(Refusal),
}

/// The answer to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadAnswer {
    /// The resource at that moment; the claim, if any, is kept.
    Read(Snapshot),
    /// The claimed token is below the highest seen.
    Stale {
        /// The highest token seen.
        seen: FencingToken,
        /// The claimed token.
        got: FencingToken,
    },
    /// The claimed token is the highest seen, but was claimed or used by another owner.
    ForeignOwner {
        /// The highest token seen.
        seen: FencingToken,
        /// The claimed token.
        got: FencingToken,
    },
    /// The claimed token is so far above the highest seen that it can't come from the lock: see
    /// [`MaxJump`](crate::MaxJump).
    Jump {
        /// The highest token seen; `None` if there was none.
        seen: Option<FencingToken>,
        /// The claimed token.
        got: FencingToken,
        /// The largest token that the key accepts now.
        max: u64,
    },
}

/// The request got no answer of the fence check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The service did not see the request: it is not applied and never will be.
    #[error("the request was not sent: {0}")]
    NotSent(Failure),
    /// The request was sent, and no answer came: it may be applied, or be applied later.
    #[error("the request may or may not be applied: {0}")]
    Unknown(Failure),
    /// The service refused the request as malformed, or for want of a bearer token: nothing is stored, and a
    /// retry can't succeed.
    #[error("the service refused the request ({status}): {error}; {help}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The problem.
        error: String,
        /// The advice.
        help: String,
    },
}

/// Why a request got no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The deadline passed.
    Timeout,
    /// The connection failed, or could not be opened.
    Network(String),
    /// The service answered with its own failure, or with an invalid answer.
    Service(String),
    /// This address sends too many requests. A retry is allowed after this time.
    RateLimited(Duration),
}

impl Failure {
    /// Returns the failure of a connection, with the causes of `error`: hyper's own text leaves them out.
    pub(super) fn of(error: &dyn std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self::Network(text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("the deadline passed"),
            Self::Network(what) | Self::Service(what) => f.write_str(what),
            Self::RateLimited(wait) => {
                write!(f, "this address sends too many requests; retry after {} s", wait.as_secs())
            }
        }
    }
}

impl ClientError {
    /// Returns true if the deadline passed, rather than something failing.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::NotSent(Failure::Timeout) | Self::Unknown(Failure::Timeout))
    }
}

/// The retries of [`put_with_retry`](super::Client::put_with_retry).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The timeout of one attempt.
    pub attempt: Duration,
    /// The pause between two attempts. No jitter: the holder of a lock is alone with its resource.
    pub pause: Duration,
}

impl Default for Retry {
    /// Returns a timeout of one second, and a pause of 50 ms.
    fn default() -> Self {
        Self { attempt: Duration::from_secs(1), pause: Duration::from_millis(50) }
    }
}
