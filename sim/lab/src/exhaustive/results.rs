//! The file of the results.

use std::num::NonZeroU8;

use resource::Fencing;
use serde::{Deserialize, Serialize};
use sim::explore::exhaust::{Exhausted, Needed};

use crate::museum::Mutant;
use crate::{Options, System};

/// The results of exhaustive searches of the small workloads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// The searches of correct locks.
    pub searches: Vec<Searched>,
    /// The mistakes of the museum, on each system on which they can be made.
    pub mistakes: Vec<Mistake>,
}

/// The workload of a search: the system, fencing, and the number of keys that each worker locks at once.
pub type Workload = (System, Fencing, NonZeroU8);

fn one() -> NonZeroU8 {
    NonZeroU8::MIN
}

fn is_one(keys: &NonZeroU8) -> bool {
    *keys == one()
}

/// A search of the small workload on one system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Searched {
    /// The system.
    pub system: System,
    /// `on` if the resource checks fencing tokens. The promises of fencing are demanded in any case.
    pub fencing: Fencing,
    /// The number of keys that each worker locks at once.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub keys: NonZeroU8,
    /// The largest number of faults of a placement.
    pub faults: usize,
    /// Number of placements that were run.
    pub placements: u64,
    /// Number of first faults below which not all placements were run.
    pub remaining: usize,
    /// The causes of the smallest violations.
    pub causes: Vec<String>,
    /// Time of the search; absent if part of it came from a progress file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// Time and threads of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Number of threads.
    pub threads: usize,
    /// The time that it took, in seconds.
    pub seconds: f64,
    /// The processor time of all threads, in seconds.
    pub processor_seconds: f64,
    /// True for a program that was built with `--release`.
    pub is_release: bool,
}

/// A mistake of the museum on one system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistake {
    /// The name of the mutant.
    pub mistake: String,
    /// The system.
    pub system: System,
    /// The least number of faults that shows it: a number, or `more than` one.
    pub faults: String,
}

impl Results {
    /// Parses the text of the file.
    ///
    /// # Errors
    ///
    /// If it is no JSON, or has other fields.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Returns the text of the file.
    ///
    /// # Errors
    ///
    /// None that can occur: all fields have a form in JSON.
    pub fn to_json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Adds a search. It replaces the one of the same system, fencing, number of keys and number of faults.
    pub fn record(&mut self, searched: Searched) {
        match self.searches.iter_mut().find(|known| known.search() == searched.search()) {
            Some(known) => *known = searched,
            None => self.searches.push(searched),
        }
    }

    /// Returns the search for one fault of this workload, if it is kept.
    pub fn search(&self, workload: Workload) -> Option<&Searched> {
        self.searches.iter().find(|known| known.search() == (workload, 1))
    }
}

impl Searched {
    /// Returns the result of a search, without its cost.
    pub fn of((system, fencing, keys): Workload, found: &Exhausted<Options>) -> Self {
        Self {
            system,
            fencing,
            keys,
            faults: found.faults,
            placements: found.runs,
            remaining: found.remaining,
            causes: found.breaks.iter().map(|found| found.cause.clone()).collect(),
            cost: None,
        }
    }

    /// Returns the workload, and the number of faults.
    fn search(&self) -> (Workload, usize) {
        ((self.system, self.fencing, self.keys), self.faults)
    }
}

impl Mistake {
    /// Returns the row of a mistake.
    pub fn of(mutant: Mutant, system: System, needed: &Needed<Options>) -> Self {
        Self { mistake: mutant.name().to_owned(), system, faults: needed.to_string() }
    }
}
