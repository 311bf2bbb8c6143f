//! Questions to a mutant: its name, its systems, and whether a violation convicts it.

use sim::explore::{Broken, Violation};

use super::Mutant;
use crate::{Options, System};

impl Mutant {
    /// Returns the mutant with this name in schedule files.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|mutant| mutant.name() == name)
    }

    /// Returns the signs that convict it in a search, each by itself: its check, or else its verdicts. Any
    /// other broken promise is not its mistake, or only follows from it.
    pub fn signs(self) -> Vec<Broken> {
        match self.check() {
            Some(check) => vec![Broken::Check(check.to_owned())],
            None => self.shows().iter().copied().map(Broken::Verdict).collect(),
        }
    }

    /// Returns true if the violation convicts it.
    pub fn is_convicted_by<O>(self, violation: &Violation<O>) -> bool {
        self.signs().iter().any(|sign| violation.shows(sign))
    }

    /// Changes options with which the mistake can't be shown.
    pub fn suit(self, options: &mut Options) {
        self.exhibit().suit(options);
    }

    /// Returns the part that makes the mistake: `lock`, `worker`, `resource` or `deployment`.
    pub fn made_by(self) -> &'static str {
        self.exhibit().made_by()
    }

    /// Returns true if it can be made on this system.
    pub fn applies_to(self, system: System) -> bool {
        self.exhibit().applies_to(system)
    }

    /// Returns the systems on which it can be shown. Leaves out examples of systems.
    pub fn systems(self) -> Vec<System> {
        let exhibit = self.exhibit();
        System::searched().filter(|system| exhibit.applies_to(*system)).collect()
    }
}

impl std::str::FromStr for Mutant {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.iter().map(|mutant| mutant.name()).collect::<Vec<_>>().join(", ");
        Self::named(name).ok_or_else(|| format!("unknown mutant `{name}`: known are {}", known()))
    }
}

impl std::fmt::Display for Mutant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
