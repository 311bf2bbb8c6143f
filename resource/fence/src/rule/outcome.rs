//! The outcomes of judging a request: an applied write with its receipt, or a refusal.

use dlock::FencingToken;

/// Why a request was refused. A claim is refused as stale, as foreign or for its jump only.
///
/// # Example
///
/// ```
/// use fence::Refusal;
///
/// let (seen, got) = ("34".parse()?, "33".parse()?);
/// let refusal = Refusal::Stale { seen, got };
/// assert_eq!((refusal.as_str(), refusal.seen()), ("stale", Some(seen)));
/// // A conflict of versions is not due to a token.
/// assert_eq!(Refusal::Conflict { expected: 1, current: 2 }.seen(), None);
/// # Ok::<(), dlock::TokenError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its position is not above the highest seen, nor above that of a permit beside the highest token.
    Stale {
        /// The highest token seen.
        seen: FencingToken,
        /// The request's token.
        got: FencingToken,
    },
    /// Its token is the highest seen, or that of a permit beside it, but another owner's.
    ForeignOwner {
        /// The highest token seen.
        seen: FencingToken,
        /// The request's token.
        got: FencingToken,
    },
    /// It is conditional, and the resource has another version.
    Conflict {
        /// The version that it named.
        expected: u64,
        /// The version that the resource has.
        current: u64,
    },
    /// It is conditional, and the key has seen a fencing token: it takes no write without one.
    Fenced {
        /// The highest token seen.
        seen: FencingToken,
    },
    /// Its token is so far above the highest seen that it can't come from the lock: see
    /// [`MaxJump`](crate::MaxJump).
    Jump {
        /// The highest token seen; `None` if there was none.
        seen: Option<FencingToken>,
        /// The request's token.
        got: FencingToken,
        /// The largest token that the key accepts now.
        max: u64,
    },
}

impl Refusal {
    /// Returns the value of the field `outcome` of events, and of the metrics' label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stale { .. } => "stale",
            Self::ForeignOwner { .. } => "owner",
            Self::Conflict { .. } => "conflict",
            Self::Fenced { .. } => "fenced",
            Self::Jump { .. } => "jump",
        }
    }

    /// Returns the highest token seen and that of the request, if the latter is not above the former.
    pub const fn tokens(self) -> Option<(FencingToken, FencingToken)> {
        match self {
            Self::Stale { seen, got } | Self::ForeignOwner { seen, got } => Some((seen, got)),
            Self::Conflict { .. } | Self::Fenced { .. } | Self::Jump { .. } => None,
        }
    }

    /// Returns the highest token that the key had seen, if the refusal is due to it.
    pub const fn seen(self) -> Option<FencingToken> {
        match self {
            Self::Stale { seen, .. } | Self::ForeignOwner { seen, .. } | Self::Fenced { seen } => Some(seen),
            Self::Jump { seen, .. } => seen,
            Self::Conflict { .. } => None,
        }
    }
}

/// The answer to an accepted write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The number of writes that the resource has accepted, this one included.
    pub version: u64,
    /// The highest token seen when the write was applied; `None` for a conditional write, which has none. Of
    /// a repeated write it is the write's own token: that is the same, unless it is the token of a permit
    /// below the highest.
    pub max_fence: Option<FencingToken>,
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It was applied.
    Accepted(Receipt),
    /// It had been applied before; this is the first answer again.
    Repeated(Receipt),
    /// It was not applied.
    Refused(Refusal),
}
