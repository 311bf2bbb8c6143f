//! MariaDB, in the place of MySQL: Debian has no other server that speaks its protocol.

use rustix::process::geteuid;

use super::error::ServerError;
use super::guard::Stage;
use super::port::{free, on_free_ports};
use super::process::{Launch, Process};
use super::program;
use super::ready::{ask, await_ready};

/// A MariaDB server with an empty database, `test`. It has no table of rights, so any user may do anything.
#[derive(Debug)]
pub struct MariaDb {
    process: Process,
    port: u16,
    launch: Launch,
    stage: Stage,
}

impl MariaDb {
    /// Starts a server on a free port and waits until it serves. It syncs to disk, as in production.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn start(stage: &Stage) -> Result<Self, ServerError> {
        let directory = stage.subdirectory("mariadb")?;
        // A directory of the data is a database.
        let data = stage.subdirectory("mariadb/data")?.display().to_string();
        stage.subdirectory("mariadb/data/test")?;
        // A server deletes the temporary tables that it finds when it starts: others' as well, in one folder.
        let temporary = stage.subdirectory("mariadb/tmp")?.display().to_string();
        let mut bare = Launch::new("mariadb", program::find("mariadbd", "mariadb-server")?, &directory)
            .args(["--no-defaults", "--datadir", &data, "--tmpdir", &temporary, "--innodb-log-file-size=8M"]);
        if geteuid().is_root() {
            bare = bare.args(["--user=root"]);
        }
        initialise(stage, &bare)?;
        on_free_ports(|| {
            let [port] = free()?;
            let text = port.to_string();
            let launch = bare
                .clone()
                .args(["--port", &text, "--bind-address=127.0.0.1", "--skip-name-resolve"])
                .args(["--socket=mariadb.sock", "--pid-file=mariadb.pid"])
                // Rights are tables that another program creates in five seconds; no test needs them.
                .args(["--skip-grant-tables", "--skip-networking=0"]);
            let process = stage.spawn(&launch)?;
            let mut server = Self { process, port, launch, stage: stage.clone() };
            server.await_ready()?;
            Ok(server)
        })
    }

    /// Returns `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the URL for clients: `mysql://root@127.0.0.1:PORT/test`.
    pub fn url(&self) -> String {
        format!("mysql://root@127.0.0.1:{}/test", self.port)
    }

    /// Returns its process, to pause or kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Kills it and restarts it; it then recovers from its log.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.process.kill();
        self.process = self.stage.spawn(&self.launch)?;
        self.await_ready()
    }

    /// Waits for the server's greeting, which names the server.
    fn await_ready(&mut self) -> Result<(), ServerError> {
        let port = self.port;
        await_ready(&mut self.process, port, || {
            let is_greeting = |answer: &str| answer.contains("MariaDB");
            ask(port, "", is_greeting).is_ok_and(|answer| is_greeting(&answer))
        })
    }
}

/// Creates the files of InnoDB. A server would create them, too, but does not survive a crash right after.
fn initialise(stage: &Stage, bare: &Launch) -> Result<(), ServerError> {
    let mut process = stage.spawn(&bare.clone().args(["--bootstrap"]))?;
    let status = process.wait();
    let status = status.map_err(|source| ServerError::Spawn { program: "mariadbd".to_owned(), source })?;
    if status.success() { Ok(()) } else { Err(process.died(status)) }
}
