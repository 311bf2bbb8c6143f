//! The rules for a world under construction: its names, its faults and its core phase.

use history::Span;

use super::builder::Sim;
use crate::faults::{FaultCheck, NETWORK, Role, Scene, Trigger};
use crate::field_path::{FieldPath, Invalid};

/// Names that the simulator itself uses.
const RESERVED: [&str; 2] = [NETWORK, "harness"];

impl Sim {
    /// Checks names and aliases, and the faults unless a subject has checked them by its own rules.
    ///
    /// # Errors
    ///
    /// [`Invalid`] with the problem and the remedy.
    pub(crate) fn validate(&self) -> Result<(), Invalid> {
        self.check_names()?;
        self.check_core()?;
        if self.is_checked { Ok(()) } else { self.check_faults() }
    }

    /// Checks the triggers and actions of all faults: the processes exist, and each fault suits its target.
    pub(super) fn check_faults(&self) -> Result<(), Invalid> {
        for (number, fault) in self.faults.iter().enumerate() {
            let path = FieldPath::top("fault").index(number);
            if let Trigger::After { process, nth, .. } = &fault.when {
                let path = path.key("when");
                if !self.cast.emits(process) {
                    let known = self.cast.names.join(", ");
                    let problem = format!("unknown process `{process}` in `when`: the world has {known}");
                    return Err(path.key("process").says(problem));
                }
                if *nth == 0 {
                    return Err(path.key("nth").says("`nth` is 0: passings of a point are counted from 1"));
                }
            }
            let path = path.key("what");
            let verb = fault.what.verb();
            fault.what.check(&FaultCheck {
                verb,
                path: &path,
                scene: &self.cast,
                faults: &self.faults,
                number,
            })?;
        }
        Ok(())
    }

    /// Checks the core phase, if there is one, and the groups of servers of which a majority is enough.
    pub(super) fn check_core(&self) -> Result<(), Invalid> {
        for (at, name) in self.quorums.iter().flatten().enumerate() {
            if self.cast.role(name) != Some(Role::Server) {
                let known = self.cast.with_role(Role::Server).join(", ");
                let problem = format!("`{name}` of a quorum is no server: the world has {known}");
                return Err(FieldPath::top("quorum").index(at).says(problem));
            }
        }
        let Some(core) = &self.core else { return Ok(()) };
        let limit = Span(self.limit);
        core.check_times(limit, &self.faults)?;
        core.check_processes(&self.cast, &self.quorums)
    }

    fn check_names(&self) -> Result<(), Invalid> {
        let path = FieldPath::top("process");
        let aliases = || self.aliases.iter().map(|(alias, _)| alias.as_str());
        for (at, name) in self.cast.names.iter().enumerate() {
            let problem = if name.is_empty() {
                "a process has no name: give it one".to_owned()
            } else if RESERVED.contains(&name.as_str()) {
                format!("`{name}` is the simulator's own name: call the process something else")
            } else if self.cast.names[..at].contains(name) {
                format!("two processes are called `{name}`: give each a name of its own")
            } else if self.cast.clusters.contains(name) {
                format!("`{name}` is a cluster of servers as well: call the process something else")
            } else if aliases().any(|alias| alias == name) {
                format!("`{name}` is an alias as well: call the process something else")
            } else {
                continue;
            };
            return Err(path.index(at).says(problem));
        }
        match self.aliases.iter().find(|(_, name)| !self.cast.names.contains(name)) {
            None => Ok(()),
            Some((alias, name)) => {
                let known = self.cast.names.join(", ");
                Err(FieldPath::top("alias").says(format!(
                    "the alias `{alias}` names `{name}`, which is no process: the world has {known}"
                )))
            }
        }
    }
}
