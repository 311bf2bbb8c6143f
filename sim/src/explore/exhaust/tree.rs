//! The placements of faults in a run.

use std::collections::BTreeMap;

use super::candidate::Candidate;
use crate::faults::{Fault, Trigger};
use crate::sim::Step;
use crate::span::Span;

/// A fault to place in a run, beside the faults that the run has.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    pub(super) fault: Fault,
    /// The step after which it strikes.
    pub(super) step: Step,
}

/// The placements of a run, and the numbers of those left out.
#[derive(Default)]
pub(super) struct Placements {
    pub(super) placed: Vec<Placement>,
    /// Number left out: they touch no step, or first touch the same step as one that is placed.
    pub(super) alike: u64,
}

/// The points of a run at which faults may be placed.
pub(super) struct Places<'a> {
    pub(super) steps: &'a [Step],
    /// True for each step at which a fault can be aimed.
    pub(super) is_point: Vec<bool>,
    /// The first step at which a fault may be placed: the step of the previous fault.
    pub(super) first: usize,
}

impl Places<'_> {
    /// Places every candidate at every point.
    pub(super) fn all(&self, candidates: &[Candidate]) -> Placements {
        let points = (self.first..self.steps.len()).filter(|at| self.is_point[*at]);
        let placed = points.flat_map(|at| candidates.iter().map(move |candidate| (at, candidate)));
        let placed = placed.map(|(at, candidate)| self.place(at, candidate)).collect();
        Placements { placed, ..Placements::default() }
    }

    /// Places each candidate at the last point before each step that it touches.
    pub(super) fn pruned(&self, candidates: &[Candidate]) -> Placements {
        let mut found = Placements::default();
        let mut last_of: BTreeMap<usize, usize> = BTreeMap::new();
        let mut point = None;
        // A fault that touches a step is placed at a point before it; one that outlasts all steps, at the
        // last point.
        for index in self.first..=self.steps.len() {
            let before = index.checked_sub(1).filter(|before| *before >= self.first);
            point = before.filter(|before| self.is_point[*before]).or(point);
            let Some(at) = point else { continue };
            for (number, candidate) in candidates.iter().enumerate() {
                let is_touched = match self.steps.get(index) {
                    Some(step) => candidate.touched.contains(step),
                    None => candidate.touched.outlasts(),
                };
                if is_touched && last_of.insert(number, at) != Some(at) {
                    found.placed.push(self.place(at, candidate));
                }
            }
        }
        let points = self.is_point[self.first..].iter().filter(|is_point| **is_point).count();
        let all = (points * candidates.len()) as u64;
        found.alike = all - found.placed.len() as u64;
        found
    }

    fn place(&self, at: usize, candidate: &Candidate) -> Placement {
        let step = self.steps[at].clone();
        let when = Trigger::After {
            process: step.process.to_string(),
            point: step.point.to_string(),
            nth: step.nth,
            plus: Span::ZERO,
        };
        Placement { fault: Fault { when, what: candidate.what.clone() }, step }
    }
}
