//! The museum: locks and resources that each make one mistake of a real library. The simulator must convict
//! each of them.
//!
//! [`Mutant`] names them, one row each; [`run_with`] runs a schedule with one, [`Museum`] is the laboratory
//! with one. Each mistake has a file of its own, on top of a correct lock (`lock.rs`) or resource
//! (`store.rs`). The museum uses only what is open to every user of the crate: `sim/tests/museum_outside.rs`
//! compiles these files outside of the crate.

mod accepts_equal;
mod blind_del;
mod check_then_write;
mod counter_deleted;
mod exhibit;
mod forgets_on_restart;
mod ignores_version;
mod late_loss;
mod lock;
mod margin_added;
mod no_cleanup;
mod plain_redlock;
mod reacquire;
mod renewal_logged;
mod setnx;
mod store;
mod subject;
mod token_by_get;
mod unchecked;
mod validity_from_reply;
mod wall_clock;

pub use subject::{Museum, load, run, run_with};

use accepts_equal::AcceptsEqual;
use blind_del::BlindDel;
use check_then_write::CheckThenWrite;
use counter_deleted::CounterDeleted;
use exhibit::Exhibit;
use forgets_on_restart::ForgetsOnRestart;
use ignores_version::IgnoresVersion;
use late_loss::LateLoss;
use lock::on_redis;
use margin_added::MarginAdded;
use no_cleanup::NoCleanup;
use plain_redlock::{Flaw, on_redlock};
use reacquire::SilentReacquire;
use renewal_logged::RenewalLogged;
use setnx::SetnxThenPexpire;
use store::resource;
use token_by_get::TokenByGet;
use unchecked::ValidityUnchecked;
use validity_from_reply::ValidityFromReply;
use wall_clock::WallClock;

/// Declares the mutants, each with its name in schedule files and its exhibit.
macro_rules! mutants {
    ($($(#[$meta:meta])* $variant:ident = $name:literal => $exhibit:expr,)+) => {
        /// One mistake. The numbers refer to the project's list of bugs in real libraries.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mutant { $($(#[$meta])* $variant,)+ }

        impl Mutant {
            /// All mutants, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns its name in schedule files.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            fn exhibit(self) -> Exhibit {
                match self { $(Self::$variant => $exhibit,)+ }
            }
        }
    };
}

mutants! {
    /// B01: SETNX, then PEXPIRE. A crash between the two leaves a key that never expires.
    SetnxThenPexpire = "setnx-then-pexpire" => Exhibit::lock(on_redis::<SetnxThenPexpire>),
    /// B02: a release is a bare DEL, a renewal a bare SET.
    BlindDel = "blind-del" => Exhibit::lock(on_redis::<BlindDel>),
    /// B04: a lost answer is read as "not acquired", and nothing is cleaned up.
    NoCleanup = "no-cleanup" => Exhibit::lock(on_redis::<NoCleanup>),
    /// B10: a renewal that finds the lease gone acquires it again without a report.
    SilentReacquire = "silent-reacquire" => Exhibit::lock(on_redis::<SilentReacquire>),
    /// B12: validity is counted from the receipt of the reply, not from the sending of the request.
    ValidityFromReply = "validity-from-reply" => Exhibit::lock(on_redis::<ValidityFromReply>)
        .and_redlock(|place| on_redlock(place, Flaw::ValidityFromReply)),
    /// B13: a lease that can't be renewed is declared lost two TTLs after its last renewal.
    LateLoss = "late-loss" => Exhibit::lock(on_redis::<LateLoss>),
    /// B14: a renewal that fails is only logged.
    RenewalLogged = "renewal-logged" => Exhibit::lock(on_redis::<RenewalLogged>),
    /// B15: the drift margin is added to the validity instead of subtracted.
    MarginAdded = "margin-added" => Exhibit::lock(on_redis::<MarginAdded>),
    /// B16: a grant is not checked for its remaining validity when it arrives.
    ValidityUnchecked = "validity-unchecked" => Exhibit::lock(on_redis::<ValidityUnchecked>),
    /// B17: the duration of a request is measured on the wall clock.
    WallClock = "wall-clock" => Exhibit::lock(on_redis::<WallClock>)
        .and_redlock(|place| on_redlock(place, Flaw::WallClock)),
    /// B20: the token is read by a GET of the counter, after the acquire.
    TokenByGet = "token-by-get" => Exhibit::lock(on_redis::<TokenByGet>),
    /// Redlock as published: each node has its own counter, and the largest count of the majority is the
    /// token. The other mutants of Redlock do the same.
    LargestCount = "largest-count" => Exhibit::redlock(|place| on_redlock(place, Flaw::LargestCount)),
    /// B22: a release deletes the counter with the lock.
    CounterDeleted = "counter-deleted" => Exhibit::lock(on_redis::<CounterDeleted>),
    /// B33: the resource keeps the highest token in memory only, and forgets it when it restarts.
    ForgetsOnRestart = "forgets-on-restart" => Exhibit::resource(resource::<ForgetsOnRestart>),
    /// B34: the resource checks and then writes, outside a transaction.
    CheckThenWrite = "check-then-write" => Exhibit::resource(resource::<CheckThenWrite>),
    /// The resource accepts a token equal to the highest one, even from another owner.
    AcceptsEqual = "accepts-equal" => Exhibit::resource(resource::<AcceptsEqual>),
    /// The resource accepts a conditional write with any version.
    IgnoresVersion = "ignores-version" => Exhibit::resource(resource::<IgnoresVersion>),
}

impl Mutant {
    /// Returns the mutant with this name in schedule files.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mutant| mutant.name() == name)
    }
}

impl std::str::FromStr for Mutant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.iter().map(|mutant| mutant.name()).collect::<Vec<_>>().join(", ");
        Self::named(name).ok_or_else(|| format!("unknown mutant `{name}`: known are {}", known()))
    }
}

impl std::fmt::Display for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
