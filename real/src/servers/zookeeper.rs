//! A single ZooKeeper, or an ensemble of several.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::error::ServerError;
use super::guard::Stage;
use super::port::{free, on_free_ports};
use super::process::{Launch, Process};
use super::program;
use super::ready::{ask, await_ready};
use super::tls::TlsFiles;

const PACKAGE: &str = "libzookeeper-java";
const JARS: [&str; 10] = [
    "zookeeper.jar",
    "zookeeper-jute.jar",
    "netty-all.jar",
    // Connections by netty, which TLS needs.
    "netty-codec.jar",
    "netty-handler.jar",
    "snappy-java.jar",
    "metrics-core.jar",
    "slf4j-api.jar",
    "slf4j-simple.jar",
    "commons-cli.jar",
];
/// A small heap and only the fast compiler: a start takes 0.3 s instead of a second.
const JAVA: [&str; 3] = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
const ALONE: &str = "org.apache.zookeeper.server.ZooKeeperServerMain";
const VERSION: &str = "org.apache.zookeeper.Version";
/// ZooKeeper's shell.
const SHELL: &str = "org.apache.zookeeper.ZooKeeperMain";
const MEMBER: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

/// Syncs the log of writes to the disk before an answer, as the pages say. It is ZooKeeper's default.
const SYNC: &str = "forceSync=yes";

/// Returns the command that prints ZooKeeper's version.
pub(super) fn version_command() -> Result<Command, ServerError> {
    let mut command = Command::new(program::find("java", "default-jre-headless")?);
    command.args(JAVA).args(["-cp", &program::class_path(&JARS, PACKAGE)?, VERSION, "--short"]);
    Ok(command)
}

/// A ZooKeeper server.
#[derive(Debug)]
pub struct ZooKeeper {
    process: Process,
    port: u16,
    launch: Launch,
    stage: Stage,
}

/// Several ZooKeeper servers, of which a majority is enough.
#[derive(Debug)]
pub struct ZooKeeperEnsemble {
    /// The members.
    pub members: Vec<ZooKeeper>,
}

impl ZooKeeper {
    /// The `tickTime` of a server started by [`ZooKeeper::start`]: sessions expire at multiples of it.
    pub const TICK: Duration = Duration::from_millis(100);

    /// The range of session timeouts that it grants: as short as the TTLs of the experiments. (The default
    /// minimum is two ticks of 2 s.)
    pub const SESSION_TIMEOUTS: RangeInclusive<Duration> =
        Duration::from_millis(100)..=Duration::from_secs(3600);

    /// Starts a server on a free port and waits until it serves.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn start(stage: &Stage) -> Result<Self, ServerError> {
        on_free_ports(|| {
            let [port] = free()?;
            let mut server = Self::launch(stage, "zookeeper", 1, port, ALONE, "")?;
            server.await_ready()?;
            Ok(server)
        })
    }

    /// Starts a server on a free port, with a second one over TLS. Returns it and that port's address.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn start_secured(stage: &Stage, tls: &TlsFiles) -> Result<(Self, String), ServerError> {
        on_free_ports(|| {
            let [port, secure] = free()?;
            let (keys, demanded) = (tls.both.display(), tls.client_roots.is_some());
            let roots = tls.client_roots.as_ref().unwrap_or(&tls.certificates).display();
            let factory = "org.apache.zookeeper.server.NettyServerCnxnFactory";
            let more = format!(
                "tickTime={}\nsecureClientPort={secure}\nsecureClientPortAddress=127.0.0.1\n\
                 serverCnxnFactory={factory}\nssl.clientAuth={}\n\
                 ssl.keyStore.location={keys}\nssl.keyStore.type=PEM\n\
                 ssl.trustStore.location={roots}\nssl.trustStore.type=PEM\n",
                Self::TICK.as_millis(),
                if demanded { "need" } else { "none" }
            );
            let mut server = Self::launch(stage, "zookeeper", 1, port, ALONE, &more)?;
            server.await_ready()?;
            Ok((server, format!("127.0.0.1:{secure}")))
        })
    }

    fn launch(
        stage: &Stage,
        name: &str,
        id: usize,
        port: u16,
        class: &str,
        members: &str,
    ) -> Result<Self, ServerError> {
        let java = program::find("java", "default-jre-headless")?;
        let classes = program::class_path(&JARS, PACKAGE)?;
        let directory = stage.subdirectory(&format!("{name}-{port}"))?;
        write(&directory.join("zoo.cfg"), &configuration(&directory, port, members))?;
        write(&directory.join("myid"), &id.to_string())?;
        let launch = Launch::new(name, java, &directory).args(JAVA).args(["-cp", &classes, class, "zoo.cfg"]);
        let process = stage.spawn(&launch)?;
        Ok(Self { process, port, launch, stage: stage.clone() })
    }

    /// Runs a command of ZooKeeper's own shell as a user without a login, such as `create /prod ""`.
    ///
    /// # Errors
    ///
    /// [`ServerError::Refused`] if the shell does not report success.
    pub fn administer(&self, order: &str) -> Result<(), ServerError> {
        let java = program::find("java", "default-jre-headless")?;
        let classes = program::class_path(&JARS, PACKAGE)?;
        let words = order.split_whitespace().map(|word| word.trim_matches('"'));
        let mut command = Command::new(&java);
        command.args(JAVA).args(["-cp", &classes, SHELL, "-server", &self.address()]).args(words);
        let failed = |source| ServerError::Spawn { program: SHELL.to_owned(), source };
        let done = command.output().map_err(failed)?;
        if done.status.success() {
            return Ok(());
        }
        Err(ServerError::Refused {
            name: self.process.name().to_owned(),
            order: order.to_owned(),
            answer: String::from_utf8_lossy(&done.stderr).trim().to_owned(),
            log: self.process.last_words(),
        })
    }

    /// Returns `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns its process, to pause or kill.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Kills it if it runs, and restarts it with its data.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn restart(&mut self) -> Result<(), ServerError> {
        self.process.kill();
        self.process = self.stage.spawn(&self.launch)?;
        self.await_ready()
    }

    /// Waits until it is ready. It checks the reported data directory, since another process's server may
    /// answer on the port.
    fn await_ready(&mut self) -> Result<(), ServerError> {
        let port = self.port;
        let ours = format!("dataDir={}/", self.launch.directory.display());
        let says =
            |word: &str, answer: &str| ask(port, word, |_| false).is_ok_and(|text| text.contains(answer));
        await_ready(&mut self.process, port, || says("conf", &ours) && says("srvr", "Mode: "))
    }
}

impl ZooKeeperEnsemble {
    /// Starts three servers on free ports and waits until they have a leader.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn start(stage: &Stage) -> Result<Self, ServerError> {
        Self::start_of(stage, 3)
    }

    /// Starts `members` servers, at most 9, as [`ZooKeeperEnsemble::start`] does.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn start_of(stage: &Stage, members: usize) -> Result<Self, ServerError> {
        on_free_ports(|| {
            let ports: [[u16; 9]; 3] = [free()?, free()?, free()?];
            Self::on_ports(stage, ports.map(|ports| ports.into_iter().take(members).collect()))
        })
    }

    /// Returns the addresses of all members.
    pub fn addresses(&self) -> Vec<String> {
        self.members.iter().map(ZooKeeper::address).collect()
    }

    /// Returns the leader's index in [`ZooKeeperEnsemble::members`], if a member reports to lead.
    pub fn leader(&self) -> Option<usize> {
        let leads = |member: &ZooKeeper| {
            ask(member.port, "srvr", |_| false).is_ok_and(|answer| answer.contains("Mode: leader"))
        };
        self.members.iter().position(leads)
    }

    fn on_ports(stage: &Stage, [ports, peers, elections]: [Vec<u16>; 3]) -> Result<Self, ServerError> {
        let mut all = String::from("tickTime=200\ninitLimit=20\nsyncLimit=10\n");
        for n in 0..ports.len() {
            // Writing to a String can't fail.
            let _ = writeln!(all, "server.{}=127.0.0.1:{}:{}", n + 1, peers[n], elections[n]);
        }
        let start = |n: usize| {
            ZooKeeper::launch(stage, &format!("zookeeper-{}", n + 1), n + 1, ports[n], MEMBER, &all)
        };
        let mut members = (0..ports.len()).map(start).collect::<Result<Vec<_>, _>>()?;
        members.iter_mut().try_for_each(ZooKeeper::await_ready)?;
        Ok(Self { members })
    }
}

fn configuration(directory: &Path, port: u16, members: &str) -> String {
    let data = directory.display();
    let timeouts = ZooKeeper::SESSION_TIMEOUTS;
    let (min, max) = (timeouts.start().as_millis(), timeouts.end().as_millis());
    let alone = format!("tickTime={}\n", ZooKeeper::TICK.as_millis());
    format!(
        "dataDir={data}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n\
         4lw.commands.whitelist=*\nmaxClientCnxns=0\nminSessionTimeout={min}\n\
         maxSessionTimeout={max}\n{SYNC}\n{}{members}",
        if members.is_empty() { &alone } else { "" },
    )
}

fn write(path: &Path, text: &str) -> Result<(), ServerError> {
    std::fs::write(path, text).map_err(|source| ServerError::Directory { path: path.to_owned(), source })
}
