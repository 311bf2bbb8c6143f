//! Fields of schedule files, and errors about them.

use std::borrow::Cow;
use std::fmt;

use smallvec::SmallVec;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// An error in a field of a schedule. Prints as `fault[1].what.pause: the problem`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct Invalid {
    /// The field with the error.
    pub path: FieldPath,
    /// The description of the error.
    pub problem: String,
}

/// A field of a schedule: the keys and indices that lead to it from the top of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(SmallVec<[Segment; 3]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Key(Cow<'static, str>),
    /// From 0.
    Index(usize),
}

impl FieldPath {
    /// Returns the field `key` at the top of the file.
    pub fn top(key: impl Into<Cow<'static, str>>) -> Self {
        Self::default().key(key)
    }

    /// Returns the field `key` of this table.
    pub fn key(&self, key: impl Into<Cow<'static, str>>) -> Self {
        self.push(Segment::Key(key.into()))
    }

    /// Returns the element `index`, from 0, of this list.
    pub fn index(&self, index: usize) -> Self {
        self.push(Segment::Index(index))
    }

    /// Returns an error about this field, described by `problem`.
    pub fn says(&self, problem: impl Into<String>) -> Invalid {
        Invalid { path: self.clone(), problem: problem.into() }
    }

    /// Returns the line, from 1, of the field in the file with this text; if the file leaves the field out,
    /// the line of the nearest table around it.
    pub fn line(&self, text: &str) -> usize {
        let offset = DeTable::parse(text).map_or(0, |table| self.offset(&table));
        line_at(text, offset)
    }

    /// Returns the index, from 0, of the element of the list `list` that has the field.
    pub(crate) fn element_of(&self, list: &str) -> Option<usize> {
        match self.0.as_slice() {
            [Segment::Key(key), Segment::Index(index), ..] if key == list => Some(*index),
            _ => None,
        }
    }

    /// Returns true if the field is the table `table` at the top of the file, or in it.
    pub(crate) fn is_in(&self, table: &str) -> bool {
        matches!(self.0.first(), Some(Segment::Key(key)) if key == table)
    }

    fn push(&self, segment: Segment) -> Self {
        let mut segments = self.0.clone();
        segments.push(segment);
        Self(segments)
    }

    fn offset(&self, table: &Spanned<DeTable<'_>>) -> usize {
        let Some((Segment::Key(first), rest)) = self.0.split_first() else { return 0 };
        let Some(mut value) = table.get_ref().get(first.as_ref()) else { return 0 };
        for segment in rest {
            match step_into(value, segment) {
                Some(inner) => value = inner,
                None => break,
            }
        }
        value.span().start
    }
}

fn step_into<'a, 'i>(value: &'a Spanned<DeValue<'i>>, segment: &Segment) -> Option<&'a Spanned<DeValue<'i>>> {
    match segment {
        Segment::Key(key) => value.get_ref().as_table()?.get(key.as_ref()),
        Segment::Index(index) => value.get_ref().as_array()?.get(*index),
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if at == 0 => write!(f, "{key}")?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Returns the line, from 1, of the byte at `offset`.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    let end = offset.min(text.len());
    text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count() + 1
}
