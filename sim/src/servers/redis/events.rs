//! The events of keys that the server publishes, and their classes (`notify-keyspace-events`). Source:
//! `notify.c` of Redis 7.0.

/// A class of events, or a form in which they are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// `K`: to the channel of the key.
    Keyspace = 1,
    /// `E`: to the channel of the event.
    Keyevent = 1 << 1,
    /// `g`: of keys of any type.
    Generic = 1 << 2,
    /// `$`.
    String = 1 << 3,
    /// `l`.
    List = 1 << 4,
    /// `s`.
    Set = 1 << 5,
    /// `h`.
    Hash = 1 << 6,
    /// `z`.
    SortedSet = 1 << 7,
    /// `x`: a key expired.
    Expired = 1 << 8,
    /// `e`: a key was evicted.
    Evicted = 1 << 9,
    /// `t`: of streams, which this server lacks.
    Stream = 1 << 10,
    /// `m`: a command that reads found no key.
    Missed = 1 << 11,
    /// `d`: of modules, which this server lacks.
    Module = 1 << 13,
    /// `n`: a key was created.
    New = 1 << 14,
}

/// An event of a key: its class and its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event(pub(crate) Class, pub(crate) &'static str);

pub(crate) const DEL: Event = Event(Class::Generic, "del");
pub(crate) const EVICTED: Event = Event(Class::Evicted, "evicted");
pub(crate) const EXPIRE: Event = Event(Class::Generic, "expire");
pub(crate) const EXPIRED: Event = Event(Class::Expired, "expired");
pub(crate) const HDEL: Event = Event(Class::Hash, "hdel");
pub(crate) const HEXPIRED: Event = Event(Class::Hash, "hexpired");
pub(crate) const HSET: Event = Event(Class::Hash, "hset");
pub(crate) const KEYMISS: Event = Event(Class::Missed, "keymiss");
pub(crate) const NEW: Event = Event(Class::New, "new");
pub(crate) const PERSIST: Event = Event(Class::Generic, "persist");
pub(crate) const SET: Event = Event(Class::String, "set");

/// The classes that `A` stands for, with their letters in the order in which CONFIG GET shows them.
const ALL: [(u8, Class); 10] = [
    (b'g', Class::Generic),
    (b'$', Class::String),
    (b'l', Class::List),
    (b's', Class::Set),
    (b'h', Class::Hash),
    (b'z', Class::SortedSet),
    (b'x', Class::Expired),
    (b'e', Class::Evicted),
    (b't', Class::Stream),
    (b'd', Class::Module),
];
/// Shown behind those of [`ALL`] only if these are not complete, as in Redis 7.0.
const NEW_LETTER: (u8, Class) = (b'n', Class::New);
const OTHERS: [(u8, Class); 3] = [(b'K', Class::Keyspace), (b'E', Class::Keyevent), (b'm', Class::Missed)];

/// The setting `notify-keyspace-events`: the classes whose events are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes(u16);

impl Classes {
    /// Reads the letters of CONFIG SET; returns `None` if one is unknown.
    pub(crate) fn parse(letters: &[u8]) -> Option<Self> {
        let mut classes = Self::default();
        for letter in letters {
            if *letter == b'A' {
                ALL.iter().for_each(|(_, class)| classes.add(*class));
                continue;
            }
            let mut known = ALL.iter().chain([&NEW_LETTER]).chain(&OTHERS);
            classes.add(known.find(|(known, _)| known == letter)?.1);
        }
        Some(classes)
    }

    /// Returns the letters, in the order in which CONFIG GET shows them.
    pub(crate) fn letters(self) -> Vec<u8> {
        let shown = |(letter, class): &(u8, Class)| self.contains(*class).then_some(*letter);
        let mut letters = Vec::new();
        if ALL.iter().all(|(_, class)| self.contains(*class)) {
            letters.push(b'A');
        } else {
            letters.extend(ALL.iter().chain([&NEW_LETTER]).filter_map(shown));
        }
        letters.extend(OTHERS.iter().filter_map(shown));
        letters
    }

    /// Returns true if the events of `class` are published.
    pub(crate) fn contains(self, class: Class) -> bool {
        self.0 & class as u16 != 0
    }

    fn add(&mut self, class: Class) {
        self.0 |= class as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_shown_as_redis_shows_them() {
        for (letters, shown) in [
            ("", ""),
            ("KEA", "AKE"),
            ("Kg$lshzxetd", "AK"),
            ("ElhmnK", "lhnKEm"),
            // Redis 7.0 leaves `n` out behind `A`.
            ("KAn", "AK"),
        ] {
            let classes = Classes::parse(letters.as_bytes()).unwrap();
            assert_eq!(classes.letters(), shown.as_bytes(), "{letters}");
        }
        assert_eq!(Classes::parse(b"KEx?"), None);
    }
}
