//! The write-ahead log: what each commit has changed.

use serde::{Deserialize, Serialize};

/// One record: a commit, or values of sequences taken ahead.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub(crate) changes: Vec<Change>,
}

/// A table or a sequence, by schema and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Relation {
    pub(crate) schema: String,
    pub(crate) name: String,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Change {
    /// A statement that changes the catalog; `unix_micros` is its time.
    Ddl { sql: String, search_path: String, unix_micros: i64 },
    /// A version of a row, with the texts of its values.
    Insert { table: Relation, version: u64, row: u64, values: Vec<Option<String>> },
    /// The end of a version; `next` replaces it.
    Delete { table: Relation, version: u64, next: Option<u64> },
    /// The last value that the sequence may have returned.
    Sequence { name: Relation, last: i64, is_called: bool },
}

impl Record {
    /// Returns the rows that the commit has stored in the table `name`, of any schema, each as the texts of
    /// its values: inserted rows, and updated ones as they are now.
    pub fn stored<'r>(&'r self, name: &'r str) -> impl Iterator<Item = &'r [Option<String>]> {
        self.changes.iter().filter_map(move |change| match change {
            Change::Insert { table, values, .. } if table.name == name => Some(values.as_slice()),
            _ => None,
        })
    }

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
