//! The order of a run's steps: faults strike and are healed in the order of the plan, however late the run
//! is. In another order a worker that is killed again before it was restarted would be started twice.

use std::collections::VecDeque;
use std::time::Duration;

use super::fault::Fault;
use super::plan::Planned;

/// The coming steps. All times are since the run began.
pub(super) struct Timeline<'a> {
    coming: VecDeque<&'a Planned>,
    lasting: Vec<Lasting>,
}

/// A fault that struck and is not healed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lasting {
    pub(super) fault: Fault,
    /// The time at which the plan heals it.
    planned: Duration,
    /// The time at which it is healed: later than planned if it struck late.
    due: Duration,
}

impl Lasting {
    /// Returns the fault to heal `again` after `now`.
    pub(super) fn again(self, now: Duration, again: Duration) -> Self {
        Self { planned: self.planned + again, due: now + again, ..self }
    }
}

/// A step of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Strike(&'a Planned),
    Heal(Lasting),
}

impl<'a> Timeline<'a> {
    pub(super) fn new(faults: &'a [Planned]) -> Self {
        Self { coming: faults.iter().collect(), lasting: Vec::new() }
    }

    /// Returns the number of faults that have not struck yet.
    pub(super) fn coming(&self) -> usize {
        self.coming.len()
    }

    /// Returns the time of the next step; `None` after the last one.
    pub(super) fn due(&self) -> Option<Duration> {
        match (self.next_heal(), self.coming.front()) {
            (Some(place), _) => Some(self.lasting[place].due),
            (None, Some(planned)) => Some(at(planned)),
            (None, None) => None,
        }
    }

    /// Takes the next step.
    pub(super) fn step(&mut self) -> Option<Step<'a>> {
        match self.next_heal() {
            Some(place) => Some(Step::Heal(self.lasting.remove(place))),
            None => self.coming.pop_front().map(Step::Strike),
        }
    }

    /// Adds `fault`, which struck at `now` as `planned` says.
    pub(super) fn struck(&mut self, planned: &Planned, fault: Fault, now: Duration) {
        let lasts = Duration::from_millis(planned.lasts_ms);
        self.lasting.push(Lasting { fault, planned: at(planned) + lasts, due: now + lasts });
    }

    /// Adds a fault that is to be healed once more.
    pub(super) fn push(&mut self, lasting: Lasting) {
        self.lasting.push(lasting);
    }

    /// Returns the place of the fault to heal next, unless another fault strikes before.
    fn next_heal(&self) -> Option<usize> {
        let (place, first) = self.lasting.iter().enumerate().min_by_key(|(_, lasting)| lasting.planned)?;
        let strikes_before = self.coming.front().is_some_and(|planned| at(planned) < first.planned);
        (!strikes_before).then_some(place)
    }
}

fn at(planned: &Planned) -> Duration {
    Duration::from_millis(planned.at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILL: Fault = Fault::KillWorker { worker: 3 };

    fn planned(at_ms: u64, lasts_ms: u64) -> Planned {
        Planned { at_ms, lasts_ms, fault: KILL, aimed: false }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_late_fault_is_healed_before_a_later_one_strikes() {
        let plan = [planned(1000, 500), planned(4000, 200)];
        let mut timeline = Timeline::new(&plan);
        assert_eq!(timeline.step(), Some(Step::Strike(&plan[0])));
        // It strikes after the planned time of the second one.
        timeline.struck(&plan[0], KILL, ms(5000));
        assert_eq!(timeline.due(), Some(ms(5500)));
        let Some(Step::Heal(first)) = timeline.step() else { panic!("the second one struck first") };
        assert_eq!((first.fault, timeline.coming()), (KILL, 1));
        assert_eq!(timeline.due(), Some(ms(4000)));
        assert_eq!(timeline.step(), Some(Step::Strike(&plan[1])));
        assert_eq!((timeline.due(), timeline.step()), (None, None));
    }

    #[test]
    fn faults_that_overlap_in_the_plan_overlap_in_the_run() {
        let plan = [planned(1000, 5000), planned(2000, 500)];
        let mut timeline = Timeline::new(&plan);
        for planned in &plan {
            assert_eq!(timeline.step(), Some(Step::Strike(planned)));
            timeline.struck(planned, planned.fault, ms(planned.at_ms));
        }
        assert_eq!(timeline.due(), Some(ms(2500)));
        let Some(Step::Heal(second)) = timeline.step() else { panic!("nothing to heal") };
        timeline.push(second.again(ms(2500), ms(9000)));
        assert_eq!(timeline.due(), Some(ms(6000)));
        assert!(matches!(timeline.step(), Some(Step::Heal(_))));
        assert_eq!(timeline.due(), Some(ms(11_500)));
    }
}
