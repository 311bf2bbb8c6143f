//! Sets. Source: `t_set.c` of Redis 7.0.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::servers::redis::number::{parse_i64, with_i64};

/// The most members in the encoding for integers.
const INTSET_MEMBERS_MAX: usize = 512;

/// Different texts.
#[derive(Clone, Debug)]
pub(crate) enum Set {
    /// Redis' intset: integers in their order.
    Intset(Vec<i64>),
    /// Redis' hash table, in no order there: in order of the texts here.
    Table(BTreeSet<Arc<[u8]>>),
}

impl Default for Set {
    fn default() -> Self {
        Self::Intset(Vec::new())
    }
}

impl Set {
    pub(super) fn encoding(&self) -> &'static str {
        match self {
            Self::Intset(_) => "intset",
            Self::Table(_) => "hashtable",
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Intset(numbers) => numbers.len(),
            Self::Table(members) => members.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn contains(&self, member: &[u8]) -> bool {
        match self {
            Self::Intset(numbers) => {
                parse_i64(member).is_some_and(|number| numbers.binary_search(&number).is_ok())
            }
            Self::Table(members) => members.contains(member),
        }
    }

    /// Adds a member. Returns true if it is new.
    pub(crate) fn add(&mut self, member: &[u8]) -> bool {
        let number = parse_i64(member);
        match self {
            Self::Table(members) => !members.contains(member) && members.insert(member.into()),
            Self::Intset(numbers) => match number.map(|number| (number, numbers.binary_search(&number))) {
                Some((_, Ok(_))) => false,
                Some((number, Err(at))) if numbers.len() < INTSET_MEMBERS_MAX => {
                    numbers.insert(at, number);
                    true
                }
                _ => {
                    *self = Self::Table(self.members().into_iter().chain([member.into()]).collect());
                    true
                }
            },
        }
    }

    /// Removes a member. Returns whether it existed.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        match self {
            Self::Intset(numbers) => {
                let found = parse_i64(member).and_then(|number| numbers.binary_search(&number).ok());
                found.map(|at| numbers.remove(at)).is_some()
            }
            Self::Table(members) => members.remove(member),
        }
    }

    /// Returns all members.
    pub(crate) fn members(&self) -> Vec<Arc<[u8]>> {
        match self {
            Self::Intset(numbers) => {
                numbers.iter().map(|number| with_i64(*number, |text| Arc::from(text))).collect()
            }
            Self::Table(members) => members.iter().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(set: &Set) -> String {
        let members: Vec<_> =
            set.members().iter().map(|member| String::from_utf8_lossy(member).into_owned()).collect();
        format!("{} {}", set.encoding(), members.join(" "))
    }

    #[test]
    fn integers_are_in_their_order_until_another_text_is_added() {
        let mut set = Set::default();
        for member in ["10", "9", "-1", "9"] {
            set.add(member.as_bytes());
        }
        assert_eq!(shown(&set), "intset -1 9 10");
        assert!(set.contains(b"9") && !set.contains(b"09"));
        assert!(set.add(b"09") && !set.add(b"9"));
        assert_eq!(shown(&set), "hashtable -1 09 10 9");
    }

    #[test]
    fn more_than_512_integers_become_a_table() {
        let mut set = Set::default();
        (0..512).for_each(|number: i32| _ = set.add(number.to_string().as_bytes()));
        assert_eq!(set.encoding(), "intset");
        set.add(b"512");
        assert_eq!((set.encoding(), set.len()), ("hashtable", 513));
    }
}
