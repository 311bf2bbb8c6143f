//! Row versions, indexes, sequences, locks and transactions.

pub(crate) mod catalog;
pub(crate) mod ids;
pub(crate) mod lock;
pub(crate) mod modes;
pub(crate) mod rows;
pub(crate) mod sequence;
pub(crate) mod serial;
pub(crate) mod stop;
pub(crate) mod store;
pub(crate) mod table;
pub(crate) mod transaction;
