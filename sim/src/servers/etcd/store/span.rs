//! A key, or a range of keys, as requests write it.

use std::borrow::Cow;
use std::ops::Bound;

/// The keys of a request. With an empty `end` it is the key alone; with one zero byte as `end`, all keys from
/// `key` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Span<'a> {
    key: Cow<'a, [u8]>,
    end: Cow<'a, [u8]>,
}

impl<'a> Span<'a> {
    pub(in super::super) fn new(key: &'a [u8], end: &'a [u8]) -> Self {
        Self { key: Cow::Borrowed(key), end: Cow::Borrowed(end) }
    }

    pub(in super::super) fn into_owned(self) -> Span<'static> {
        Span { key: Cow::Owned(self.key.into_owned()), end: Cow::Owned(self.end.into_owned()) }
    }

    /// Returns the key, if the span is a single key.
    pub(in super::super) fn single(&self) -> Option<&[u8]> {
        self.end.is_empty().then_some(&*self.key)
    }

    /// Returns true if no key can be in it.
    pub(in super::super) fn is_empty(&self) -> bool {
        !self.end.is_empty() && !self.is_open() && self.key >= self.end
    }

    pub(in super::super) fn contains(&self, key: &[u8]) -> bool {
        match self.single() {
            Some(single) => single == key,
            None => key >= &*self.key && (self.is_open() || key < &*self.end),
        }
    }

    /// Returns the bounds for a sorted map. The span must not be empty: a sorted map panics on bounds in the
    /// wrong order.
    pub(in super::super) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let end = match (&*self.end, self.is_open()) {
            ([], _) => Bound::Included(&*self.key),
            (_, true) => Bound::Unbounded,
            (end, false) => Bound::Excluded(end),
        };
        (Bound::Included(&self.key), end)
    }

    fn is_open(&self) -> bool {
        *self.end == [0]
    }
}

/// Returns the end of the range of all keys that begin with `prefix`.
pub(in super::super) fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    vec![0]
}
