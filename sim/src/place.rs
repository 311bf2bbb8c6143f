//! A field of a schedule file, and what is wrong with it.

use std::borrow::Cow;
use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is wrong with a schedule, and in which of its fields. Prints as `fault[1].what.pause: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Invalid {
    /// The field at fault.
    pub place: Place,
    /// What is wrong with it.
    pub problem: String,
}

/// A field of a schedule: the keys and indices that lead to it from the top of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place(Vec<Turn>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Turn {
    Key(Cow<'static, str>),
    /// From 0.
    Index(usize),
}

impl Place {
    /// The field `key` at the top of the file.
    pub fn top(key: impl Into<Cow<'static, str>>) -> Self {
        Self::default().key(key)
    }

    /// The field `key` of the table here.
    pub fn key(&self, key: impl Into<Cow<'static, str>>) -> Self {
        self.turn(Turn::Key(key.into()))
    }

    /// The element numbered `index`, from 0, of the list here.
    pub fn index(&self, index: usize) -> Self {
        self.turn(Turn::Index(index))
    }

    /// The error that something is wrong with this field.
    pub fn says(&self, problem: impl Into<String>) -> Invalid {
        Invalid { place: self.clone(), problem: problem.into() }
    }

    /// The line of the field in the file with this text, or of the nearest table around it if the file leaves
    /// it out.
    pub fn line(&self, text: &str) -> usize {
        let offset = DeTable::parse(text).map_or(0, |table| self.offset(&table));
        line_at(text, offset)
    }

    /// The number, from 0, of the element of the list `list` in which the field is.
    pub(crate) fn element_of(&self, list: &str) -> Option<usize> {
        match self.0.as_slice() {
            [Turn::Key(key), Turn::Index(index), ..] if key == list => Some(*index),
            _ => None,
        }
    }

    fn turn(&self, turn: Turn) -> Self {
        let mut turns = self.0.clone();
        turns.push(turn);
        Self(turns)
    }

    fn offset(&self, table: &Spanned<DeTable<'_>>) -> usize {
        let Some((Turn::Key(first), rest)) = self.0.split_first() else { return 0 };
        let Some(mut value) = table.get_ref().get(first.as_ref()) else { return 0 };
        for turn in rest {
            match step_into(value, turn) {
                Some(inner) => value = inner,
                None => break,
            }
        }
        value.span().start
    }
}

fn step_into<'a, 'i>(value: &'a Spanned<DeValue<'i>>, turn: &Turn) -> Option<&'a Spanned<DeValue<'i>>> {
    match turn {
        Turn::Key(key) => value.get_ref().as_table()?.get(key.as_ref()),
        Turn::Index(index) => value.get_ref().as_array()?.get(*index),
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, turn) in self.0.iter().enumerate() {
            match turn {
                Turn::Key(key) if at == 0 => write!(f, "{key}")?,
                Turn::Key(key) => write!(f, ".{key}")?,
                Turn::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// The line, from 1, of the byte at `offset`.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    let end = offset.min(text.len());
    text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count() + 1
}
