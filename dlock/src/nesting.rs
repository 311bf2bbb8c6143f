//! The nesting of a reentrant lock: how many sections of a scope are open on each key. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The keys of one scope, each with a lease `L` that its open sections share.
pub(crate) struct Nesting<K, L>(BTreeMap<K, State<L>>);

enum State<L> {
    /// One acquire of the scope is in progress.
    Acquiring,
    /// So many sections are open, one at least.
    Held { lease: Arc<L>, depth: usize },
}

/// The next step of a section that begins on a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn<L> {
    /// No section is open: acquire the lease, then call [`Nesting::acquired`] or [`Nesting::failed`].
    Acquire,
    /// Another acquire of the scope is in progress: wait for its end, and begin again.
    Wait,
    /// A section is open: the new one shares its lease, and is open from now on.
    Nested(Arc<L>),
}

impl<K: Ord + Clone, L> Nesting<K, L> {
    /// Begins a section on `key`; after [`Turn::Acquire`] all others wait. A nested section opens only if
    /// `check` trusts the lease.
    ///
    /// # Errors
    ///
    /// The error of `check`. The open sections stay open, so that nothing is acquired in their place.
    pub(crate) fn begin<E>(
        &mut self,
        key: &K,
        check: impl FnOnce(&L) -> Result<(), E>,
    ) -> Result<Turn<L>, E> {
        match self.0.get_mut(key) {
            Some(State::Acquiring) => Ok(Turn::Wait),
            Some(State::Held { lease, depth }) => {
                check(lease)?;
                *depth += 1;
                Ok(Turn::Nested(Arc::clone(lease)))
            }
            None => {
                self.0.insert(key.clone(), State::Acquiring);
                Ok(Turn::Acquire)
            }
        }
    }

    /// Opens the first section with a lease that was granted.
    pub(crate) fn acquired(&mut self, key: K, lease: L) -> Arc<L> {
        let lease = Arc::new(lease);
        self.0.insert(key, State::Held { lease: Arc::clone(&lease), depth: 1 });
        lease
    }

    /// Ends an acquire that gave no lease: the next section acquires.
    pub(crate) fn failed(&mut self, key: &K) {
        if matches!(self.0.get(key), Some(State::Acquiring)) {
            self.0.remove(key);
        }
    }

    /// Returns the number of open sections on `key`.
    pub(crate) fn depth(&self, key: &K) -> usize {
        match self.0.get(key) {
            Some(State::Held { depth, .. }) => *depth,
            _ => 0,
        }
    }

    /// Closes a section on `key`. Returns the lease if it was the last one: release it.
    pub(crate) fn leave(&mut self, key: &K) -> Option<Arc<L>> {
        match self.0.get_mut(key) {
            Some(State::Held { depth, .. }) if *depth > 1 => {
                *depth -= 1;
                None
            }
            Some(State::Held { lease, .. }) => {
                let lease = Arc::clone(lease);
                self.0.remove(key);
                Some(lease)
            }
            Some(State::Acquiring) | None => None,
        }
    }
}

impl<K, L> Default for Nesting<K, L> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A step of one of several tasks that share a scope.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        /// Begins a section, whose lease is still valid or not.
        Begin(bool),
        /// The acquire in progress is answered with a lease.
        Grant,
        /// The acquire in progress fails.
        Fail,
        /// The section numbered so, modulo the open ones, ends.
        Leave(usize),
    }

    fn step() -> impl Strategy<Value = (u8, Step)> {
        let step = prop_oneof![
            4 => prop::bool::weighted(0.8).prop_map(Step::Begin),
            3 => Just(Step::Grant),
            1 => Just(Step::Fail),
            3 => any::<usize>().prop_map(Step::Leave),
        ];
        (0..2u8, step)
    }

    /// The state of a key of the scope: an acquire in progress, or a lease with its open sections.
    #[derive(Default)]
    struct Model {
        is_acquiring: bool,
        open: Vec<Arc<u64>>,
    }

    /// Does `step` on `key` in both, and compares.
    fn follow(nesting: &mut Nesting<u8, u64>, model: &mut Model, key: u8, step: Step, next: &mut u64) {
        match step {
            Step::Begin(is_valid) => match nesting.begin(&key, |_| is_valid.then_some(()).ok_or("lost")) {
                Ok(Turn::Acquire) => {
                    assert!(!model.is_acquiring && model.open.is_empty(), "a section is open already");
                    model.is_acquiring = true;
                }
                Ok(Turn::Wait) => assert!(model.is_acquiring, "nothing to wait for"),
                Ok(Turn::Nested(lease)) => {
                    assert!(is_valid, "nested in a lease that is lost");
                    assert_eq!(&lease, &model.open[0], "another lease than that of the open sections");
                    model.open.push(lease);
                }
                Err("lost") => assert!(!is_valid && !model.open.is_empty(), "refused without a reason"),
                Err(other) => panic!("{other}"),
            },
            Step::Grant if model.is_acquiring => {
                *next += 1;
                model.is_acquiring = false;
                model.open.push(nesting.acquired(key, *next));
            }
            Step::Fail if model.is_acquiring => {
                model.is_acquiring = false;
                nesting.failed(&key);
            }
            Step::Leave(which) if !model.open.is_empty() => {
                let lease = model.open.remove(which % model.open.len());
                assert_eq!(nesting.leave(&key), model.open.is_empty().then_some(lease));
            }
            Step::Grant | Step::Fail | Step::Leave(_) => {}
        }
        assert_eq!(nesting.depth(&key), model.open.len());
    }

    proptest! {
        #[test]
        fn a_lease_is_released_by_the_last_section_alone(steps in prop::collection::vec(step(), 0..60)) {
            let (mut nesting, mut next) = (Nesting::default(), 0);
            let mut models = [Model::default(), Model::default()];
            for (key, step) in steps {
                follow(&mut nesting, &mut models[usize::from(key)], key, step, &mut next);
            }
        }
    }
}
