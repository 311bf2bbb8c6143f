//! The write-ahead log: what each commit has changed.

use serde::{Deserialize, Serialize};

/// One record: a commit, or values of sequences taken ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    changes: Vec<String>,
}

impl Record {
    /// Returns the bytes of the record, without a length before them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a record; `None` if the bytes are none.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}
