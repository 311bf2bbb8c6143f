//! The rule below the highest token: the permits of a semaphore that were live when it was granted.
//!
//! A semaphore has up to N live permits, each with a fencing token of its own. So the tokens of a key that
//! are live at once may reach the resource in any order, and a token below the highest one is not stale by
//! itself. Each request of a permit names the tokens that were live beside its own when it was granted. The
//! fence keeps those of the highest token, and judges each by a position of its own.
//!
//! **Why this is right.** Tokens grow with the grants, and a permit that has ended is never live again. Let T
//! be the highest token, with the set S. A token below T was granted before T. If it is not in S, then by the
//! lock server's own record it had ended when T was granted, so it is stale for sure. If it is live, it was
//! live at that time too, so it is in S, and no request of it is refused for its token.
//!
//! **What it does not promise.** A permit that ended after T was granted is in S. It is refused only once a
//! permit that was granted after its end has reached the resource, with a write or a fenced read. A mutex has
//! the same limit: its resource refuses the old holder once the new one has reached it. Nor does it keep the
//! holders of live permits from overwriting one another: they share the key on purpose.
//!
//! **What it trusts.** The set comes with the request, as the token does. A client that sends another set
//! than the lock server's can let a stale writer in, or keep live ones out.

use dlock::FencingToken;

use super::outcome::Refusal;
use super::position::{Mark, Position, judge};
use crate::beside::Beside;
use crate::owner::OwnerToken;

/// A permit that was live when the highest token of its key was granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permit {
    /// The token of a permit from which no request has been accepted.
    Unseen(FencingToken),
    /// The highest position that was accepted of the permit's token, and its owner.
    Seen(Mark),
}

impl Permit {
    /// Returns the fencing token.
    pub const fn token(&self) -> FencingToken {
        match self {
            Self::Unseen(token) => *token,
            Self::Seen(mark) => mark.position.token(),
        }
    }

    /// Returns the highest position seen of the token; `None` if no request with it was accepted.
    pub const fn mark(&self) -> Option<&Mark> {
        match self {
            Self::Unseen(_) => None,
            Self::Seen(mark) => Some(mark),
        }
    }
}

/// Judges a request below `highest`, the highest token seen: it must be at one of `permits`, which are in
/// ascending order, and above the position seen of it.
pub(super) fn judge_below(
    permits: &[Permit],
    highest: FencingToken,
    position: Position,
    owner: Option<&OwnerToken>,
) -> Result<(), Refusal> {
    let (seen, got) = (highest, position.token());
    let permit = find(permits, got).ok_or(Refusal::Stale { seen, got })?;
    judge(permit.mark(), position, owner).map_err(|refusal| match refusal {
        Refusal::ForeignOwner { .. } => Refusal::ForeignOwner { seen, got },
        _ => Refusal::Stale { seen, got },
    })
}

/// Returns the permits beside `token`, which is about to replace `highest`: those of `beside` below it, each
/// with the position that was seen of it.
pub(super) fn permits_below(
    token: FencingToken,
    beside: &Beside,
    highest: Option<&Mark>,
    permits: &[Permit],
) -> Vec<Permit> {
    let seen = |other: FencingToken| {
        let highest = highest.filter(|mark| mark.position.token() == other);
        highest.or_else(|| find(permits, other)?.mark())
    };
    let below = beside.tokens().iter().take_while(|other| **other < token);
    below
        .map(|other| seen(*other).map_or(Permit::Unseen(*other), |mark| Permit::Seen(mark.clone())))
        .collect()
}

/// Moves the position of one of `permits` up to `mark`, never down; does nothing if its token is none of
/// theirs.
pub(super) fn raise(permits: &mut [Permit], mark: &Mark) {
    if let Ok(place) = place(permits, mark.position.token())
        && let Some(permit) = permits.get_mut(place)
        && permit.mark().is_none_or(|seen| seen.position < mark.position)
    {
        *permit = Permit::Seen(mark.clone());
    }
}

fn find(permits: &[Permit], token: FencingToken) -> Option<&Permit> {
    permits.get(place(permits, token).ok()?)
}

fn place(permits: &[Permit], token: FencingToken) -> Result<usize, usize> {
    permits.binary_search_by_key(&token, Permit::token)
}
