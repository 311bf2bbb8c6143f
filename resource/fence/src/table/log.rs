//! Rows that are only inserted, each under a token of its own.

use super::Dialect;

/// A table of yours to which holders only add rows, with the primary key (key, token): a log, or an outbox.
/// The unique token makes a retry harmless, and nothing is overwritten.
///
/// A late row is *not* refused: readers take the row with the highest token, and may have acted on an older
/// one. A second row with the token of the first is dropped, also if it says something else.
///
/// # Example
///
/// ```
/// use fence::TokenLog;
///
/// let emails = TokenLog::new("emails", "customer", "token");
/// // Parameters: the customer, `bigint(token)?` and the body. 0 rows: the row of this token exists.
/// assert_eq!(
///     emails.insert(&["body"]),
///     r#"INSERT INTO "emails" ("customer", "token", "body") VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"#
/// );
/// assert_eq!(
///     emails.newest(&["body"]),
///     r#"SELECT "token", "body" FROM "emails" WHERE "customer" = $1 ORDER BY "token" DESC LIMIT 1"#
/// );
/// // MySQL and MariaDB answer an insert whose row exists by the error 1062, which ends no transaction.
/// assert_eq!(
///     emails.mysql().insert(&["body"]),
///     "INSERT INTO `emails` (`customer`, `token`, `body`) VALUES (?, ?, ?)"
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokenLog<'a> {
    table: &'a str,
    key: &'a str,
    token: &'a str,
    dialect: Dialect,
}

impl<'a> TokenLog<'a> {
    /// Names the table and the two columns of its primary key, for PostgreSQL.
    pub const fn new(table: &'a str, key: &'a str, token: &'a str) -> Self {
        Self { table, key, token, dialect: Dialect::Postgres }
    }

    /// Returns the same table with the statements of MySQL and MariaDB, whose parameters are question marks.
    #[must_use]
    pub const fn mysql(self) -> Self {
        Self { dialect: Dialect::MySql, ..self }
    }

    /// Returns the statement that adds a row with `columns`. Its parameters: the key, the token, then the
    /// columns. Names are quoted.
    ///
    /// If the row exists, PostgreSQL inserts 0 rows. MySQL reports the error 1062: `INSERT IGNORE` would hide
    /// other errors, too, and sqlx can't tell 0 rows there from 1.
    pub fn insert(&self, columns: &[&str]) -> String {
        let (table, key, token) = self.names();
        let more = self.dialect.columns(columns);
        let values: Vec<_> = (1..columns.len() + 3).map(|number| self.dialect.parameter(number)).collect();
        let values = values.join(", ");
        let or_nothing = match self.dialect {
            Dialect::Postgres => " ON CONFLICT DO NOTHING",
            Dialect::MySql => "",
        };
        format!("INSERT INTO {table} ({key}, {token}{more}) VALUES ({values}){or_nothing}")
    }

    /// Returns the query for the token and `columns` of the row with the highest token; its parameter is the
    /// key.
    pub fn newest(&self, columns: &[&str]) -> String {
        let (table, key, token) = self.names();
        let (more, parameter) = (self.dialect.columns(columns), self.dialect.parameter(1));
        format!("SELECT {token}{more} FROM {table} WHERE {key} = {parameter} ORDER BY {token} DESC LIMIT 1")
    }

    /// Returns the quoted names of the table, its key and its token.
    fn names(&self) -> (String, String, String) {
        let quoted = |name| self.dialect.quoted(name);
        (quoted(self.table), quoted(self.key), quoted(self.token))
    }
}
