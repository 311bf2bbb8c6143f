//! Requests and their answers, found by their owners and tokens: they replace messages in a history without
//! any.

use std::collections::BTreeMap;

use history::{Kind, Name};

#[derive(Default)]
pub(super) struct Links {
    /// Pairs of events: a cause, and its effect in another process.
    pub(super) found: Vec<(usize, usize)>,
    /// Requests in flight, and answers that their clients have not got yet.
    under_way: BTreeMap<(Step, Name), usize>,
}

/// A step of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Asked,
    Stored,
    Releases,
    Deleted,
    Writes,
    Written,
}

impl Links {
    /// Follows the event with the number `mark`.
    pub(super) fn observe(&mut self, kind: &Kind, mark: usize) {
        match kind {
            Kind::LeaseRequested { owner, .. } | Kind::LeaseRetried { owner, .. } => {
                self.begin(Step::Asked, owner.clone(), mark);
            }
            Kind::KeyGranted { owner, .. } => {
                self.join(Step::Asked, owner, mark);
                self.begin(Step::Stored, owner.clone(), mark);
            }
            Kind::LeaseAcquired { owner, .. } => self.end(Step::Stored, owner, mark),
            Kind::LeaseReleaseRequested { owner, .. } => self.begin(Step::Releases, owner.clone(), mark),
            Kind::KeyDeleted { owner, .. } => {
                self.join(Step::Releases, owner, mark);
                self.begin(Step::Deleted, owner.clone(), mark);
            }
            Kind::LeaseReleased { owner, .. } => self.end(Step::Deleted, owner, mark),
            Kind::WriteSent { owner, token, seq, .. } => {
                self.begin(Step::Writes, write(owner, *token, *seq), mark);
            }
            Kind::WriteAccepted { owner, token, seq, .. }
            | Kind::WriteRepeated { owner, token, seq, .. }
            | Kind::WriteRejected { owner, token, seq, .. } => {
                let write = write(owner, *token, *seq);
                self.join(Step::Writes, &write, mark);
                self.begin(Step::Written, write, mark);
            }
            Kind::WriteAnswered { owner, token, seq, .. } => {
                self.end(Step::Written, &write(owner, *token, *seq), mark);
            }
            Kind::ConditionalSent { owner, expected, .. } => {
                self.begin(Step::Writes, write(owner, *expected, None), mark);
            }
            Kind::ConditionalAccepted { owner, expected, .. }
            | Kind::ConditionalRepeated { owner, expected, .. }
            | Kind::ConditionalRejected { owner, expected, .. } => {
                let write = write(owner, *expected, None);
                self.join(Step::Writes, &write, mark);
                self.begin(Step::Written, write, mark);
            }
            Kind::ConditionalAnswered { owner, expected, .. } => {
                self.end(Step::Written, &write(owner, *expected, None), mark);
            }
            _ => {}
        }
    }

    fn begin(&mut self, step: Step, of: Name, mark: usize) {
        self.under_way.insert((step, of), mark);
    }

    /// Joins the event to the one that began the step. The step may have further effects.
    fn join(&mut self, step: Step, of: &Name, mark: usize) {
        if let Some(begun) = self.under_way.get(&(step, of.clone())) {
            self.found.push((*begun, mark));
        }
    }

    /// Joins the event to the one that began the step, and ends the step.
    fn end(&mut self, step: Step, of: &Name, mark: usize) {
        self.join(step, of, mark);
        self.under_way.remove(&(step, of.clone()));
    }
}

/// Returns the identity that a write and its answer share.
fn write(owner: &Option<Name>, number: u64, seq: Option<u64>) -> Name {
    let owner = owner.as_ref().map_or("", Name::as_str);
    Name::from(format!("{owner} {number} {}", seq.unwrap_or(u64::MAX)).as_str())
}
