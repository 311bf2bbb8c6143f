//! The clients on which the check of the fence is tested, each as its users write it.
#![allow(dead_code, unused_imports, unused_macros, reason = "each program uses a part of it")]

use std::fmt::Debug;
use std::time::Duration;

use fence::{Entry, Receipt, ResourceKey, Retryable, Stop, UserTransaction, check};
use real::servers::{MariaDb, Postgres, ServerError, Stage};
use sqlx::mysql::{MySql, MySqlConnection};
use sqlx::postgres::{PgConnection, Postgres as PgDatabase};
use sqlx::{AssertSqlSafe, Connection, Row};
use tokio_postgres::NoTls;

/// A database server.
pub(crate) trait Server: Sized {
    fn start(stage: &Stage) -> Result<Self, ServerError>;
    fn restart(&mut self) -> Result<(), ServerError>;
    fn address(&self) -> String;
}

/// A connection of a client, which writes to the table `orders`.
pub(crate) trait Client: Sized {
    type Server: Server;
    type Error: Retryable + Debug;
    type Tx<'a>: UserTransaction<Error = Self::Error>
    where
        Self: 'a;

    /// The query for the audit log in words.
    const AUDIT: &str;
    /// The SQLSTATE of a statement after a refusal.
    const CANNOT_WRITE: &str;

    /// Connects to `address`, which may be that of a proxy.
    async fn open(address: &str) -> Self;
    async fn migrate(&mut self) -> Result<(), Self::Error>;
    async fn begin_tx(&mut self) -> Result<Self::Tx<'_>, Self::Error>;
    async fn commit(tx: Self::Tx<'_>) -> Result<(), Self::Error>;
    async fn rollback(tx: Self::Tx<'_>) -> Result<(), Self::Error>;
    /// Writes the order `key`.
    async fn put(tx: &mut Self::Tx<'_>, key: &ResourceKey, token: u64) -> Result<(), Self::Error>;
    /// Returns a number, or zero if there is none.
    async fn number(tx: &mut Self::Tx<'_>, query: &str) -> i64;
    async fn run(&mut self, statements: &str) -> Result<(), Self::Error>;
    async fn numbers(&mut self, query: &str) -> Vec<i64>;
    async fn texts(&mut self, query: &str) -> Vec<String>;
    /// Sets the isolation of the next transactions.
    async fn isolate(&mut self, level: &str);
    fn sqlstate(error: &Self::Error) -> String;

    /// Returns the server's number of this session.
    async fn session(&mut self) -> i64;
    /// Has the server end a session.
    async fn end_session(&mut self, session: i64);
    async fn has_session(&mut self, session: i64) -> bool;
    /// Returns true if a session waits for a lock.
    async fn somebody_waits(&mut self) -> bool;

    /// Writes the order in a transaction that the fence checks first.
    async fn write(&mut self, key: &ResourceKey, entry: Entry) -> Result<Receipt, Stop<Self::Error>> {
        let token = entry.token().as_u64();
        let mut tx = self.begin_tx().await?;
        let receipt = check(&mut tx, key, entry).await?;
        Self::put(&mut tx, key, token).await?;
        Self::commit(tx).await?;
        Ok(receipt)
    }
}

impl Server for Postgres {
    fn start(stage: &Stage) -> Result<Self, ServerError> {
        Self::start(stage)
    }

    fn restart(&mut self) -> Result<(), ServerError> {
        self.restart()
    }

    fn address(&self) -> String {
        self.address()
    }
}

impl Server for MariaDb {
    fn start(stage: &Stage) -> Result<Self, ServerError> {
        Self::start(stage)
    }

    fn restart(&mut self) -> Result<(), ServerError> {
        self.restart()
    }

    fn address(&self) -> String {
        self.address()
    }
}

/// The statements and queries on PostgreSQL.
macro_rules! postgres {
    () => {
        const AUDIT: &str = "SELECT owner_prefix || ' ' || (payload->>'state') FROM fence_audit";
        const CANNOT_WRITE: &str = "25P02";

        async fn isolate(&mut self, level: &str) {
            self.run(&format!("SET default_transaction_isolation TO '{level}'")).await.unwrap();
        }

        async fn session(&mut self) -> i64 {
            self.numbers("SELECT pg_backend_pid()::bigint").await[0]
        }

        async fn end_session(&mut self, session: i64) {
            self.run(&format!("SELECT pg_terminate_backend({session})")).await.unwrap();
        }

        async fn has_session(&mut self, session: i64) -> bool {
            let query = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {session}");
            self.numbers(&query).await != [0]
        }

        async fn somebody_waits(&mut self) -> bool {
            let query = "SELECT count(*) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0";
            self.numbers(query).await != [0]
        }
    };
}

const PUT_POSTGRES: &str =
    "INSERT INTO orders VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET token = excluded.token";
const PUT_MYSQL: &str = "REPLACE INTO orders VALUES (?, ?)";

fn postgres_url(address: &str) -> String {
    format!("postgresql://postgres@{address}/postgres")
}

impl Client for tokio_postgres::Client {
    type Server = Postgres;
    type Error = tokio_postgres::Error;
    type Tx<'a> = tokio_postgres::Transaction<'a>;

    postgres!();

    async fn open(address: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(&postgres_url(address), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    async fn migrate(&mut self) -> Result<(), Self::Error> {
        fence::migrate(&*self).await
    }

    async fn begin_tx(&mut self) -> Result<Self::Tx<'_>, Self::Error> {
        self.transaction().await
    }

    async fn commit(tx: Self::Tx<'_>) -> Result<(), Self::Error> {
        tx.commit().await
    }

    async fn rollback(tx: Self::Tx<'_>) -> Result<(), Self::Error> {
        tx.rollback().await
    }

    async fn put(tx: &mut Self::Tx<'_>, key: &ResourceKey, token: u64) -> Result<(), Self::Error> {
        tx.execute(PUT_POSTGRES, &[&key.as_str(), &token.cast_signed()]).await.map(drop)
    }

    async fn number(tx: &mut Self::Tx<'_>, query: &str) -> i64 {
        tx.query_opt(query, &[]).await.unwrap().map_or(0, |row| row.get(0))
    }

    async fn run(&mut self, statements: &str) -> Result<(), Self::Error> {
        self.batch_execute(statements).await
    }

    async fn numbers(&mut self, query: &str) -> Vec<i64> {
        self.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    async fn texts(&mut self, query: &str) -> Vec<String> {
        self.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }

    fn sqlstate(error: &Self::Error) -> String {
        error.code().map_or_else(String::new, |code| code.code().to_owned())
    }
}

/// The methods on a connection of sqlx.
macro_rules! sqlx_client {
    ($database:ty, $put:expr, $number:expr) => {
        type Error = sqlx::Error;
        type Tx<'a> = sqlx::Transaction<'a, $database>;

        async fn migrate(&mut self) -> Result<(), Self::Error> {
            fence::migrate(&mut *self).await
        }

        async fn begin_tx(&mut self) -> Result<Self::Tx<'_>, Self::Error> {
            Connection::begin(self).await
        }

        async fn commit(tx: Self::Tx<'_>) -> Result<(), Self::Error> {
            tx.commit().await
        }

        async fn rollback(tx: Self::Tx<'_>) -> Result<(), Self::Error> {
            tx.rollback().await
        }

        async fn put(tx: &mut Self::Tx<'_>, key: &ResourceKey, token: u64) -> Result<(), Self::Error> {
            let put = sqlx::query($put).bind(key.as_str()).bind(token.cast_signed());
            put.execute(&mut **tx).await.map(drop)
        }

        async fn number(tx: &mut Self::Tx<'_>, query: &str) -> i64 {
            let query = sqlx::query(AssertSqlSafe(query.to_owned()));
            query.fetch_optional(&mut **tx).await.unwrap().as_ref().map_or(0, $number)
        }

        async fn run(&mut self, statements: &str) -> Result<(), Self::Error> {
            sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(self).await.map(drop)
        }

        async fn numbers(&mut self, query: &str) -> Vec<i64> {
            let query = sqlx::query(AssertSqlSafe(query.to_owned()));
            query.fetch_all(self).await.unwrap().iter().map($number).collect()
        }

        async fn texts(&mut self, query: &str) -> Vec<String> {
            let query = sqlx::query(AssertSqlSafe(query.to_owned()));
            query.fetch_all(self).await.unwrap().iter().map(|row| row.get(0)).collect()
        }

        fn sqlstate(error: &Self::Error) -> String {
            let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
            code.map_or_else(String::new, |code| code.into_owned())
        }
    };
}

impl Client for PgConnection {
    type Server = Postgres;

    postgres!();
    sqlx_client!(PgDatabase, PUT_POSTGRES, |row| row.get(0));

    async fn open(address: &str) -> Self {
        <Self as Connection>::connect(&postgres_url(address)).await.unwrap()
    }
}

impl Client for MySqlConnection {
    type Server = MariaDb;

    const AUDIT: &str =
        "SELECT CONCAT(owner_prefix, ' ', JSON_UNQUOTE(JSON_EXTRACT(payload, '$.state'))) FROM fence_audit";
    const CANNOT_WRITE: &str = "25006";

    // The tables of the fence have unsigned columns, others signed ones.
    sqlx_client!(MySql, PUT_MYSQL, |row| row
        .try_get(0)
        .unwrap_or_else(|_| row.get::<u64, _>(0).cast_signed()));

    async fn open(address: &str) -> Self {
        <Self as Connection>::connect(&format!("mysql://root@{address}/test")).await.unwrap()
    }

    async fn isolate(&mut self, level: &str) {
        self.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).await.unwrap();
    }

    async fn session(&mut self) -> i64 {
        self.numbers("SELECT CONNECTION_ID()").await[0]
    }

    async fn end_session(&mut self, session: i64) {
        self.run(&format!("KILL {session}")).await.unwrap();
    }

    async fn has_session(&mut self, session: i64) -> bool {
        let query = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {session}");
        self.numbers(&query).await != [0]
    }

    async fn somebody_waits(&mut self) -> bool {
        // The server renews the table only if nobody has read it for 0.1 s.
        tokio::time::sleep(Duration::from_millis(150)).await;
        let query = "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
        self.numbers(query).await != [0]
    }
}

/// A server with the tables of the check and that of the user.
pub(crate) struct Scene<C: Client> {
    pub(crate) client: C,
    pub(crate) server: C::Server,
    // Dropped last.
    _stage: Stage,
}

impl<C: Client> Scene<C> {
    pub(crate) async fn new() -> Self {
        let mut scene = Self::without_tables().await;
        scene.client.migrate().await.unwrap();
        scene.create_orders().await;
        scene
    }

    pub(crate) async fn create_orders(&mut self) {
        let orders = "CREATE TABLE orders (id varchar(256) PRIMARY KEY, token bigint NOT NULL)";
        self.client.run(orders).await.unwrap();
    }

    pub(crate) async fn without_tables() -> Self {
        let stage = Stage::new().unwrap();
        let server = C::Server::start(&stage).unwrap();
        let client = C::open(&server.address()).await;
        Self { client, server, _stage: stage }
    }

    pub(crate) async fn connect(&self) -> C {
        C::open(&self.server.address()).await
    }
}

/// Makes a module for each client, with a test for each generic function.
macro_rules! for_each_client {
    ($($test:ident),+ $(,)?) => {
        for_each_client!(@ on_tokio_postgres, tokio_postgres::Client; $($test),+);
        for_each_client!(@ on_sqlx_postgres, sqlx::PgConnection; $($test),+);
        for_each_client!(@ on_sqlx_mysql, sqlx::MySqlConnection; $($test),+);
    };
    (@ $name:ident, $client:ty; $($test:ident),+) => {
        mod $name {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    super::$test::<$client>().await;
                }
            )+
        }
    };
}
pub(crate) use for_each_client;
