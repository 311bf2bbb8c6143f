//! The processes and links of a schedule, against which faults are checked and for which they are drawn.

use super::call::Call;
use crate::span::Span;

history::names! {
    /// The role of a process in a schedule.
    pub enum Role as "role" {
        /// It uses the servers and the resource. If it dies, the others must go on without it.
        Client = "client",
        /// It serves clients, which wait for it.
        Server = "server",
        /// It is protected by the locks.
        Resource = "resource",
    }
}

/// The processes and links of a schedule. The default of each method restricts no fault.
pub trait Scene {
    /// Returns the names of all processes.
    fn processes(&self) -> Vec<String>;

    /// Returns the role of the process; `None` if there is no such process.
    fn role(&self, process: &str) -> Option<Role>;

    /// Checks that there is a link between the two processes.
    ///
    /// # Errors
    ///
    /// Describes the links that exist.
    fn link(&self, from: &str, to: &str) -> Result<(), String> {
        let _ = (from, to);
        Ok(())
    }

    /// Checks that a server understands a request on a connection on which nothing was sent before.
    ///
    /// # Errors
    ///
    /// Names the bytes that it needs before a request.
    fn needs_no_greeting(&self, server: &str) -> Result<(), String> {
        let _ = server;
        Ok(())
    }

    /// Checks that the process keeps data on a disk.
    ///
    /// # Errors
    ///
    /// The reason why it keeps none.
    fn disk(&self, process: &str) -> Result<(), String> {
        let _ = process;
        Ok(())
    }

    /// Checks that the process is a program, which signals end.
    ///
    /// # Errors
    ///
    /// The reason why it is none.
    fn signals(&self, process: &str) -> Result<(), String> {
        match self.role(process) {
            Some(Role::Client) => Ok(()),
            _ => Err("a simulated server gets no signals: `stop` shuts it down".to_owned()),
        }
    }

    /// Checks that the process has the action.
    ///
    /// # Errors
    ///
    /// The reason why it has not.
    fn action(&self, process: &str, action: &str) -> Result<(), String>;

    /// Checks that the process acquires locks, so that an acquire can be dropped.
    ///
    /// # Errors
    ///
    /// The reason why it acquires none.
    fn acquires(&self, process: &str) -> Result<(), String>;

    /// Checks that the process makes the call, so that it can be dropped. Default: as [`Scene::acquires`].
    ///
    /// # Errors
    ///
    /// The reason why it never makes it.
    fn calls(&self, process: &str, call: Call) -> Result<(), String> {
        let _ = call;
        self.acquires(process)
    }

    /// Returns the keys that servers may evict.
    ///
    /// # Errors
    ///
    /// The servers that never evict a key.
    fn evictable(&self) -> Result<&[String], String>;

    /// Returns true if the server may lose acknowledged data when its process ends, with or without a power
    /// loss.
    fn forgets(&self, process: &str, power_loss: bool) -> bool {
        let _ = (process, power_loss);
        false
    }

    /// Returns true if keys expire by the wall clock of the process.
    fn expires_keys(&self, process: &str) -> bool {
        let _ = process;
        false
    }

    /// Returns true if the schedule's subject compares clock rates with the drift margins of leases itself to
    /// excuse verdicts. Otherwise each fault of a clock's rate excuses them.
    fn knows_margins(&self) -> bool {
        false
    }

    /// Returns the unit of drawn times: the TTL of leases, if there are leases.
    fn scale(&self) -> Span {
        Span::from_secs(1)
    }

    /// Returns the number of rounds of the process, and so of its passings of each of its points.
    fn rounds(&self, process: &str) -> u32 {
        let _ = process;
        3
    }

    /// Returns true if the servers are one cluster with a leader. It changes the weights of drawn faults.
    fn has_leader(&self) -> bool {
        false
    }

    /// Returns the names under which servers pass points: one for each server, or one for a cluster.
    fn speakers(&self) -> Vec<String> {
        self.with_role(Role::Server)
    }

    /// Returns the points of the process that most runs pass.
    fn points(&self, process: &str) -> Vec<String> {
        let _ = process;
        Vec::new()
    }

    /// Returns the points at which a client holds a lock.
    fn points_inside(&self, client: &str) -> Vec<String> {
        self.points(client)
    }

    /// Returns the points at which a reply is about to leave. A point may occur several times, as its weight.
    fn points_of_reply(&self, process: &str) -> Vec<String> {
        self.points(process)
    }

    /// Returns true if a drawn crash may lose power.
    fn may_lose_power(&self, process: &str) -> bool {
        self.disk(process).is_ok()
    }

    /// Returns the names of the processes with the role.
    fn with_role(&self, role: Role) -> Vec<String> {
        self.processes().into_iter().filter(|name| self.role(name) == Some(role)).collect()
    }
}
