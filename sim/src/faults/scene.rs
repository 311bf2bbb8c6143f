//! What faults are checked against and drawn for: the processes and links of a schedule.

use crate::span::Span;

/// What a process is in its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It uses the servers and the resource. The others must get on without it if it dies.
    Client,
    /// It serves clients, and they wait for it.
    Server,
    /// It is what the clients protect from each other.
    Resource,
}

/// The processes and links of a schedule, as far as faults ask for them. What has no answer of its own has the one
/// that restricts nothing.
pub trait Scene {
    /// The names of all processes.
    fn processes(&self) -> Vec<String>;

    /// What the process is, if there is one of that name.
    fn role(&self, process: &str) -> Option<Role>;

    /// Whether anything is sent between the two.
    ///
    /// # Errors
    ///
    /// Which links there are instead.
    fn link(&self, from: &str, to: &str) -> Result<(), String> {
        let _ = (from, to);
        Ok(())
    }

    /// Whether the process keeps anything on a disk.
    ///
    /// # Errors
    ///
    /// Why it does not.
    fn disk(&self, process: &str) -> Result<(), String> {
        let _ = process;
        Ok(())
    }

    /// Whether the process has an action of that name.
    ///
    /// # Errors
    ///
    /// Why it has not.
    fn action(&self, process: &str, action: &str) -> Result<(), String>;

    /// Whether a call of the process to acquire may be dropped.
    ///
    /// # Errors
    ///
    /// Why it acquires nothing.
    fn acquires(&self, process: &str) -> Result<(), String>;

    /// The keys that servers store, and that they may lose.
    ///
    /// # Errors
    ///
    /// Which servers never lose one.
    fn evictable(&self) -> Result<&[String], String>;

    /// Whether a server whose process ends so may have lost what it acknowledged.
    fn forgets(&self, process: &str, power_loss: bool) -> bool {
        let _ = (process, power_loss);
        false
    }

    /// Whether keys expire by the wall clock of the process.
    fn expires_keys(&self, process: &str) -> bool {
        let _ = process;
        false
    }

    /// Whether it excuses itself the verdicts on leases whose holder's clock runs slower than the server's, by more than
    /// their margin. If not, every clock that runs fast or slow excuses them.
    fn knows_margins(&self) -> bool {
        false
    }

    /// The time by which drawn times are measured: that of a lease, where there is one.
    fn scale(&self) -> Span {
        Span::from_secs(1)
    }

    /// How often the process does its work: its points are passed as often.
    fn rounds(&self, process: &str) -> u32 {
        let _ = process;
        3
    }

    /// Whether the servers are one cluster with a leader. Drawn faults differ.
    fn has_leader(&self) -> bool {
        false
    }

    /// The names under which the servers' points are passed: each its own, or one for a whole cluster.
    fn speakers(&self) -> Vec<String> {
        self.with_role(Role::Server)
    }

    /// The points of the process that most runs pass.
    fn points(&self, process: &str) -> Vec<String> {
        let _ = process;
        Vec::new()
    }

    /// Those at which a client holds what others wait for.
    fn points_inside(&self, client: &str) -> Vec<String> {
        self.points(client)
    }

    /// Those at which a reply is about to leave, each as often as its weight.
    fn points_of_reply(&self, process: &str) -> Vec<String> {
        self.points(process)
    }

    /// Whether a drawn crash may take the power with it.
    fn may_lose_power(&self, process: &str) -> bool {
        self.disk(process).is_ok()
    }

    /// The names of the processes in that role.
    fn with_role(&self, role: Role) -> Vec<String> {
        self.processes().into_iter().filter(|name| self.role(name) == Some(role)).collect()
    }
}
