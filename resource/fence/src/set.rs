//! An operator sets a fence to another token.

use dlock::FencingToken;

use crate::rule::{Fence, Mark, Position};

/// The fence has another token than the operator expected: nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the fence is at {}, not at {}", number(*.current), number(*.expected))]
pub struct FenceMoved {
    /// The token that the operator expected; `None` for a key that has seen none.
    pub expected: Option<FencingToken>,
    /// The highest token seen.
    pub current: Option<FencingToken>,
}

impl Fence {
    /// Sets the highest token seen from `expected` to `to`, which may be lower: the next write needs a token
    /// above `to`. `None` is a key that has seen no token. Value, version and last write stay.
    ///
    /// The permits beside the highest token are forgotten: they are those of a grant that does not count any
    /// more. So a live permit of a semaphore with a token up to `to` is refused from then on, until a newer
    /// one that was granted beside it has reached the resource.
    ///
    /// It is the only operation that moves a fence back, so it undoes the fence's guarantee. Use it only
    /// while nobody can write with a token between `to` and `expected`: stop the writers, or know that no
    /// lock has granted such a token.
    ///
    /// # Errors
    ///
    /// [`FenceMoved`] if the highest token seen is not `expected`.
    ///
    /// # Example
    ///
    /// ```
    /// use fence::{BodyDigest, Fence, Fencing, Guard, WriteOutcome};
    ///
    /// let (poison, last, next) = ("18446744073709551615".parse()?, "34".parse()?, "35".parse()?);
    /// let mut fence = Fence::default();
    /// let mut write = |fence: &mut Fence, token| {
    ///     fence.write(Guard::token(token), None, BodyDigest::of(b"paid"), Fencing::On)
    /// };
    /// assert!(matches!(write(&mut fence, poison), WriteOutcome::Accepted(_)));
    /// assert!(matches!(write(&mut fence, next), WriteOutcome::Refused(_)));
    ///
    /// fence.set(Some(poison), Some(last))?;
    /// assert!(matches!(write(&mut fence, next), WriteOutcome::Accepted(_)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set(
        &mut self,
        expected: Option<FencingToken>,
        to: Option<FencingToken>,
    ) -> Result<(), FenceMoved> {
        let current = self.max_fence();
        if current != expected {
            return Err(FenceMoved { expected, current });
        }
        // The plain write's position is the last of its token: nothing more of that token passes.
        self.highest = to.map(|token| Mark { position: Position::write(token, None), owner: None });
        self.beside = Vec::new();
        Ok(())
    }
}

fn number(token: Option<FencingToken>) -> u64 {
    token.map_or(0, FencingToken::as_u64)
}
