//! The times at which named things expire: the fields of a hash, or the first fields of a database's hashes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Times in milliseconds since the Unix epoch, by name and in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deadlines {
    by_name: BTreeMap<Arc<[u8]>, i64>,
    by_time: BTreeSet<(i64, Arc<[u8]>)>,
}

impl Deadlines {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<i64> {
        self.by_name.get(name).copied()
    }

    /// Sets the time of `name`, or removes it.
    pub(crate) fn set(&mut self, name: &[u8], at: Option<i64>) {
        if self.get(name) == at {
            return;
        }
        if let Some((name, former)) = self.by_name.remove_entry(name) {
            self.by_time.remove(&(former, name));
        }
        if let Some(at) = at {
            let name: Arc<[u8]> = name.into();
            self.by_name.insert(name.clone(), at);
            self.by_time.insert((at, name));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.by_name.clear();
        self.by_time.clear();
    }

    /// Returns the earliest time.
    pub(crate) fn first(&self) -> Option<i64> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Returns the names whose time has passed at `now_ms`, in order of time.
    pub(crate) fn passed(&self, now_ms: i64) -> impl Iterator<Item = &Arc<[u8]>> {
        self.by_time.iter().take_while(move |(at, _)| *at < now_ms).map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_last_time_only() {
        let mut deadlines = Deadlines::default();
        for (name, at) in [("a", Some(5)), ("b", Some(3)), ("a", Some(1)), ("b", None), ("c", Some(1))] {
            deadlines.set(name.as_bytes(), at);
        }
        assert_eq!((deadlines.get(b"a"), deadlines.get(b"b"), deadlines.first()), (Some(1), None, Some(1)));
        assert_eq!(deadlines.passed(1).count(), 0);
        let passed: Vec<_> = deadlines.passed(2).map(|name| name[0]).collect();
        assert_eq!(passed, b"ac");
    }
}
