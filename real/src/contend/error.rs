//! The reasons why a load can't be offered.

use std::io;

use dlock::{KeyError, OptionsError};
use hdrhistogram::RecordError;
use resource::cron::FireError;
use resource::fence::cron::EveryError;
use resource::jobs::WorkError;

use crate::primitive::Primitive;
use crate::systems::SystemError;

/// Why a load can't be offered.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A number is zero, so that nothing would happen.
    #[error("{0} is zero: set it above zero")]
    Zero(&'static str),
    /// An attempt locks more keys than there are.
    #[error(
        "an attempt on --primitive several:{wanted} locks {wanted} keys: set --keys to at least {wanted}"
    )]
    FewKeys {
        /// The keys of an attempt.
        wanted: u32,
    },
    /// The system does not have the primitive.
    #[error("--primitive: {0}")]
    Primitive(String),
    /// The resource of the load can't listen.
    #[error("the resource that keeps results, ticks and jobs: {0}")]
    Resource(#[source] io::Error),
    /// The ticks of a cron are too close or too far.
    #[error(transparent)]
    Ticks(#[from] EveryError),
    /// A lock's name can't name a resource.
    #[error(transparent)]
    Fire(#[from] FireError),
    /// A queue's name can't name a resource.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The primitive has no acquire without a token.
    #[error("--fence off: {0} always demands fencing tokens: leave it out, or give another --primitive")]
    Fenced(Primitive),
    /// The rate is no number of attempts.
    #[error("--rate {0} is no number of attempts a second: give one above zero, such as 100")]
    Rate(f64),
    /// The attempts are too many to record.
    #[error("{0} attempts are too many for one run: lower --rate or --for")]
    TooMany(f64),
    /// The prefix is no valid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The TTL is invalid.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The servers are invalid.
    #[error(transparent)]
    System(#[from] SystemError),
    /// The PostgreSQL failed.
    #[error("PostgreSQL failed: {0}; check that it is running and that this user may create tables")]
    Postgres(String),
    /// There is no PostgreSQL, or more than one.
    #[error(
        "without a lock, exactly one PostgreSQL is needed: give its address, \
         postgresql://user@host:port/database"
    )]
    NoPostgres,
    /// A contender panicked: a defect of this program.
    #[error("a contender panicked: {0}")]
    Panicked(#[from] tokio::task::JoinError),
    /// A latency is out of the histogram's range.
    #[error("a latency can't be recorded: {0}")]
    Histogram(#[from] RecordError),
}
