//! Draws commands from templates, and mangles some.

use std::fmt;

use proptest::prelude::{Just, any, prop_oneof};
use proptest::sample::select;
use proptest::strategy::{BoxedStrategy, Strategy, Union};

use super::collections;
use super::templates::{self, Group};

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Text(Vec<u8>),
    /// A time in milliseconds since 1970, counted here from the script's beginning.
    UnixMillis(i64),
    /// A time in seconds since 1970, counted here from the script's beginning.
    UnixSeconds(i64),
}

/// A command.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// The kind under which its successes are counted.
    pub(crate) kind: String,
    pub(crate) words: Vec<Word>,
}

impl Word {
    pub(crate) fn text(text: impl AsRef<[u8]>) -> Self {
        Self::Text(text.as_ref().to_vec())
    }

    fn bytes(&self, start_ms: i64) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone(),
            Self::UnixMillis(after) => (start_ms + after).to_string().into_bytes(),
            Self::UnixSeconds(after) => (start_ms / 1000 + after).to_string().into_bytes(),
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) if !text.is_empty() && text.iter().all(u8::is_ascii_graphic) => {
                f.write_str(&String::from_utf8_lossy(text))
            }
            Self::Text(text) => write!(f, "\"{}\"", text.escape_ascii()),
            Self::UnixMillis(after) => write!(f, "<the script's beginning in ms{after:+}>"),
            Self::UnixSeconds(after) => write!(f, "<the script's beginning in s{after:+}>"),
        }
    }
}

impl Command {
    pub(crate) fn new(kind: impl Into<String>, words: Vec<Word>) -> Self {
        Self { kind: kind.into(), words }
    }

    /// Returns true if it may set a key that has already expired.
    pub(crate) fn reaches_back(&self) -> bool {
        let is_past = |word: &Word| matches!(word, Word::UnixMillis(..=0) | Word::UnixSeconds(..=0));
        self.words.iter().any(is_past) || self.kind.starts_with("EVAL")
    }

    /// Returns its words as sent in a script that began at `start_ms`.
    pub(crate) fn words(&self, start_ms: i64) -> Vec<Vec<u8>> {
        self.words.iter().map(|word| word.bytes(start_ms)).collect()
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.words.iter().map(Word::to_string).collect();
        f.write_str(&words.join(" "))
    }
}

/// Draws commands of `group`.
pub(crate) fn of(group: &Group) -> BoxedStrategy<Command> {
    let commands = Union::new(group.templates.iter().map(|template| from_template(template)));
    if group.may_be_mangled { (commands, mangling()).prop_map(mangled).boxed() } else { commands.boxed() }
}

fn from_template(template: &'static str) -> BoxedStrategy<Command> {
    let words: Vec<_> = template.split(' ').map(word).collect();
    let kind = templates::kind(template);
    words.prop_map(move |words| Command::new(kind.clone(), words)).boxed()
}

/// Draws a word for a word of a template: itself, or one of the values of a placeholder.
fn word(word: &'static str) -> BoxedStrategy<Word> {
    let texts = |texts: &'static [&'static str]| select(texts).prop_map(Word::text).boxed();
    match word {
        "<key>" => texts(&["a", "b", "c"]),
        "<value>" => texts(&["v", "w", "", "10", "-7", "3.5", "a b", "9223372036854775807"]),
        "<number>" => texts(&["1", "-3", "40", "9223372036854775807", "-9223372036854775808"]),
        "<seconds>" => texts(&["100", "1000"]),
        // Half a wait more than any number of waits, so that no key expires near a command: see `script.rs`.
        "<millis>" => texts(&["30", "90", "150", "100000"]),
        "<pattern>" => texts(&["*", "a*", "[ab]", "[^a]", "?", "\\a", "[a-b", ""]),
        "<unix-seconds>" => select(&[-100, 0, 150, 50][..]).prop_map(Word::UnixSeconds).boxed(),
        // Other than those of <millis>: the order of two expiries must not depend on a millisecond.
        "<unix-millis>" => select(&[-100, 25, 85, 150_030, 50_030][..]).prop_map(Word::UnixMillis).boxed(),
        "<far-millis>" => select(&[-100, 150_030, 50_030][..]).prop_map(Word::UnixMillis).boxed(),
        "\"\"" => Just(Word::text("")).boxed(),
        _ => collections::texts(word).map_or_else(|| Just(Word::text(word)).boxed(), texts),
    }
}

/// Replacements for words. No small number is among them: as an expiry it would be too near to a command.
const JUNK: &[&[u8]] = &[
    b"",
    b"abc",
    b"-1",
    b"0",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775808",
    b"1.5",
    b" 1",
    b"NX",
    b"\0\xff",
    b"two\r\nlines",
    b"a text that is longer than the hundred and twenty-eight bytes that some of the messages quote of a \
      word that they do not like, so it is cut",
];

/// A change to a command, most of which make it invalid.
#[derive(Clone, Debug)]
pub(crate) enum Mangling {
    None,
    Cut,
    Add(Vec<u8>),
    Replace(usize, Vec<u8>),
    Lowercase,
}

pub(crate) fn mangling() -> impl Strategy<Value = Mangling> {
    let junk = select(JUNK).prop_map(<[u8]>::to_vec);
    prop_oneof![
        16 => Just(Mangling::None),
        1 => Just(Mangling::Lowercase),
        1 => Just(Mangling::Cut),
        1 => junk.clone().prop_map(Mangling::Add),
        2 => (any::<usize>(), junk).prop_map(|(at, junk)| Mangling::Replace(at, junk)),
    ]
}

pub(crate) fn mangled((mut command, mangling): (Command, Mangling)) -> Command {
    let words = &mut command.words;
    match mangling {
        Mangling::None => {}
        // The name stays: a request without words is no command.
        Mangling::Cut => words.truncate(words.len().saturating_sub(1).max(1)),
        Mangling::Add(junk) => words.push(Word::Text(junk)),
        Mangling::Replace(at, junk) if words.len() > 1 => {
            let at = 1 + at % (words.len() - 1);
            words[at] = Word::Text(junk);
        }
        Mangling::Replace(..) => {}
        Mangling::Lowercase => {
            if let Some(Word::Text(name)) = words.first_mut() {
                name.make_ascii_lowercase();
            }
        }
    }
    command
}
