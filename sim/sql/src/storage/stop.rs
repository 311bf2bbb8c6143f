//! Why a statement does not go on.

use super::lock::WaitFor;
use crate::api::SessionId;
use crate::error::SqlError;

/// An error, or a wait after which the same statement goes on.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    Error(SqlError),
    Wait {
        on: Vec<SessionId>,
        what: WaitFor,
    },
    /// Microseconds since 1970.
    Sleep {
        until: i64,
    },
}

impl From<SqlError> for Stop {
    fn from(error: SqlError) -> Self {
        Self::Error(error)
    }
}
