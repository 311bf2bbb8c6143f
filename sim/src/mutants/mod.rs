//! Mutants: locks and resources with one mistake that real ones made. The simulator must convict each of them.
//!
//! [`Mutant`] names them; [`crate::run::run_with`] runs a schedule with one. A lock's mistakes are in a file each, beside the
//! correct backend that does all else (`lock.rs`); a resource's are in `store.rs`.

mod blind_del;
mod counter_deleted;
mod get_then_del;
pub(crate) mod lock;
mod margin_added;
mod no_cleanup;
mod reacquire;
mod setnx;
pub(crate) mod store;
mod token_by_get;
mod validity_from_reply;
mod wall_clock;
mod wire;

pub use get_then_del::GetThenDel;

/// One mistake. The numbers are those of the project's list of bugs that real libraries had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutant {
    /// B01: SETNX, then PEXPIRE. A crash between the two leaves a key for ever.
    SetnxThenPexpire,
    /// B02: a release that is a bare DEL, a renewal that is a bare SET.
    BlindDel,
    /// B04: an answer that is lost is read as "not acquired", and nothing is cleaned up.
    NoCleanup,
    /// B10: a renewal of a lease that is gone acquires it again, and says nothing.
    SilentReacquire,
    /// B12: validity is counted from the receipt of the reply, not from the sending.
    ValidityFromReply,
    /// B15: the drift margin is added to the validity instead of subtracted.
    MarginAdded,
    /// B17: the time that a request took is measured on the wall clock.
    WallClock,
    /// B20: the token is read by a GET of the counter, after the acquire.
    TokenByGet,
    /// B22: the counter is deleted with the lock.
    CounterDeleted,
    /// B33: the resource keeps the highest token in memory, and forgets it when it restarts.
    ForgetsOnRestart,
    /// B34: the resource checks, then writes, without one transaction.
    CheckThenWrite,
    /// The resource takes a token that is not below the highest, whoever sends it.
    AcceptsEqual,
    /// The resource takes a conditional write whatever version it names.
    IgnoresVersion,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::SetnxThenPexpire,
        Self::BlindDel,
        Self::NoCleanup,
        Self::SilentReacquire,
        Self::ValidityFromReply,
        Self::MarginAdded,
        Self::WallClock,
        Self::TokenByGet,
        Self::CounterDeleted,
        Self::ForgetsOnRestart,
        Self::CheckThenWrite,
        Self::AcceptsEqual,
        Self::IgnoresVersion,
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SetnxThenPexpire => "setnx-then-pexpire",
            Self::BlindDel => "blind-del",
            Self::NoCleanup => "no-cleanup",
            Self::SilentReacquire => "silent-reacquire",
            Self::ValidityFromReply => "validity-from-reply",
            Self::MarginAdded => "margin-added",
            Self::WallClock => "wall-clock",
            Self::TokenByGet => "token-by-get",
            Self::CounterDeleted => "counter-deleted",
            Self::ForgetsOnRestart => "forgets-on-restart",
            Self::CheckThenWrite => "check-then-write",
            Self::AcceptsEqual => "accepts-equal",
            Self::IgnoresVersion => "ignores-version",
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

impl std::fmt::Display for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
