//! Exchangeable processes: a fault of one may mirror that of another.

use super::reach::Reach;
use crate::sim::Step;

/// The groups of exchangeable processes.
#[derive(Default)]
pub(super) struct Exchange(Vec<Vec<String>>);

impl Exchange {
    /// Takes the groups of a subject.
    pub(super) fn of(groups: Vec<Vec<String>>) -> Self {
        Self(groups)
    }

    /// Returns true if a first fault before the step at `index` mirrors one that is placed on the first
    /// process of a group. The step must be that of another process of the group, which has received nothing
    /// yet: until then all of them do the same. The same step of the first process must have a point before
    /// it, too.
    pub(super) fn mirrors(&self, steps: &[Step], index: usize, reach: &Reach) -> bool {
        let Some(step) = steps.get(index) else { return false };
        let name = step.process.as_str();
        let Some(group) = self.0.iter().find(|group| group[1..].iter().any(|other| other == name)) else {
            return false;
        };
        let own = |name: &str, steps: &[Step]| -> Vec<Step> {
            steps.iter().filter(|step| step.process.as_str() == name).cloned().collect()
        };
        let mine = own(name, &steps[..=index]);
        let firsts = own(&group[0], steps);
        let is_like = |(mine, other): (&Step, &Step)| {
            !mine.point.as_str().starts_with("receives from ") && mine.point == other.point
        };
        let Some(mirrored) = firsts.get(mine.len() - 1) else { return false };
        let has_point_before = !steps[0].is_same_point(mirrored);
        reach.names(name) && has_point_before && mine.iter().zip(&firsts).all(is_like)
    }
}
