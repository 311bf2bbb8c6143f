//! Hosts on this machine: network namespaces whose cables can be pulled, and which can drop incoming packets.
//!
//! Each [`Host`] is a namespace with an address, joined to the others by a bridge in a namespace of its own;
//! the machine's network is untouched. Hosts communicate over the kernel's TCP, so that a partition is a real
//! one: packets are retransmitted, connections time out, members of a cluster lose each other. It needs root,
//! `ip` and `nft`; without them, [`Proxy`](super::Proxy) breaks the links of one client at a time.
//!
//! Dropping the value removes the namespaces; after a crash of this process the stage's guard removes them.

use std::fs;
use std::io::{self, Write};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::geteuid;

use super::error::FaultError;
use crate::servers::{Cable, Host, Stage};

/// The feature that needs the programs, for messages.
const WHAT: &str = "network namespaces";
/// Numbers this process's networks.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Hosts that reach each other and nothing else.
#[derive(Debug)]
pub struct Network {
    hosts: Vec<Host>,
    /// The namespaces, with the bridge's last.
    namespaces: Vec<String>,
    _stage: Stage,
}

/// The fate of incoming packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// They are dropped silently.
    Drop,
    /// Connections are reset, old and new.
    Reset,
    /// This percentage of packets is dropped at random.
    Lose(u32),
}

impl Network {
    /// Creates `count` hosts.
    ///
    /// # Errors
    ///
    /// [`FaultError::NotRoot`], or [`FaultError::Missing`] where `ip` or `nft` are not installed.
    pub fn new(stage: &Stage, count: u8) -> Result<Self, FaultError> {
        if !geteuid().is_root() {
            return Err(FaultError::NotRoot);
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("dlock-{}-{number}", std::process::id());
        let bridge = format!("{prefix}-bridge");
        let host = |n: u8| {
            let cable = Cable { bridge: bridge.clone(), name: format!("cable{n}") };
            Host::new(format!("{prefix}-{n}"), format!("10.77.0.{n}"), cable)
        };
        let hosts: Vec<_> = (1..=count).map(host).collect();
        let mut namespaces: Vec<_> = hosts.iter().map(|host| host.namespace().to_owned()).collect();
        namespaces.push(bridge.clone());
        note(stage, &namespaces)?;
        // From here on, dropping this value removes the namespaces made so far.
        let network = Self { hosts, namespaces, _stage: stage.clone() };
        ip(&["netns", "add", &bridge])?;
        ip(&["-n", &bridge, "link", "add", "bridge", "type", "bridge"])?;
        ip(&["-n", &bridge, "link", "set", "bridge", "up"])?;
        network.hosts.iter().try_for_each(Host::set_up)?;
        Ok(network)
    }

    /// Returns the hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for namespace in &self.namespaces {
            // A namespace that was never made can be ignored.
            let _ = ip(&["netns", "del", namespace]);
        }
    }
}

impl Host {
    fn set_up(&self) -> Result<(), FaultError> {
        let (namespace, Cable { bridge, name: cable }) = (self.namespace(), self.cable());
        let subnet = format!("{}/24", self.address());
        ip(&["netns", "add", namespace])?;
        ip(&[
            "-n", bridge, "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", namespace,
        ])?;
        ip(&["-n", bridge, "link", "set", cable, "master", "bridge", "up"])?;
        ip(&["-n", namespace, "addr", "add", &subnet, "dev", "eth0"])?;
        ip(&["-n", namespace, "link", "set", "eth0", "up"])?;
        ip(&["-n", namespace, "link", "set", "lo", "up"])?;
        self.nft("add table inet dlock")?;
        self.nft("add chain inet dlock arriving { type filter hook input priority 0; }")
    }

    /// Pulls its cable: no packet leaves or arrives.
    ///
    /// # Errors
    ///
    /// [`FaultError::Failed`].
    pub fn unplug(&self) -> Result<(), FaultError> {
        self.set_cable("down")
    }

    /// Plugs its cable in again.
    ///
    /// # Errors
    ///
    /// [`FaultError::Failed`].
    pub fn plug_in(&self) -> Result<(), FaultError> {
        self.set_cable("up")
    }

    fn set_cable(&self, state: &str) -> Result<(), FaultError> {
        let Cable { bridge, name } = self.cable();
        ip(&["-n", bridge, "link", "set", name, state])
    }

    /// Applies `filter` to packets from `sender`: in one direction, open connections included.
    ///
    /// # Errors
    ///
    /// [`FaultError::Failed`].
    pub fn filter(&self, sender: &Host, filter: Filter) -> Result<(), FaultError> {
        let effect = match filter {
            Filter::Drop => "drop".to_owned(),
            Filter::Reset => "meta l4proto tcp reject with tcp reset".to_owned(),
            Filter::Lose(percent) => format!("numgen random mod 100 < {percent} drop"),
        };
        self.nft(&format!("add rule inet dlock arriving ip saddr {} {effect}", sender.address()))
    }

    /// Removes all filters of this host.
    ///
    /// # Errors
    ///
    /// [`FaultError::Failed`].
    pub fn clear(&self) -> Result<(), FaultError> {
        self.nft("flush chain inet dlock arriving")
    }

    fn nft(&self, rule: &str) -> Result<(), FaultError> {
        let gone = |error: io::Error| failed(&format!("nft {rule}"), &error.to_string());
        self.run(|| run(Command::new("nft").arg(rule), "nft", "nftables")).map_err(gone)?
    }
}

/// Registers the namespaces with the guard before they exist.
fn note(stage: &Stage, namespaces: &[String]) -> Result<(), FaultError> {
    let path = stage.directory().join("namespaces");
    let opened = fs::OpenOptions::new().create(true).append(true).open(&path);
    let noted = opened.and_then(|mut file| writeln!(file, "{}", namespaces.join("\n")));
    noted.map_err(|source| FaultError::File { path, source })
}

fn ip(arguments: &[&str]) -> Result<(), FaultError> {
    run(Command::new("ip").args(arguments), "ip", "iproute2")
}

fn run(command: &mut Command, program: &'static str, package: &'static str) -> Result<(), FaultError> {
    // Debian installs the programs in folders that only root's PATH has.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let asked = format!("{command:?}").replace('"', "");
    match command.env("PATH", path).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(failed(&asked, String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(FaultError::Missing { what: WHAT, program, package })
        }
        Err(error) => Err(failed(&asked, &error.to_string())),
    }
}

fn failed(command: &str, words: &str) -> FaultError {
    FaultError::Failed { command: command.to_owned(), words: words.to_owned() }
}
