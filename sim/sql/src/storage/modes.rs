//! The modes of open transactions.

use super::store::Store;
use super::transaction::Isolation;
use crate::api::SessionId;
use crate::error::SqlError;
use crate::settings::Settings;
use crate::syntax::utility::Modes;

/// Returns the modes that a setting of the transaction stands for, and the value as it is kept; `None` if the
/// setting is another one.
pub(crate) fn of_setting(name: &str, value: Option<&str>) -> Result<Option<(Modes, String)>, SqlError> {
    let name = name.to_lowercase();
    if !matches!(name.as_str(), "transaction_isolation" | "transaction_read_only") {
        return Ok(None);
    }
    let mut read = Settings::default();
    read.set(&name, value)?;
    let value = read.get(&name).unwrap_or_default();
    let modes = if name == "transaction_isolation" {
        let found = Isolation::ALL.iter().find(|(_, level)| *level == value);
        Modes { isolation: found.map(|(level, _)| *level), is_read_only: None }
    } else {
        Modes { isolation: None, is_read_only: Some(value == "on") }
    };
    Ok(Some((modes, value)))
}

impl Store {
    /// Returns the modes of the open transaction.
    pub(crate) fn modes(&self, session: SessionId) -> Option<Modes> {
        self.transactions.get(&session).map(|transaction| Modes {
            isolation: Some(transaction.isolation),
            is_read_only: Some(transaction.is_read_only),
        })
    }

    /// Returns a setting of the open transaction.
    pub(crate) fn transaction_setting(&self, session: SessionId, name: &str) -> Option<String> {
        let transaction = self.transactions.get(&session)?;
        match name.to_lowercase().as_str() {
            "transaction_isolation" => Some(transaction.isolation.name().to_owned()),
            "transaction_read_only" => Some(if transaction.is_read_only { "on" } else { "off" }.to_owned()),
            _ => None,
        }
    }

    /// Sets the modes of the open transaction.
    pub(crate) fn set_modes(&mut self, session: SessionId, modes: Modes) -> Result<(), SqlError> {
        let Some(transaction) = self.transactions.get_mut(&session) else { return Ok(()) };
        let has_run = transaction.command > 0 || transaction.snapshot.is_some();
        if let Some(isolation) = modes.isolation {
            if has_run && isolation != transaction.isolation {
                let text = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(SqlError::new("25001", text));
            }
            transaction.isolation = isolation;
        }
        if let Some(is_read_only) = modes.is_read_only {
            if has_run && transaction.is_read_only && !is_read_only {
                let text = "transaction read-write mode must be set before any query";
                return Err(SqlError::new("25001", text));
            }
            transaction.is_read_only = is_read_only;
        }
        Ok(())
    }
}
