//! Sorted sets. Source: `t_zset.c` of Redis 7.0.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::COMPACT_BYTES_MAX;
use super::list::End;

/// The most members in the compact encoding.
const LISTPACK_MEMBERS_MAX: usize = 128;

/// A member and its score, which is never NaN.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scored {
    pub(crate) member: Arc<[u8]>,
    pub(crate) score: f64,
}

/// Different texts in order of their scores; those with the same score in order of their bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SortedSet {
    order: Vec<Scored>,
    scores: BTreeMap<Arc<[u8]>, f64>,
    /// It has outgrown the compact encoding.
    is_skiplist: bool,
}

impl SortedSet {
    /// Creates an empty set in the large encoding.
    pub(crate) fn large() -> Self {
        Self { is_skiplist: true, ..Self::default() }
    }

    /// Returns the set in the encoding that suits its size.
    pub(crate) fn resized(self) -> Self {
        let mut set = Self::default();
        self.order.iter().for_each(|item| _ = set.set(&item.member, item.score));
        set
    }

    pub(super) fn encoding(&self) -> &'static str {
        if self.is_skiplist { "skiplist" } else { "listpack" }
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns all members, in order.
    pub(crate) fn items(&self) -> &[Scored] {
        &self.order
    }

    pub(crate) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    /// Returns the place of a member.
    pub(crate) fn rank(&self, member: &[u8]) -> Option<usize> {
        let score = self.score(member)?;
        self.place(score, member).ok()
    }

    /// Sets a member's score. Returns true if the member is new.
    pub(crate) fn set(&mut self, member: &[u8], score: f64) -> bool {
        let former = self.score(member);
        if let Some(former) = former {
            if former == score {
                return false;
            }
            self.take_out(former, member);
        } else if self.len() >= LISTPACK_MEMBERS_MAX || member.len() > COMPACT_BYTES_MAX {
            self.is_skiplist = true;
        }
        // The compact encoding stores whole numbers as integers: there is no negative zero.
        let score = if score == 0.0 && !self.is_skiplist { 0.0 } else { score };
        let member: Arc<[u8]> = member.into();
        let at = self.place(score, &member).unwrap_or_else(|at| at);
        self.order.insert(at, Scored { member: member.clone(), score });
        self.scores.insert(member, score);
        former.is_none()
    }

    /// Removes a member. Returns whether it existed.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let Some(score) = self.scores.remove(member) else { return false };
        self.take_out(score, member);
        true
    }

    /// Removes the members at the places `range`.
    pub(crate) fn remove_range(&mut self, range: Range<usize>) -> usize {
        let removed = self.order.drain(range);
        let count = removed.len();
        removed.for_each(|item| _ = self.scores.remove(&item.member));
        count
    }

    /// Removes the member with the smallest or the largest score.
    pub(crate) fn pop(&mut self, end: End) -> Option<Scored> {
        let last = self.order.len().checked_sub(1)?;
        let item = self.order.remove(if end == End::First { 0 } else { last });
        self.scores.remove(&item.member);
        Some(item)
    }

    fn take_out(&mut self, score: f64, member: &[u8]) {
        if let Ok(at) = self.place(score, member) {
            self.order.remove(at);
        }
    }

    /// Returns the place of a member, or that at which it is to be inserted.
    fn place(&self, score: f64, member: &[u8]) -> Result<usize, usize> {
        self.order.binary_search_by(|item| {
            let by_score = item.score.partial_cmp(&score).unwrap_or(Ordering::Equal);
            by_score.then_with(|| (*item.member).cmp(member))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(set: &SortedSet) -> String {
        let items: Vec<_> = set
            .items()
            .iter()
            .map(|item| format!("{} {}", String::from_utf8_lossy(&item.member), item.score))
            .collect();
        items.join(", ")
    }

    #[test]
    fn members_are_in_order_of_scores_and_then_of_bytes() {
        let mut set = SortedSet::default();
        for (member, score) in [("b", 2.0), ("c", 1.0), ("a", 2.0), ("d", f64::NEG_INFINITY)] {
            assert!(set.set(member.as_bytes(), score));
        }
        assert_eq!(shown(&set), "d -inf, c 1, a 2, b 2");
        assert!(!set.set(b"d", 2.0));
        assert_eq!((set.rank(b"d"), set.score(b"d")), (Some(3), Some(2.0)));
        assert!(set.remove(b"a") && !set.remove(b"a"));
        assert_eq!(set.pop(End::Last).map(|item| item.score), Some(2.0));
        assert_eq!(set.remove_range(0..1), 1);
        assert_eq!(shown(&set), "b 2");
        assert_eq!(set.score(b"c"), None);
    }

    #[test]
    fn only_the_large_encoding_has_a_negative_zero() {
        let mut set = SortedSet::default();
        set.set(b"a", -0.0);
        assert!(set.score(b"a").is_some_and(f64::is_sign_positive));
        set.set(&[b'x'; 65], -0.0);
        assert_eq!(set.encoding(), "skiplist");
        assert!(set.score(&[b'x'; 65]).is_some_and(f64::is_sign_negative));
    }
}
