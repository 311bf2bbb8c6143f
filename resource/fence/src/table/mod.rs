//! Statements for the user's own tables, which need no table of this crate: a fence column, a version column,
//! and rows that are only inserted.

mod dialect;
mod log;
mod versioned;

use dlock::FencingToken;

use self::dialect::Dialect;
pub use self::log::TokenLog;
pub use self::versioned::VersionedTable;
use crate::rule::{Mark, Position, Refusal, judge};

/// A number beyond a bigint, the largest integer of PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {what} {number} is too large for a column of type bigint: count up from 1")]
pub struct TooLarge {
    /// The fencing token, the sequence number or the tick.
    pub what: &'static str,
    /// Its value.
    pub number: u64,
}

/// Returns the token as a parameter of type bigint.
///
/// # Errors
///
/// [`TooLarge`] above `i64::MAX`: no conversion may wrap or saturate, or two tokens would be one.
pub fn bigint(token: FencingToken) -> Result<i64, TooLarge> {
    let number = token.as_u64();
    i64::try_from(number).map_err(|_| TooLarge { what: "fencing token", number })
}

/// The reason why the statement of a [`FencedTable`] wrote no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotApplied {
    /// The fence of the row is not below the token: a newer holder has written it, or this grant itself, if
    /// both tokens are equal. Stop, or answer 409.
    #[error("the row has seen token {}; stop, or answer 409", .0.seen().map_or(0, |token| token.as_u64()))]
    Refused(Refusal),
    /// There was no such row. Insert it first.
    #[error("there was no such row; insert it first")]
    Missing,
}

/// A table of yours with a column for the fence, `bigint NOT NULL DEFAULT 0`, on MySQL `bigint unsigned NOT
/// NULL DEFAULT 0`. A single statement then checks the token and writes the row: enough if a write concerns
/// one row, needs no audit row and is not retried. Each token may write a row once. For more than that use
/// `check`.
///
/// # Example
///
/// ```
/// use fence::{FencedTable, NotApplied, Refusal, bigint};
///
/// let reports = FencedTable::new("reports", "id", "fence");
/// assert_eq!(
///     reports.update(&["body"]),
///     r#"UPDATE "reports" SET "fence" = $2, "body" = $3 WHERE "id" = $1 AND "fence" < $2"#
/// );
/// // Parameters: the id, `bigint(token)?` and the body. If the client returns 0 rows, ask for the fence.
/// assert_eq!(reports.find(), r#"SELECT "fence" FROM "reports" WHERE "id" = $1"#);
/// let (seen, got) = ("34".parse()?, "33".parse()?);
/// assert_eq!(FencedTable::refusal(got, Some(34)), NotApplied::Refused(Refusal::Stale { seen, got }));
/// assert_eq!(FencedTable::refusal(got, None), NotApplied::Missing);
/// assert!(bigint("18446744073709551615".parse()?).is_err());
///
/// // On MySQL and MariaDB the parameters are the token, the body, the id, and the token again.
/// assert_eq!(
///     reports.mysql().update(&["body"]),
///     "UPDATE `reports` SET `fence` = ?, `body` = ? WHERE `id` = ? AND `fence` < ?"
/// );
/// # Ok::<(), dlock::TokenError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FencedTable<'a> {
    table: &'a str,
    key: &'a str,
    fence: &'a str,
    dialect: Dialect,
}

impl<'a> FencedTable<'a> {
    /// Names the table, the column of its primary key, and the column of the fence, for PostgreSQL.
    pub const fn new(table: &'a str, key: &'a str, fence: &'a str) -> Self {
        Self { table, key, fence, dialect: Dialect::Postgres }
    }

    /// Returns the same table with the statements of MySQL and MariaDB, whose parameters are question marks.
    #[must_use]
    pub const fn mysql(self) -> Self {
        Self { dialect: Dialect::MySql, ..self }
    }

    /// Returns the statement that writes `columns` of a row unless its fence is at the token or above. Names
    /// are quoted. Its parameters on PostgreSQL: `$1` the key, `$2` the token, then the columns; on MySQL in
    /// this order: the token, the columns, the key, the token.
    pub fn update(&self, columns: &[&str]) -> String {
        let (table, key, fence) = self.names();
        let set = self.dialect.assignments(columns);
        match self.dialect {
            Dialect::Postgres => {
                format!("UPDATE {table} SET {fence} = $2{set} WHERE {key} = $1 AND {fence} < $2")
            }
            Dialect::MySql => format!("UPDATE {table} SET {fence} = ?{set} WHERE {key} = ? AND {fence} < ?"),
        }
    }

    /// Returns the query for the fence of a row; its parameter is the key. It is needed only if no row was
    /// written.
    pub fn find(&self) -> String {
        let (table, key, fence) = self.names();
        format!("SELECT {fence} FROM {table} WHERE {key} = {}", self.dialect.parameter(1))
    }

    /// Returns the reason why no row was written, from the fence that [`FencedTable::find`] has found; `None`
    /// if it found no row.
    pub fn refusal(token: FencingToken, fence: Option<i64>) -> NotApplied {
        Self::refusal_unsigned(token, fence.and_then(|fence| u64::try_from(fence).ok()))
    }

    /// Does the same for an unsigned column, such as `bigint unsigned` of MySQL.
    pub fn refusal_unsigned(token: FencingToken, fence: Option<u64>) -> NotApplied {
        let seen = fence.and_then(FencingToken::new);
        let seen = seen.map(|seen| Mark { position: Position::write(seen, None), owner: None });
        match judge(seen.as_ref(), Position::write(token, None), None) {
            Err(refusal) => NotApplied::Refused(refusal),
            // A fence below the token: the row was inserted after the statement.
            Ok(()) => NotApplied::Missing,
        }
    }

    /// Returns the quoted names of the table, its key and its fence.
    fn names(&self) -> (String, String, String) {
        let quoted = |name| self.dialect.quoted(name);
        (quoted(self.table), quoted(self.key), quoted(self.fence))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        let table = FencedTable::new("a\"b", "Id", "fence");
        let statement = r#"UPDATE "a""b" SET "fence" = $2 WHERE "Id" = $1 AND "fence" < $2"#;
        assert_eq!(table.update(&[]), statement);
        let table = FencedTable::new("a`b", "Id", "fence").mysql();
        assert_eq!(table.update(&[]), "UPDATE `a``b` SET `fence` = ? WHERE `Id` = ? AND `fence` < ?");
        assert_eq!(table.find(), "SELECT `fence` FROM `a``b` WHERE `Id` = ?");
    }

    #[test]
    fn a_stale_row_is_told_from_a_missing_one() {
        let token = |number| FencingToken::new(number).unwrap();
        let refused = |seen, got| NotApplied::Refused(Refusal::Stale { seen: token(seen), got: token(got) });
        assert_eq!(FencedTable::refusal(token(33), Some(34)), refused(34, 33));
        assert_eq!(FencedTable::refusal(token(34), Some(34)), refused(34, 34));
        // Inserted after the statement, with the default or with an older token.
        assert_eq!(FencedTable::refusal(token(34), Some(0)), NotApplied::Missing);
        assert_eq!(FencedTable::refusal(token(34), Some(33)), NotApplied::Missing);
        assert_eq!(FencedTable::refusal(token(34), None), NotApplied::Missing);
    }
}
