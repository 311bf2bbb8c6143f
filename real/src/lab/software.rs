//! The software of a measurement: the versions of servers and clients, and the commit of this repository.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::servers;

/// The clients that speak to the servers, as Cargo.lock names them.
const CRATES: [&str; 6] =
    ["fencepost-dlock-zookeeper", "fencepost-etcd-client", "redis", "tokio", "tokio-postgres", "tonic"];

/// The versions of which the program was built.
const LOCK_FILE: &str = include_str!("../../../Cargo.lock");

/// The software of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Software {
    /// The commit of this repository, with `-changed` after it if files besides results and pages differ from
    /// it; empty where there is no repository.
    pub commit: String,
    /// The version of each server that is installed, by its name.
    pub servers: BTreeMap<String, String>,
    /// The version of each client crate, by its name.
    pub crates: BTreeMap<String, String>,
}

impl Software {
    /// Describes the software of this program and machine.
    pub fn this() -> Self {
        Self { commit: commit().unwrap_or_default(), servers: servers::versions(), crates: crates(LOCK_FILE) }
    }
}

impl fmt::Display for Software {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.servers.iter().chain(&self.crates);
        let list: Vec<_> = names.map(|(name, version)| format!("{name} {version}")).collect();
        write!(f, "{}", list.join(", "))?;
        if self.commit.is_empty() { Ok(()) } else { write!(f, "; commit {}", self.commit) }
    }
}

fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--", ".", ":!real/results", ":!docs"])?;
    Some(if changed.is_empty() { commit } else { commit + "-changed" })
}

fn crates(lock_file: &str) -> BTreeMap<String, String> {
    let table: toml::Table = lock_file.parse().unwrap_or_default();
    let packages = table.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let named = packages.filter_map(|package| {
        let text = |field: &str| package.get(field)?.as_str().map(ToOwned::to_owned);
        let name = text("name").filter(|name| CRATES.contains(&name.as_str()))?;
        Some((name, text("version")?))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::{CRATES, Software};

    #[test]
    fn each_client_and_server_has_a_version() {
        let software = Software::this();
        let crates: Vec<_> = software.crates.keys().map(String::as_str).collect();
        assert_eq!(crates, CRATES);
        let servers: Vec<_> = software.servers.keys().map(String::as_str).collect();
        assert_eq!(servers, ["PostgreSQL", "Redis", "ZooKeeper", "etcd"]);
        let versions = software.crates.values().chain(software.servers.values());
        for version in versions {
            assert!(version.contains('.') && version.starts_with(|c: char| c.is_ascii_digit()), "{version}");
        }
        // A copy without a repository has none.
        assert!(software.commit.is_empty() || software.commit.len() >= 12, "{software}");
    }
}
