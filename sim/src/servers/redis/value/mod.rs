//! The values of keys: strings, and collections of texts. Source of the encodings' limits: `config.c` of
//! Redis 7.0.

mod hash;
mod list;
mod set;
mod sorted_set;
mod text;

use std::sync::Arc;

pub(crate) use hash::{Hash, Pair};
pub(crate) use list::{End, List};
pub(crate) use set::Set;
pub(crate) use sorted_set::{Scored, SortedSet};
pub(crate) use text::{Form, Text};

/// The longest text in the compact encoding of a hash or a sorted set, in bytes.
const COMPACT_BYTES_MAX: usize = 64;

/// The memory of an element beside its text, in bytes.
const ELEMENT_BYTES: usize = 64;

/// The value of a key. A collection is never empty: its key is removed with its last element.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(Text),
    Hash(Box<Hash>),
    List(Box<List>),
    Set(Box<Set>),
    SortedSet(Box<SortedSet>),
}

/// A type of collection.
pub(crate) trait Collection: Sized {
    /// Returns an empty one.
    fn empty() -> Value;

    /// Returns the collection in `value`; `None` if that has another type.
    fn of(value: &Value) -> Option<&Self>;

    /// As [`Collection::of`], to change it.
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
}

macro_rules! collection {
    ($($kind:ident),*) => {
        $(impl Collection for $kind {
            fn empty() -> Value {
                Value::$kind(Box::default())
            }

            fn of(value: &Value) -> Option<&Self> {
                if let Value::$kind(collection) = value { Some(collection) } else { None }
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                if let Value::$kind(collection) = value { Some(collection) } else { None }
            }
        })*
    };
}

collection!(Hash, List, Set, SortedSet);

impl Value {
    /// Returns the name of the type, as TYPE tells it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::SortedSet(_) => "zset",
        }
    }

    /// Returns the name of the encoding that Redis would use, as OBJECT tells it.
    pub(crate) fn encoding(&self) -> &'static str {
        match self {
            Self::String(text) => text.encoding(),
            Self::Hash(hash) => hash.encoding(),
            Self::List(_) => "quicklist",
            Self::Set(set) => set.encoding(),
            Self::SortedSet(set) => set.encoding(),
        }
    }

    /// Returns the bytes of a string; `None` for other types.
    pub(crate) fn text(&self) -> Option<&Arc<[u8]>> {
        if let Self::String(text) = self { Some(&text.bytes) } else { None }
    }

    /// Returns true for a collection without elements.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::String(_) => false,
            Self::Hash(hash) => hash.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::SortedSet(set) => set.is_empty(),
        }
    }

    /// Returns the memory of a collection, roughly; 0 for strings, which share theirs.
    pub(crate) fn bytes(&self) -> usize {
        let (count, bytes) = match self {
            Self::String(_) => return 0,
            Self::Hash(hash) => {
                let pairs = hash.pairs();
                (pairs.len(), pairs.iter().map(|(field, value)| field.len() + value.len()).sum())
            }
            Self::List(list) => (list.items.len(), list.items.iter().map(|item| item.len()).sum::<usize>()),
            Self::Set(set) => (set.len(), set.members().iter().map(|member| member.len()).sum()),
            Self::SortedSet(set) => (set.len(), set.items().iter().map(|item| item.member.len()).sum()),
        };
        bytes + count * ELEMENT_BYTES
    }

    /// Returns the expiry of the field that expires first, of a hash.
    pub(crate) fn next_field_expiry(&self) -> Option<i64> {
        if let Self::Hash(hash) = self { hash.next_expiry() } else { None }
    }

    /// Returns true if clients can wait for elements of it.
    pub(crate) fn is_awaited(&self) -> bool {
        matches!(self, Self::List(_) | Self::SortedSet(_))
    }
}

impl From<Arc<[u8]>> for Value {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self::String(Text { bytes, form: Form::Usual })
    }
}
