//! The cast of a world: its processes and servers, and the names of the clusters, locks and resources.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::process::Process;
use crate::faults::{Role, Scene};
use crate::servers::host::Host;
use crate::span::Span;

/// The main task of a process, in one of its lives.
pub(crate) type Main = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The code that a process runs.
pub(crate) enum Body {
    /// Code of the experiment, or none. The run ends when the code of all clients has ended.
    Program { main: Option<Box<dyn Fn(Process) -> Main + Send + Sync>>, role: Role },
    /// A simulated server, which never ends by itself.
    Host { host: Arc<dyn Host>, role: Role },
}

/// The points that each process passed in a run without faults, by the name of the process.
pub(crate) type Points = BTreeMap<String, Vec<String>>;

/// The processes of a world, and the names of its clusters, locks and resources: the scene against which its
/// faults are checked and for which they are drawn.
#[derive(Default)]
pub(crate) struct Cast {
    pub(super) names: Vec<String>,
    /// By process number, as `names`.
    pub(super) bodies: Vec<Body>,
    /// Names in the history, each for several servers.
    pub(super) clusters: Vec<String>,
    /// The names of locks and resources.
    pub(super) keys: Vec<String>,
    /// The unit of the durations of drawn faults.
    pub(super) scale: Span,
    /// The points at which drawn faults may be aimed.
    pub(super) points: Arc<Points>,
}

impl Cast {
    pub(super) fn add(&mut self, name: &str, body: Body) {
        self.names.push(name.to_owned());
        self.bodies.push(body);
    }

    /// Returns true if events can have this name: it is that of a process or of a cluster.
    pub(super) fn emits(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name) || self.speakers().iter().any(|known| known == name)
    }

    fn body(&self, name: &str) -> Option<&Body> {
        let at = self.names.iter().position(|known| known == name)?;
        self.bodies.get(at)
    }

    fn host_of(&self, name: &str) -> Option<&dyn Host> {
        match self.body(name)? {
            Body::Host { host, .. } => Some(&**host),
            Body::Program { .. } => None,
        }
    }
}

impl Scene for Cast {
    fn processes(&self) -> Vec<String> {
        self.names.clone()
    }

    fn role(&self, process: &str) -> Option<Role> {
        Some(match self.body(process)? {
            Body::Program { role, .. } | Body::Host { role, .. } => *role,
        })
    }

    fn needs_no_greeting(&self, server: &str) -> Result<(), String> {
        self.host_of(server).and_then(Host::greeting).map_or(Ok(()), |greeting| Err(greeting.to_owned()))
    }

    fn disk(&self, process: &str) -> Result<(), String> {
        match self.host_of(process) {
            // Any program may write to its disk.
            None => Ok(()),
            Some(host) if host.keeps_on_disk() => Ok(()),
            Some(host) => Err(host.noun().to_owned()),
        }
    }

    fn signals(&self, process: &str) -> Result<(), String> {
        match self.host_of(process) {
            None => Ok(()),
            Some(host) => Err(format!("{} gets no signals: `stop` shuts it down", host.noun())),
        }
    }

    fn action(&self, process: &str, action: &str) -> Result<(), String> {
        let Some(host) = self.host_of(process) else { return Err("it is no server".to_owned()) };
        let known: Vec<&str> = host.actions().iter().map(|known| known.name).collect();
        if known.contains(&action) {
            return Ok(());
        }
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(format!("{} has no action `{action}`: known are {known}", host.noun()))
    }

    fn acquires(&self, process: &str) -> Result<(), String> {
        match self.body(process) {
            Some(Body::Program { .. }) => Ok(()),
            _ => Err("only programs run cancellable futures".to_owned()),
        }
    }

    fn evictable(&self) -> Result<&[String], String> {
        Ok(&self.keys)
    }

    fn forgets(&self, process: &str, power_loss: bool) -> bool {
        let _ = power_loss;
        self.host_of(process).is_some_and(|host| !host.keeps_on_disk())
    }

    fn speakers(&self) -> Vec<String> {
        let mut speakers = self.with_role(Role::Server);
        speakers.extend(self.clusters.iter().cloned());
        speakers
    }

    fn scale(&self) -> Span {
        self.scale
    }

    fn points(&self, process: &str) -> Vec<String> {
        self.points.get(process).cloned().unwrap_or_default()
    }
}
