//! Hashes. Source: `t_hash.c` of Redis 7.0.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::COMPACT_BYTES_MAX;

/// A field and its value.
pub(crate) type Pair = (Arc<[u8]>, Arc<[u8]>);

/// The most fields in the compact encoding.
const LISTPACK_FIELDS_MAX: usize = 512;

/// Fields and their values.
#[derive(Clone, Debug)]
pub(crate) enum Hash {
    /// Redis' listpack: in the order in which the fields were added.
    Listpack(Vec<Pair>),
    /// Redis' hash table, in no order there: in order of the fields here.
    Table(BTreeMap<Arc<[u8]>, Arc<[u8]>>),
}

impl Default for Hash {
    fn default() -> Self {
        Self::Listpack(Vec::new())
    }
}

impl Hash {
    pub(super) fn encoding(&self) -> &'static str {
        match self {
            Self::Listpack(_) => "listpack",
            Self::Table(_) => "hashtable",
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Listpack(fields) => fields.len(),
            Self::Table(fields) => fields.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn get(&self, field: &[u8]) -> Option<&Arc<[u8]>> {
        match self {
            Self::Listpack(fields) => {
                fields.iter().find(|(name, _)| **name == *field).map(|(_, value)| value)
            }
            Self::Table(fields) => fields.get(field),
        }
    }

    /// Sets a field. Returns true if it is new.
    pub(crate) fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        if field.len().max(value.len()) > COMPACT_BYTES_MAX {
            self.become_table();
        }
        let is_new = match self {
            Self::Listpack(fields) => match fields.iter_mut().find(|(name, _)| **name == *field) {
                Some((_, former)) => {
                    *former = value.into();
                    false
                }
                None => {
                    fields.push((field.into(), value.into()));
                    true
                }
            },
            Self::Table(fields) => match fields.get_mut(field) {
                Some(former) => {
                    *former = value.into();
                    false
                }
                None => fields.insert(field.into(), value.into()).is_none(),
            },
        };
        if self.len() > LISTPACK_FIELDS_MAX {
            self.become_table();
        }
        is_new
    }

    /// Removes a field. Returns whether it existed.
    pub(crate) fn remove(&mut self, field: &[u8]) -> bool {
        match self {
            Self::Listpack(fields) => match fields.iter().position(|(name, _)| **name == *field) {
                Some(at) => {
                    fields.remove(at);
                    true
                }
                None => false,
            },
            Self::Table(fields) => fields.remove(field).is_some(),
        }
    }

    /// Returns all fields and values.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        match self {
            Self::Listpack(fields) => fields.clone(),
            Self::Table(fields) => {
                fields.iter().map(|(field, value)| (field.clone(), value.clone())).collect()
            }
        }
    }

    fn become_table(&mut self) {
        if let Self::Listpack(fields) = self {
            *self = Self::Table(std::mem::take(fields).into_iter().collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_hash_keeps_the_order_of_its_fields() {
        let mut hash = Hash::default();
        for field in ["b", "a", "c", "a"] {
            hash.set(field.as_bytes(), b"1");
        }
        hash.remove(b"b");
        hash.set(b"b", b"2");
        let order: Vec<_> = hash.pairs().iter().map(|(field, _)| field[0]).collect();
        assert_eq!(order, b"acb");
    }

    #[test]
    fn a_hash_becomes_a_table_beyond_512_fields_or_64_bytes() {
        let mut hash = Hash::default();
        (0..512).for_each(|number| _ = hash.set(number.to_string().as_bytes(), &[b'x'; 64]));
        assert_eq!(hash.encoding(), "listpack");
        hash.set(b"one more", b"");
        assert_eq!((hash.encoding(), hash.len()), ("hashtable", 513));
        let mut hash = Hash::default();
        hash.set(b"a", &[b'x'; 65]);
        assert_eq!(hash.encoding(), "hashtable");
    }
}
