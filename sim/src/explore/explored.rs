//! The options that let a search pass without work, and a search that returns what its runs exercised.

use super::exercise::Exercised;
use super::harness::{Failure, Search};
use crate::sim::Subject;

impl<S> Search<S> {
    /// Accepts that no process enters a section, passes a point, gets a lease or writes. Use it for worlds
    /// that only run, such as those whose own asserts are the check.
    pub fn allow_idle_processes(mut self) -> Self {
        self.allowed.idle_processes = true;
        self
    }

    /// Accepts that servers refuse commands as unknown. Use it for code that handles the refusal, such as a
    /// client that tries a newer command first.
    pub fn allow_unknown_commands(mut self) -> Self {
        self.allowed.unknown_commands = true;
        self
    }

    /// Accepts that a section or a key called `name` matches no lock of a simulated server. Use it for a lock
    /// that the world's own services keep, or that exists only in the processes.
    pub fn allow_unmatched(mut self, name: &str) -> Self {
        self.allowed.unmatched.insert(name.to_owned());
        self
    }
}

impl<S: Subject> Search<S> {
    /// Searches as [`Search::find`] does, and also returns what the runs have exercised. A search that has
    /// checked nothing is no error here.
    ///
    /// # Errors
    ///
    /// The problem with the environment, with a kept file, or with the world that the subject builds.
    ///
    /// # Example
    ///
    /// ```
    /// use sim::{Process, Sim};
    ///
    /// let subject = |sim: &mut Sim| {
    ///     sim.process("a", |process: Process| async move { process.point("moving money") });
    /// };
    /// let (failure, exercised) = sim::check("points", subject).schedules(10).explored()?;
    /// assert!(failure.is_none());
    /// assert!(exercised.points() > 0 && exercised.runs() > 10);
    /// # Ok::<(), String>(())
    /// ```
    pub fn explored(&self) -> Result<(Option<Failure>, Exercised), String> {
        let mut exercised = Exercised::default();
        self.search(&mut exercised).map(|failure| (failure, exercised))
    }

    /// Searches as [`Search::find`] does, and also returns what the runs have exercised.
    pub(super) fn checked(&self) -> Result<(Option<Failure>, Exercised), String> {
        let (failure, exercised) = self.explored()?;
        let gaps = if failure.is_none() { exercised.gaps(&self.allowed) } else { Vec::new() };
        if gaps.is_empty() {
            return Ok((failure, exercised));
        }
        let text = format!("no schedule fails, but not all was checked:\n  {}", gaps.join("\n  "));
        Err(format!("{}: {text}\n\n{exercised}", self.name))
    }
}
