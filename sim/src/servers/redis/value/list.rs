//! Lists. Source: `t_list.c` of Redis 7.0.

use std::collections::VecDeque;
use std::sync::Arc;

/// Texts in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    pub(crate) items: VecDeque<Arc<[u8]>>,
}

/// An end of a list or of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The head of a list; the smallest score.
    First,
    /// The tail of a list; the largest score.
    Last,
}

impl List {
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn push(&mut self, end: End, item: Arc<[u8]>) {
        match end {
            End::First => self.items.push_front(item),
            End::Last => self.items.push_back(item),
        }
    }

    pub(crate) fn pop(&mut self, end: End) -> Option<Arc<[u8]>> {
        match end {
            End::First => self.items.pop_front(),
            End::Last => self.items.pop_back(),
        }
    }

    /// Returns the place of the item at `index`; a negative one counts from the end.
    pub(crate) fn place(&self, index: i64) -> Option<usize> {
        // A list has fewer than 2^63 items.
        let index = if index < 0 { index + self.items.len() as i64 } else { index };
        usize::try_from(index).ok().filter(|place| *place < self.items.len())
    }
}
