//! The rule as it was before permits, for mutexes alone: the reference of the case of the empty set.

use dlock::FencingToken;
use fence::{
    BodyDigest, Fencing, Guard, LastWrite, Mark, OwnerToken, Position, Receipt, Refusal, WriteOutcome, judge,
};

/// The fence of a mutex.
#[derive(Default)]
pub(crate) struct MutexFence {
    pub(crate) highest: Option<Mark>,
    pub(crate) last_write: Option<LastWrite>,
    pub(crate) version: u64,
}

impl MutexFence {
    pub(crate) fn max_fence(&self) -> Option<FencingToken> {
        self.highest.as_ref().map(|mark| mark.position.token())
    }

    pub(crate) fn set(&mut self, to: Option<FencingToken>) {
        self.highest = to.map(|token| Mark { position: Position::write(token, None), owner: None });
    }

    pub(crate) fn claim(&mut self, mark: &Mark, fencing: Fencing) -> Result<(), Refusal> {
        if fencing == Fencing::On {
            judge(self.highest.as_ref(), mark.position, mark.owner.as_ref())?;
        }
        self.raise(mark);
        Ok(())
    }

    pub(crate) fn write(
        &mut self,
        guard: Guard,
        owner: Option<&OwnerToken>,
        digest: BodyDigest,
        fencing: Fencing,
    ) -> WriteOutcome {
        let this = LastWrite { guard, owner: owner.cloned(), digest };
        let is_judged = fencing == Fencing::On || matches!(guard, Guard::Version { .. });
        if is_judged && owner.is_some() && self.last_write.as_ref() == Some(&this) {
            let max_fence = match guard {
                Guard::Token { token, .. } => Some(token),
                Guard::Version { .. } => None,
            };
            return WriteOutcome::Repeated(Receipt { version: self.version, max_fence });
        }
        if is_judged && let Err(refusal) = self.judge(guard, owner, fencing) {
            return WriteOutcome::Refused(refusal);
        }
        self.version += 1;
        let max_fence = match guard {
            Guard::Token { token, seq } => {
                Some(self.raise(&Mark { position: Position::write(token, seq), owner: owner.cloned() }))
            }
            Guard::Version { .. } => None,
        };
        self.last_write = Some(this);
        WriteOutcome::Accepted(Receipt { version: self.version, max_fence })
    }

    fn judge(&self, guard: Guard, owner: Option<&OwnerToken>, fencing: Fencing) -> Result<(), Refusal> {
        match guard {
            Guard::Token { token, seq } => judge(self.highest.as_ref(), Position::write(token, seq), owner),
            Guard::Version { expected } => match (fencing, self.max_fence()) {
                (Fencing::On, Some(seen)) => Err(Refusal::Fenced { seen }),
                _ if expected == self.version => Ok(()),
                _ => Err(Refusal::Conflict { expected, current: self.version }),
            },
        }
    }

    fn raise(&mut self, mark: &Mark) -> FencingToken {
        match &self.highest {
            Some(highest) if highest.position >= mark.position => highest.position.token(),
            _ => {
                self.highest = Some(mark.clone());
                mark.position.token()
            }
        }
    }
}
