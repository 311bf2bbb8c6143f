//! Creates the tables of the check.

use std::future::Future;

/// The step that creates the tables. A released step is never changed: add another.
macro_rules! step_1 {
    () => {
        include_str!("../../migrations/001-fence.sql")
    };
}

/// The migrations in their order, each with its name, for programs with a migration tool of their own. Each
/// may run again.
pub const MIGRATIONS: [(&str, &str); 1] = [("001-fence", step_1!())];

/// All steps as one script. A server runs a script in one transaction, so the lock, whose number no other
/// program uses, is held to its end: `CREATE TABLE IF NOT EXISTS` alone fails if two programs run it at once.
const SCRIPT: &str = concat!("SELECT pg_advisory_xact_lock(110352458277731);\n", step_1!());

/// A connection that can run a script: `&tokio_postgres::Client`, `&mut sqlx::PgConnection` or
/// `&sqlx::PgPool`.
pub trait Connection: Send {
    /// The client's error.
    type Error;

    /// Runs a script of several statements in one transaction.
    #[doc(hidden)]
    fn run_script(self, script: &'static str) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Creates the tables `fence_position` and `fence_audit` in the first schema of the search path, if they are
/// missing. Several programs may run it at once, at each start.
///
/// # Errors
///
/// The client's error: the connection failed, or its user may not create tables.
pub async fn migrate<C: Connection>(connection: C) -> Result<(), C::Error> {
    connection.run_script(SCRIPT).await
}
