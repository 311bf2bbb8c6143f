//! Hashes. Source: `t_hash.c` of Redis 7.0; for expiries of fields those of Redis 8 and Valkey 9.1.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::COMPACT_BYTES_MAX;
use crate::servers::redis::deadlines::Deadlines;

/// A field and its value.
pub(crate) type Pair = (Arc<[u8]>, Arc<[u8]>);

/// The most fields in the compact encoding.
const LISTPACK_FIELDS_MAX: usize = 512;

/// Fields and their values, some with an expiry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hash {
    fields: Fields,
    /// The expiries of fields, on the server's wall clock as those of keys.
    expiries: Deadlines,
}

#[derive(Clone, Debug)]
enum Fields {
    /// Redis' listpack: in the order in which the fields were added.
    Listpack(Vec<Pair>),
    /// Redis 8's listpack with expiries: in order of these, then the fields without one.
    ListpackEx(Vec<Pair>),
    /// Redis' hash table, in no order there: in order of the fields here.
    Table(BTreeMap<Arc<[u8]>, Arc<[u8]>>),
}

impl Default for Fields {
    fn default() -> Self {
        Self::Listpack(Vec::new())
    }
}

impl Hash {
    pub(super) fn encoding(&self) -> &'static str {
        match &self.fields {
            Fields::Listpack(_) => "listpack",
            Fields::ListpackEx(_) => "listpackex",
            Fields::Table(_) => "hashtable",
        }
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self.fields, Fields::Table(_))
    }

    /// Returns the number of fields, expired ones included.
    pub(crate) fn len(&self) -> usize {
        match &self.fields {
            Fields::Listpack(fields) | Fields::ListpackEx(fields) => fields.len(),
            Fields::Table(fields) => fields.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a field, expired or not.
    pub(crate) fn get(&self, field: &[u8]) -> Option<&Arc<[u8]>> {
        match &self.fields {
            Fields::Listpack(fields) | Fields::ListpackEx(fields) => {
                fields.iter().find(|(name, _)| **name == *field).map(|(_, value)| value)
            }
            Fields::Table(fields) => fields.get(field),
        }
    }

    /// Returns the value of a field that has not expired at `clock_ms`.
    pub(crate) fn live(&self, field: &[u8], clock_ms: i64) -> Option<&Arc<[u8]>> {
        self.get(field).filter(|_| !self.has_expired(field, clock_ms))
    }

    /// Returns true if a field has expired at `clock_ms`. Like a key, it lives through the millisecond of its
    /// expiry.
    pub(crate) fn has_expired(&self, field: &[u8], clock_ms: i64) -> bool {
        self.expiry(field).is_some_and(|at| at < clock_ms)
    }

    pub(crate) fn expiry(&self, field: &[u8]) -> Option<i64> {
        self.expiries.get(field)
    }

    pub(crate) fn has_expiries(&self) -> bool {
        !self.expiries.is_empty()
    }

    /// Returns the expiry of the field that expires first.
    pub(crate) fn next_expiry(&self) -> Option<i64> {
        self.expiries.first()
    }

    /// Returns the fields that have expired at `clock_ms`, in order of their expiries.
    pub(crate) fn expired(&self, clock_ms: i64) -> Vec<Arc<[u8]>> {
        self.expiries.passed(clock_ms).cloned().collect()
    }

    /// Sets a field, and removes its expiry. Returns true if it is new.
    pub(crate) fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        self.set_expiry(field, None);
        self.set_value(field, value)
    }

    /// As [`Hash::set`], but the field keeps its expiry.
    pub(crate) fn set_value(&mut self, field: &[u8], value: &[u8]) -> bool {
        if field.len().max(value.len()) > COMPACT_BYTES_MAX {
            self.become_table();
        }
        let is_new = match &mut self.fields {
            Fields::Listpack(fields) | Fields::ListpackEx(fields) => {
                match fields.iter_mut().find(|(name, _)| **name == *field) {
                    Some((_, former)) => {
                        *former = value.into();
                        false
                    }
                    None => {
                        fields.push((field.into(), value.into()));
                        true
                    }
                }
            }
            Fields::Table(fields) => match fields.get_mut(field) {
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

    /// Sets or removes the expiry of a field; does nothing if there is no such field. A server prepares the
    /// hash before, with [`Hash::become_ordered`] or [`Hash::become_table`].
    pub(crate) fn set_expiry(&mut self, field: &[u8], at: Option<i64>) {
        if self.get(field).is_none() || (at.is_none() && self.expiry(field).is_none()) {
            return;
        }
        self.expiries.set(field, at);
        let Fields::ListpackEx(fields) = &mut self.fields else { return };
        let Some(from) = fields.iter().position(|(name, _)| **name == *field) else { return };
        let pair = fields.remove(from);
        // Before those of the same time, as in Redis.
        let is_after = |(name, _): &Pair| self.expiries.get(name).is_none_or(|other| Some(other) >= at);
        let to = at.and_then(|_| fields.iter().position(is_after)).unwrap_or(fields.len());
        fields.insert(to, pair);
    }

    /// Removes a field, expired or not. Returns whether it existed.
    pub(crate) fn remove(&mut self, field: &[u8]) -> bool {
        self.expiries.set(field, None);
        match &mut self.fields {
            Fields::Listpack(fields) | Fields::ListpackEx(fields) => {
                match fields.iter().position(|(name, _)| **name == *field) {
                    Some(at) => {
                        fields.remove(at);
                        true
                    }
                    None => false,
                }
            }
            Fields::Table(fields) => fields.remove(field).is_some(),
        }
    }

    /// Returns all fields and values, expired ones included.
    pub(crate) fn pairs(&self) -> Vec<Pair> {
        match &self.fields {
            Fields::Listpack(fields) | Fields::ListpackEx(fields) => fields.clone(),
            Fields::Table(fields) => {
                fields.iter().map(|(field, value)| (field.clone(), value.clone())).collect()
            }
        }
    }

    /// Returns the fields that have not expired at `clock_ms`, and their values.
    pub(crate) fn live_pairs(&self, clock_ms: i64) -> Vec<Pair> {
        let mut pairs = self.pairs();
        if self.has_expiries() {
            pairs.retain(|(field, _)| !self.has_expired(field, clock_ms));
        }
        pairs
    }

    /// Changes the compact encoding to the one that Redis 8 uses from the first command on expiries on.
    pub(crate) fn become_ordered(&mut self) {
        if let Fields::Listpack(fields) = &mut self.fields {
            self.fields = Fields::ListpackEx(std::mem::take(fields));
        }
    }

    /// Changes the compact encoding to a table, as Valkey does for the first expiry.
    pub(crate) fn become_table(&mut self) {
        if let Fields::Listpack(fields) | Fields::ListpackEx(fields) = &mut self.fields {
            self.fields = Fields::Table(std::mem::take(fields).into_iter().collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(hash: &Hash) -> String {
        hash.pairs().iter().map(|(field, _)| String::from_utf8_lossy(field).into_owned()).collect()
    }

    #[test]
    fn a_small_hash_keeps_the_order_of_its_fields() {
        let mut hash = Hash::default();
        for field in ["b", "a", "c", "a"] {
            hash.set(field.as_bytes(), b"1");
        }
        hash.remove(b"b");
        hash.set(b"b", b"2");
        assert_eq!(names(&hash), "acb");
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

    #[test]
    fn an_ordered_hash_lists_fields_by_their_expiries() {
        let mut hash = Hash::default();
        for field in ["a", "b", "c", "d"] {
            hash.set(field.as_bytes(), b"1");
        }
        hash.become_ordered();
        assert_eq!((hash.encoding(), names(&hash)), ("listpackex", String::from("abcd")));
        for (field, at, order) in [
            ("c", Some(20), "cabd"),
            ("d", Some(10), "dcab"),
            // The latest of the same time comes first.
            ("a", Some(20), "dacb"),
            ("b", Some(30), "dacb"),
            ("nosuch", Some(1), "dacb"),
            ("d", None, "acbd"),
            ("d", None, "acbd"),
            ("c", Some(40), "abcd"),
        ] {
            hash.set_expiry(field.as_bytes(), at);
            assert_eq!(names(&hash), order, "{field} {at:?}");
        }
        hash.set_value(b"a", b"2");
        assert_eq!((names(&hash), hash.expiry(b"a")), (String::from("abcd"), Some(20)));
        hash.set(b"a", b"3");
        assert_eq!((names(&hash), hash.expiry(b"a")), (String::from("bcda"), None));
    }

    #[test]
    fn an_expired_field_is_counted_but_not_live() {
        let mut hash = Hash::default();
        hash.set(b"a", b"1");
        hash.set(b"b", b"2");
        hash.become_table();
        hash.set_expiry(b"a", Some(10));
        assert!(hash.live(b"a", 10).is_some() && hash.live(b"a", 11).is_none());
        assert_eq!((hash.len(), hash.live_pairs(11).len(), hash.next_expiry()), (2, 1, Some(10)));
        assert_eq!(hash.expired(11), [Arc::from(&b"a"[..])]);
        assert!(hash.remove(b"a"));
        assert_eq!((hash.len(), hash.next_expiry()), (1, None));
    }
}
