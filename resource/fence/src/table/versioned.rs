//! A version column, with a limited number of tries: optimistic concurrency control.
//!
//! Source: Kung and Robinson, "On Optimistic Methods for Concurrency Control" (1981).

use super::Dialect;

/// A table of yours with a column that counts the writes of a row, `bigint NOT NULL DEFAULT 0`. A write names
/// the version that it has read, and is not applied if another one came in between: then read again.
///
/// Take it if the new value follows from the old one and needs no work outside of the database: it needs no
/// lock at all. Work with side effects would be done again in each try. Each try that fails means that
/// another writer got through, so a limited number of tries is enough, without a pause. On MySQL each try
/// needs a transaction of its own: under REPEATABLE READ one transaction would read the same version again.
///
/// # Example
///
/// ```
/// use fence::VersionedTable;
///
/// let counters = VersionedTable::new("counters", "id", "version");
/// assert_eq!(counters.read(&["count"]), r#"SELECT "version", "count" FROM "counters" WHERE "id" = $1"#);
/// // Parameters: the id, the version that was read, and the new count. 0 rows: another writer was faster.
/// assert_eq!(
///     counters.update(&["count"]),
///     r#"UPDATE "counters" SET "version" = "version" + 1, "count" = $3 WHERE "id" = $1 AND "version" = $2"#
/// );
/// // On MySQL and MariaDB the parameters are the new count, the id, and the version that was read.
/// assert_eq!(
///     counters.mysql().update(&["count"]),
///     "UPDATE `counters` SET `version` = `version` + 1, `count` = ? WHERE `id` = ? AND `version` = ?"
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct VersionedTable<'a> {
    table: &'a str,
    key: &'a str,
    version: &'a str,
    dialect: Dialect,
}

impl<'a> VersionedTable<'a> {
    /// Names the table, the column of its primary key, and the column of the version, for PostgreSQL.
    pub const fn new(table: &'a str, key: &'a str, version: &'a str) -> Self {
        Self { table, key, version, dialect: Dialect::Postgres }
    }

    /// Returns the same table with the statements of MySQL and MariaDB, whose parameters are question marks.
    #[must_use]
    pub const fn mysql(self) -> Self {
        Self { dialect: Dialect::MySql, ..self }
    }

    /// Returns the query for the version of a row and `columns`; its parameter is the key.
    pub fn read(&self, columns: &[&str]) -> String {
        let (table, key, version) = self.names();
        let columns = self.dialect.columns(columns);
        format!("SELECT {version}{columns} FROM {table} WHERE {key} = {}", self.dialect.parameter(1))
    }

    /// Returns the statement that writes `columns` of a row unless its version has changed. Names are quoted.
    /// Its parameters on PostgreSQL: `$1` the key, `$2` the version that was read, then the columns; on MySQL
    /// in this order: the columns, the key, the version.
    pub fn update(&self, columns: &[&str]) -> String {
        let (table, key, version) = self.names();
        let set = self.dialect.assignments(columns);
        let (first, second) = (self.dialect.parameter(1), self.dialect.parameter(2));
        format!(
            "UPDATE {table} SET {version} = {version} + 1{set} WHERE {key} = {first} AND {version} = {second}"
        )
    }

    /// Returns the quoted names of the table, its key and its version.
    fn names(&self) -> (String, String, String) {
        let quoted = |name| self.dialect.quoted(name);
        (quoted(self.table), quoted(self.key), quoted(self.version))
    }
}
