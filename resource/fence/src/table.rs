//! One statement that checks and writes: a fence column in the user's own table.

use dlock::FencingToken;

/// A number beyond a bigint, the largest integer of PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {what} {number} is too large for a column of type bigint: count up from 1")]
pub struct TooLarge {
    /// The fencing token or the sequence number.
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

/// No row was written: its fence is not below the token, so a newer holder, or this one, has written it; or
/// the row is missing. Stop, or answer 409.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no row was written: its fence is not below this token, or there is no such row; stop, or answer 409"
)]
pub struct NotApplied;

/// A table of yours with a column for the fence, `bigint NOT NULL DEFAULT 0`. A single statement then checks
/// the token and writes the row: enough if a write concerns one row, needs no audit row and is not retried.
/// Each token may write a row once. For more than that use `check`.
///
/// # Example
///
/// ```
/// use fence::{FencedTable, NotApplied, bigint};
///
/// let reports = FencedTable::new("reports", "id", "fence");
/// assert_eq!(
///     reports.update(&["body"]),
///     r#"UPDATE "reports" SET "fence" = $2, "body" = $3 WHERE "id" = $1 AND "fence" < $2"#
/// );
/// // Parameters: the id, `bigint(token)?` and the body. The client returns the number of rows.
/// assert_eq!(FencedTable::applied(1), Ok(()));
/// assert_eq!(FencedTable::applied(0), Err(NotApplied));
/// assert!(bigint("18446744073709551615".parse()?).is_err());
/// # Ok::<(), dlock::TokenError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct FencedTable<'a> {
    table: &'a str,
    key: &'a str,
    fence: &'a str,
}

impl<'a> FencedTable<'a> {
    /// Names the table, the column of its primary key, and the column of the fence.
    pub const fn new(table: &'a str, key: &'a str, fence: &'a str) -> Self {
        Self { table, key, fence }
    }

    /// Returns the statement that writes `columns` of a row unless its fence is at the token or above. Its
    /// parameters: `$1` the key, `$2` the token, then the columns. Names are quoted.
    pub fn update(&self, columns: &[&str]) -> String {
        let set = columns.iter().zip(3..).map(|(column, n)| format!(", {} = ${n}", quoted(column)));
        let (table, key, fence) = (quoted(self.table), quoted(self.key), quoted(self.fence));
        let set: String = set.collect();
        format!("UPDATE {table} SET {fence} = $2{set} WHERE {key} = $1 AND {fence} < $2")
    }

    /// Judges the number of rows that the client returned for the statement.
    ///
    /// # Errors
    ///
    /// [`NotApplied`] if no row was written.
    pub const fn applied(rows: u64) -> Result<(), NotApplied> {
        if rows == 0 { Err(NotApplied) } else { Ok(()) }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        let table = FencedTable::new("a\"b", "Id", "fence");
        let statement = r#"UPDATE "a""b" SET "fence" = $2 WHERE "Id" = $1 AND "fence" < $2"#;
        assert_eq!(table.update(&[]), statement);
    }
}
