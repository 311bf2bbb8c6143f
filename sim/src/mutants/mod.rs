//! Mutants: locks and resources with one mistake that real ones made. The simulator must convict each of them.
//!
//! [`Mutant`] names them; [`crate::lab::run_with`] runs a schedule with one. A lock's mistakes are in a file each, beside the
//! correct backend that does all else (`lock.rs`); a resource's are in `store.rs`.

mod blind_del;
mod counter_deleted;
mod get_then_del;
mod late_loss;
pub(crate) mod lock;
mod margin_added;
mod no_cleanup;
pub(crate) mod plain_redlock;
mod reacquire;
mod renewal_logged;
mod setnx;
pub(crate) mod store;
mod token_by_get;
mod unchecked;
mod validity_from_reply;
mod wall_clock;
mod wire;

pub use get_then_del::GetThenDel;

use crate::lab::System;
use crate::names::names;

names! {
    /// One mistake. The numbers are those of the project's list of bugs that real libraries had.
    pub enum Mutant as "mutant" {
        /// B01: SETNX, then PEXPIRE. A crash between the two leaves a key for ever.
        SetnxThenPexpire = "setnx-then-pexpire",
        /// B02: a release that is a bare DEL, a renewal that is a bare SET.
        BlindDel = "blind-del",
        /// B04: an answer that is lost is read as "not acquired", and nothing is cleaned up.
        NoCleanup = "no-cleanup",
        /// B10: a renewal of a lease that is gone acquires it again, and says nothing.
        SilentReacquire = "silent-reacquire",
        /// B12: validity is counted from the receipt of the reply, not from the sending.
        ValidityFromReply = "validity-from-reply",
        /// B13: a lease that can't be renewed is declared lost after two times to live.
        LateLoss = "late-loss",
        /// B14: a renewal that fails is only logged.
        RenewalLogged = "renewal-logged",
        /// B15: the drift margin is added to the validity instead of subtracted.
        MarginAdded = "margin-added",
        /// B16: nothing checks what is left of a grant's validity when it arrives.
        ValidityUnchecked = "validity-unchecked",
        /// B17: the time that a request took is measured on the wall clock.
        WallClock = "wall-clock",
        /// B20: the token is read by a GET of the counter, after the acquire.
        TokenByGet = "token-by-get",
        /// Redlock as published: each node counts for itself, the largest count of the majority is the token. So are the
        /// other mistakes that Redlock can have.
        LargestCount = "largest-count",
        /// B22: the counter is deleted with the lock.
        CounterDeleted = "counter-deleted",
        /// B33: the resource keeps the highest token in memory, and forgets it when it restarts.
        ForgetsOnRestart = "forgets-on-restart",
        /// B34: the resource checks, then writes, without one transaction.
        CheckThenWrite = "check-then-write",
        /// The resource takes a token that is not below the highest, whoever sends it.
        AcceptsEqual = "accepts-equal",
        /// The resource takes a conditional write whatever version it names.
        IgnoresVersion = "ignores-version",
    }
}

impl Mutant {
    /// Whether a lock on this system can have the mistake; a resource can have its own beside any lock.
    pub fn applies_to(self, system: System) -> bool {
        match system {
            _ if self.is_of_resource() => true,
            System::Redis => self != Self::LargestCount,
            System::Redlock => matches!(self, Self::LargestCount | Self::ValidityFromReply | Self::WallClock),
            _ => false,
        }
    }

    /// Whether the mistake is the resource's; else it is the lock's.
    pub const fn is_of_resource(self) -> bool {
        matches!(
            self,
            Self::ForgetsOnRestart | Self::CheckThenWrite | Self::AcceptsEqual | Self::IgnoresVersion
        )
    }
}
