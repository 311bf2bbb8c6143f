//! Sequences: they are not transactional, and a crash may skip values but never repeats one.

use super::ids::{TableId, Xid};
use crate::error::SqlError;

/// Values that a record of the log takes ahead.
const AHEAD: i64 = 32;

/// A sequence.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) increment: i64,
    pub(crate) min: i64,
    pub(crate) max: i64,
    pub(crate) start: i64,
    pub(crate) is_cycle: bool,
    pub(crate) last: i64,
    pub(crate) is_called: bool,
    /// Values that the log has taken ahead of `last`.
    pub(crate) ahead: i64,
    pub(crate) created_by: Option<Xid>,
    pub(crate) dropped_by: Option<Xid>,
    /// The open transaction that has set it back to its start.
    pub(crate) reset_by: Option<Xid>,
    /// The table of the column that owns it.
    pub(crate) owner: Option<TableId>,
}

impl Sequence {
    /// Returns the next value, and whether the log must take further values ahead.
    pub(crate) fn next(&mut self) -> Result<(i64, bool), SqlError> {
        let next = self.after(self.last, i64::from(self.is_called))?;
        let Some(next) = next else { return Err(self.at_limit()) };
        (self.last, self.is_called) = (next, true);
        if self.ahead > 0 {
            self.ahead -= 1;
            return Ok((next, false));
        }
        // The last value that fits; a cycle logs each value.
        let mut logged = next;
        for _ in 0..AHEAD {
            match logged.checked_add(self.increment).filter(|value| (self.min..=self.max).contains(value)) {
                Some(value) => (logged, self.ahead) = (value, self.ahead + 1),
                None => break,
            }
        }
        Ok((next, true))
    }

    fn after(&self, last: i64, steps: i64) -> Result<Option<i64>, SqlError> {
        let next = last.checked_add(self.increment * steps);
        let next = next.filter(|value| (self.min..=self.max).contains(value));
        Ok(match next {
            None if self.is_cycle && self.increment > 0 => Some(self.min),
            None if self.is_cycle => Some(self.max),
            other => other,
        })
    }

    fn at_limit(&self) -> SqlError {
        let (which, limit) = if self.increment > 0 { ("maximum", self.max) } else { ("minimum", self.min) };
        SqlError::new(
            "2200H",
            format!("nextval: reached {which} value of sequence \"{}\" ({limit})", self.name),
        )
    }

    /// Sets the last value.
    pub(crate) fn set(&mut self, value: i64, is_called: bool) -> Result<(), SqlError> {
        if !(self.min..=self.max).contains(&value) {
            let bounds = format!("({}..{})", self.min, self.max);
            let name = &self.name;
            let text = format!("setval: value {value} is out of bounds for sequence \"{name}\" {bounds}");
            return Err(SqlError::new("22003", text));
        }
        (self.last, self.is_called, self.ahead) = (value, is_called, 0);
        Ok(())
    }
}
