//! A subject that excuses fewer verdicts.

use std::collections::BTreeSet;

use history::VerdictKind;

use crate::faults::Faults;
use crate::{Draw, Invalid, Schedule, Sim, Subject};

/// The same subject, but these verdicts are always violations. It holds an arm without fencing to the
/// promises of fencing.
#[derive(Clone, Debug)]
pub struct Demanding<S> {
    /// The subject.
    pub subject: S,
    /// The verdicts that are always violations.
    pub demanded: BTreeSet<VerdictKind>,
}

impl<S: Subject> Subject for Demanding<S> {
    type Options = S::Options;

    fn arm(&self) -> &'static str {
        self.subject.arm()
    }

    fn arms(&self) -> &'static [&'static str] {
        self.subject.arms()
    }

    fn draw(&self, from: &mut Draw) -> Self::Options {
        self.subject.draw(from)
    }

    fn build(&self, options: &Self::Options, sim: &mut Sim) -> Result<(), Invalid> {
        self.subject.build(options, sim)
    }

    fn smaller(&self, options: &Self::Options) -> Vec<Self::Options> {
        self.subject.smaller(options)
    }

    fn task(&self, options: &Self::Options, process: &str) -> Option<String> {
        self.subject.task(options, process)
    }

    fn schedule(&self, from: &mut Draw) -> Result<Schedule<Self::Options>, Invalid> {
        self.subject.schedule(from)
    }

    fn check(&self, schedule: &Schedule<Self::Options>, sim: &Sim) -> Result<(), Invalid> {
        self.subject.check(schedule, sim)
    }

    fn excused(&self, schedule: &Schedule<Self::Options>) -> BTreeSet<VerdictKind> {
        self.subject.excused(schedule).difference(&self.demanded).copied().collect()
    }

    fn faults(&self) -> Faults {
        self.subject.faults()
    }
}
