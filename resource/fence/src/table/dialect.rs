//! The forms of names and parameters in SQL.

/// The database whose statements are made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Dialect {
    Postgres,
    MySql,
}

impl Dialect {
    /// Returns a name in quotes.
    pub(super) fn quoted(self, name: &str) -> String {
        match self {
            Self::Postgres => format!("\"{}\"", name.replace('"', "\"\"")),
            Self::MySql => format!("`{}`", name.replace('`', "``")),
        }
    }

    /// Returns the parameter with this number; MySQL counts by their order.
    pub(super) fn parameter(self, number: usize) -> String {
        match self {
            Self::Postgres => format!("${number}"),
            Self::MySql => "?".to_owned(),
        }
    }

    /// Returns further assignments of an `UPDATE`, whose parameters are numbered from 3.
    pub(super) fn assignments(self, columns: &[&str]) -> String {
        let assignment =
            |(column, n): (&&str, usize)| format!(", {} = {}", self.quoted(column), self.parameter(n));
        columns.iter().zip(3..).map(assignment).collect()
    }

    /// Returns further columns of a list.
    pub(super) fn columns(self, columns: &[&str]) -> String {
        columns.iter().map(|column| format!(", {}", self.quoted(column))).collect()
    }
}
