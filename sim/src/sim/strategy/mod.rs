//! The strategies by which the faults of a random schedule are drawn. Each draws from the seed alone: a seed
//! and a strategy identify a schedule.

mod aimed;
mod combined;
mod moments;
mod ordered;
mod swarm;
mod uniform;

use super::steps::Step;
use crate::entropy::Site;
use crate::faults::{Fault, Faults, Scene};

history::names! {
    /// A way to draw the faults of a random schedule.
    pub enum Strategy as "strategy" {
        /// Each fault by itself: its kind by fixed weights, and a point or a time at random.
        Uniform = "uniform",
        /// Each fault at a point that the run without faults passes: points that are passed once are as
        /// likely as those that are passed often. Most schedules instead have faults at a moment at which
        /// protocols are most exposed, such as a request in flight.
        Aimed = "aimed",
        /// Some kinds of faults are left out of the schedule, and the others have weights of their own. From
        /// Groce et al., "Swarm Testing", ISSTA 2012.
        Swarm = "swarm",
        /// A few pauses of processes and delays of links, at moments of the run without faults that are all
        /// equally likely. From Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of
        /// Finding Bugs", ASPLOS 2010.
        Ordered = "ordered",
        /// Continues schedules whose runs have reached something new: keeps their beginning, and draws the
        /// rest anew. Without a schedule to continue, draws as the aimed strategy.
        Feedback = "feedback",
    }
}

/// The world and the randomness from which a strategy draws.
pub(crate) struct Material<'a> {
    pub(crate) known: &'a Faults,
    /// The processes and links.
    pub(crate) scene: &'a dyn Scene,
    /// The sources of randomness, by their names.
    pub(crate) site: &'a dyn Fn(&str) -> Site,
    /// Runs the schedule without faults, and returns its steps.
    pub(crate) steps: &'a dyn Fn() -> Vec<Step>,
}

impl Strategy {
    /// Returns the number of runs without faults that it takes to draw a schedule: a strategy that aims first
    /// learns the points of the schedule.
    pub fn learning_runs(self) -> u64 {
        match self {
            Self::Uniform | Self::Swarm => 0,
            Self::Aimed | Self::Ordered | Self::Feedback => 1,
        }
    }

    /// Draws faults. Some may not suit the schedule, such as a second promotion: the caller drops them.
    pub(crate) fn faults(self, material: &Material<'_>) -> Vec<Fault> {
        match self {
            Self::Uniform => uniform::faults(material),
            Self::Aimed | Self::Feedback => aimed::faults(material),
            Self::Swarm => swarm::faults(material),
            Self::Ordered => ordered::faults(material),
        }
    }
}
