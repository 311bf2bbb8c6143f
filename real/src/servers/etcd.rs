//! An etcd cluster of three members, or of one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::ServerError;
use super::guard::Stage;
use super::host::Host;
use super::port::{free, on_free_ports};
use super::process::{Launch, Process};
use super::program;
use super::ready::{ask_http, await_ready};
use super::tls::TlsFiles;

pub(super) const PACKAGE: &str = "etcd-server";
/// The folder of etcd 3.5 among the fetched servers, and the package of Debian 13 that has `etcdutl`.
const NEWER: &str = "etcd-3.5";
const NEWER_PACKAGE: &str = "etcd-client";
const LOCAL: &str = "127.0.0.1";
/// Members send heartbeats twenty times a second; after half a second without a leader they elect one.
const TIMING: [&str; 4] = ["--heartbeat-interval", "50", "--election-timeout", "500"];
/// Where a load keeps all cores busy for long, heartbeats of a leader that works may come later than that.
const PATIENT: [&str; 4] = ["--heartbeat-interval", "500", "--election-timeout", "5000"];

/// The folder of the data, in that of the member.
const DATA: &str = "data";

/// The log line of a member that has its port and has joined its cluster.
const READY: &str = "ready to serve client requests";

/// A member of an etcd cluster.
#[derive(Debug)]
pub struct Etcd {
    process: Process,
    port: u16,
    launch: Launch,
    stage: Stage,
}

/// An etcd cluster.
#[derive(Debug)]
pub struct EtcdCluster {
    /// The members.
    pub members: Vec<Etcd>,
}

impl EtcdCluster {
    /// Starts a cluster of three on free ports and waits until every member serves.
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn start(stage: &Stage) -> Result<Self, ServerError> {
        let program = program::find("etcd", PACKAGE)?;
        on_free_ports(|| Self::on_ports::<3>(stage, &program, free()?, free()?, [None; 3], TIMING))
    }

    /// As [`EtcdCluster::start`], with members that wait for the leader for 5 s before they elect another: a
    /// fill with millions of locks keeps all cores busy.
    ///
    /// # Errors
    ///
    /// As [`EtcdCluster::start`].
    pub fn start_for_fill(stage: &Stage) -> Result<Self, ServerError> {
        let program = program::find("etcd", PACKAGE)?;
        on_free_ports(|| Self::on_ports::<3>(stage, &program, free()?, free()?, [None; 3], PATIENT))
    }

    /// Starts a single member on a free port.
    ///
    /// # Errors
    ///
    /// As [`EtcdCluster::start`].
    pub fn start_one(stage: &Stage) -> Result<Self, ServerError> {
        let program = program::find("etcd", PACKAGE)?;
        on_free_ports(|| Self::on_ports::<1>(stage, &program, free()?, free()?, [None], TIMING))
    }

    /// As [`EtcdCluster::start_one`], of etcd 3.5, which `tools/test` has fetched.
    ///
    /// # Errors
    ///
    /// As [`EtcdCluster::start`].
    pub fn start_newer(stage: &Stage) -> Result<Self, ServerError> {
        let program = newer("etcd")?;
        on_free_ports(|| Self::on_ports::<1>(stage, &program, free()?, free()?, [None], TIMING))
    }

    /// Starts a single member on a free port, with a second one over TLS. Returns it and that port's address.
    ///
    /// # Errors
    ///
    /// As [`EtcdCluster::start`].
    pub fn start_secured(stage: &Stage, tls: &TlsFiles) -> Result<(Self, String), ServerError> {
        on_free_ports(|| {
            let [port, peer, secure] = free()?;
            let program = program::find("etcd", PACKAGE)?;
            let directory = stage.subdirectory(&format!("etcd-1-{port}"))?;
            let (here, peer) = (url(LOCAL, port), url(LOCAL, peer));
            let launch = Launch::new("etcd-1", &program, &directory)
                .args(["--name", "etcd-1", "--data-dir", DATA, "--initial-cluster-state", "new"])
                .args(["--listen-client-urls", &format!("{here},https://{LOCAL}:{secure}")])
                .args(["--advertise-client-urls", &here])
                .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
                .args(["--initial-cluster", &format!("etcd-1={peer}"), "--cert-file"])
                .args([&tls.certificates])
                .args(["--key-file"])
                .args([&tls.key])
                .args(TIMING);
            let launch = match &tls.client_roots {
                Some(roots) => launch.args(["--client-cert-auth", "--trusted-ca-file"]).args([roots]),
                None => launch,
            };
            let process = stage.spawn(&launch)?;
            let mut member = Etcd { process, port, launch, stage: stage.clone() };
            member.await_ready()?;
            Ok((Self { members: vec![member] }, format!("{LOCAL}:{secure}")))
        })
    }

    /// As [`EtcdCluster::start`], with each member on a host of a [`Network`](crate::faults::Network), whose
    /// faults can separate the members.
    ///
    /// # Errors
    ///
    /// As [`EtcdCluster::start`].
    pub fn start_at(stage: &Stage, hosts: [&Host; 3]) -> Result<Self, ServerError> {
        let program = program::find("etcd", PACKAGE)?;
        on_free_ports(|| Self::on_ports::<3>(stage, &program, free()?, free()?, hosts.map(Some), TIMING))
    }

    fn on_ports<const N: usize>(
        stage: &Stage,
        program: &Path,
        ports: [u16; N],
        peers: [u16; N],
        hosts: [Option<&Host>; N],
        timing: [&str; 4],
    ) -> Result<Self, ServerError> {
        let peer_url = |n: usize| url(hosts[n].map_or(LOCAL, Host::address), peers[n]);
        let all: Vec<_> = (0..N).map(|n| format!("etcd-{}={}", n + 1, peer_url(n))).collect();
        let all = all.join(",");
        let mut members = Vec::with_capacity(N);
        for (n, port) in ports.into_iter().enumerate() {
            let name = format!("etcd-{}", n + 1);
            // A restart on other ports is another cluster: it must not find this one's data.
            let directory = stage.subdirectory(&format!("{name}-{port}"))?;
            let (here, peer) = (url(LOCAL, port), peer_url(n));
            let client = hosts[n].map_or_else(|| here.clone(), |host| url(host.address(), port));
            // Our requests come from its own host.
            let listen = if client == here { here } else { format!("{client},{here}") };
            let launch = Launch::new(&name, program, &directory)
                .args(["--name", &name, "--data-dir", DATA, "--initial-cluster-state", "new"])
                .args(["--listen-client-urls", &listen, "--advertise-client-urls", &client])
                .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
                .args(["--initial-cluster", &all])
                .args(timing)
                .on(hosts[n]);
            let process = stage.spawn(&launch)?;
            members.push(Etcd { process, port, launch, stage: stage.clone() });
        }
        // No member serves before a majority runs: start all before waiting for any.
        members.iter_mut().try_for_each(Etcd::await_ready)?;
        Ok(Self { members })
    }

    /// Returns the addresses of all members.
    pub fn addresses(&self) -> Vec<String> {
        self.members.iter().map(Etcd::address).collect()
    }

    /// Returns the leader's index in [`EtcdCluster::members`], as reported by the members that answer.
    pub fn leader(&self) -> Option<usize> {
        let status: Vec<_> = self.members.iter().map(Etcd::status).collect();
        let leader = status.iter().flatten().map(|status| &status.leader).next()?;
        status.iter().position(|status| status.as_ref().is_some_and(|status| status.member == *leader))
    }

    /// Makes `member` the leader.
    ///
    /// # Errors
    ///
    /// [`ServerError::Refused`] if there is no leader to ask, or it refuses.
    pub fn move_leader(&self, member: usize) -> Result<(), ServerError> {
        let order = "MoveLeader";
        let refused = |answer: &str| ServerError::Refused {
            name: self.members[member].process.name().to_owned(),
            order: order.to_owned(),
            answer: answer.to_owned(),
            log: self.members[member].process.last_words(),
        };
        let leader = self.leader().ok_or_else(|| refused("no member leads"))?;
        let target = self.members[member].status().ok_or_else(|| refused("it does not answer"))?;
        if leader == member {
            return Ok(());
        }
        let body = format!(r#"{{"targetID":"{}"}}"#, target.member);
        let leader = &self.members[leader];
        let answer = leader
            .launch
            .there(|| ask_http(leader.port, "POST", "/v3/maintenance/transfer-leadership", "", &body))?;
        let answer = answer.unwrap_or_else(|error| error.to_string());
        if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(refused(&answer)) }
    }
}

struct Status {
    member: String,
    leader: String,
}

impl Etcd {
    /// Returns the address for clients: `127.0.0.1:PORT`, or that of its host.
    pub fn address(&self) -> String {
        format!("{}:{}", self.launch.address(), self.port)
    }

    /// Returns its port for clients.
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

    /// Kills it, replaces its data by those of a snapshot, as its only member, and starts it. With `bump` the
    /// revision is raised by as much. Needs etcd 3.5: see [`EtcdCluster::start_newer`].
    ///
    /// # Errors
    ///
    /// [`ServerError`] says what to do.
    pub fn restore(&mut self, snapshot: &Path, bump: Option<u64>) -> Result<(), ServerError> {
        let flag = |name: &str| {
            let place = self.launch.arguments.iter().position(|argument| argument == name);
            place.and_then(|place| self.launch.arguments.get(place + 1)).cloned().unwrap_or_default()
        };
        let utility = newer("etcdutl")?;
        let mut restore = Command::new(&utility);
        restore.args(["snapshot", "restore"]).arg(snapshot).args(["--data-dir", DATA]);
        for name in ["--name", "--initial-cluster", "--initial-advertise-peer-urls"] {
            restore.arg(name).arg(flag(name));
        }
        if let Some(bump) = bump {
            restore.args(["--bump-revision", &bump.to_string(), "--mark-compacted"]);
        }
        self.process.kill();
        let data = self.launch.directory.join(DATA);
        fs::remove_dir_all(&data).map_err(|source| ServerError::Directory { path: data.clone(), source })?;
        let program = utility.display().to_string();
        let done = restore.current_dir(&self.launch.directory).output();
        let done = done.map_err(|source| ServerError::Spawn { program, source })?;
        if !done.status.success() {
            return Err(ServerError::Refused {
                name: self.process.name().to_owned(),
                order: "snapshot restore".to_owned(),
                answer: String::from_utf8_lossy(&done.stderr).trim().to_owned(),
                log: self.process.last_words(),
            });
        }
        self.restart()
    }

    /// Returns the folder of its data.
    pub fn data(&self) -> PathBuf {
        self.launch.directory.join(DATA)
    }

    /// Waits until it is ready. It also checks the member's own log: another etcd on the port would look
    /// healthy too.
    fn await_ready(&mut self) -> Result<(), ServerError> {
        let (port, log) = (self.port, self.process.log().to_owned());
        let serves = || std::fs::read_to_string(&log).is_ok_and(|log| log.contains(READY));
        let is_ready = || {
            let health = ask_http(port, "GET", "/health", "", "");
            health.is_ok_and(|answer| answer.contains(r#""health":"true""#)) && serves()
        };
        let process = &mut self.process;
        self.launch.there(|| await_ready(process, port, is_ready))?
    }

    fn status(&self) -> Option<Status> {
        let ask = || ask_http(self.port, "POST", "/v3/maintenance/status", "", "{}");
        let answer = self.launch.there(ask).ok()?.ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let body: serde_json::Value = serde_json::from_str(body).ok()?;
        let text = |value: &serde_json::Value| Some(value.as_str()?.to_owned());
        Some(Status { member: text(&body["header"]["member_id"])?, leader: text(&body["leader"])? })
    }
}

fn newer(name: &str) -> Result<PathBuf, ServerError> {
    program::find_fetched(&format!("{NEWER}/{name}"), NEWER_PACKAGE)
}

fn url(address: &str, port: u16) -> String {
    format!("http://{address}:{port}")
}
