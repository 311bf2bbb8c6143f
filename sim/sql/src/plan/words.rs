//! The operations of expressions and queries that have no parts.

use crate::storage::lock::RowMode;
use crate::storage::rows::Policy;
use crate::value::types::Type;

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Compare {
    pub(crate) fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::Ne => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::Le => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::Ge => order.is_ge(),
        }
    }
}

/// Functions that need the session, the time or the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionFunction {
    Now,
    StatementTimestamp,
    ClockTimestamp,
    CurrentDate,
    LocalTimestamp,
    NextVal,
    CurrVal,
    LastVal,
    SetVal,
    BackendPid,
    CurrentSetting,
    SetConfig,
    TransactionNumber,
    Sleep,
    Notify,
    CurrentUser,
    CurrentDatabase,
    CurrentSchema,
    ToRegclass,
    /// `lock`, not to wait, shared, for the transaction.
    AdvisoryLock {
        is_try: bool,
        is_shared: bool,
        is_for_transaction: bool,
    },
    AdvisoryUnlock {
        is_shared: bool,
    },
    AdvisoryUnlockAll,
}

impl SessionFunction {
    /// Returns whether a call does something, or may return another value for the next row: it runs as often
    /// as the statement says.
    pub(crate) fn is_volatile(self) -> bool {
        match self {
            Self::ClockTimestamp
            | Self::NextVal
            | Self::CurrVal
            | Self::LastVal
            | Self::SetVal
            | Self::SetConfig
            | Self::Sleep
            | Self::Notify
            | Self::AdvisoryLock { .. }
            | Self::AdvisoryUnlock { .. }
            | Self::AdvisoryUnlockAll => true,
            Self::Now
            | Self::StatementTimestamp
            | Self::CurrentDate
            | Self::LocalTimestamp
            | Self::BackendPid
            | Self::CurrentSetting
            | Self::TransactionNumber
            | Self::CurrentUser
            | Self::CurrentDatabase
            | Self::CurrentSchema
            | Self::ToRegclass => false,
        }
    }
}

/// What a subquery returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubqueryKind {
    Scalar,
    Exists,
    Array,
    /// Compares with any or all of its rows.
    Rows {
        compare: Compare,
        all: bool,
    },
}

/// The aggregates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    CountRows,
    Count,
    Sum(Type),
    Average(Type),
    Min,
    Max,
    BoolAnd,
    BoolOr,
    StringAgg,
    ArrayAgg,
    JsonbAgg(Type),
    JsonbObjectAgg(Type),
}

/// The functions that return sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetFunction {
    GenerateSeries,
    Unnest,
    JsonbArrayElements,
    JsonbArrayElementsText,
    JsonbEach,
    JsonbObjectKeys,
}

/// `FOR UPDATE` and the like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockSpec {
    /// The place of the item in `From::items`.
    pub(crate) item: usize,
    pub(crate) mode: RowMode,
    pub(crate) policy: Policy,
}
