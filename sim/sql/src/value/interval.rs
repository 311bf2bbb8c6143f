//! `interval`: months, days and microseconds, each for itself.

use std::cmp::Ordering;
use std::fmt;

use super::invalid;
use crate::error::SqlError;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// A length of time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// Months; a year has 12.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

impl Interval {
    /// Returns the length in microseconds with months of 30 days, by which intervals are compared.
    pub(crate) fn span(self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * i128::from(DAY) + i128::from(self.micros)
    }

    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            micros: self.micros.checked_add(other.micros)?,
        })
    }

    pub(crate) fn negated(self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            micros: self.micros.checked_neg()?,
        })
    }

    /// Multiplies by a whole number, without a loss.
    fn repeated(self, count: i64) -> Option<Self> {
        Some(Self {
            months: i64::from(self.months).checked_mul(count)?.try_into().ok()?,
            days: i64::from(self.days).checked_mul(count)?.try_into().ok()?,
            micros: self.micros.checked_mul(count)?,
        })
    }

    /// Multiplies; fractions of months go to days, those of days to the time.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "as PostgreSQL does")]
    pub(crate) fn times(self, factor: f64) -> Option<Self> {
        let months = f64::from(self.months) * factor;
        let days = f64::from(self.days) * factor;
        let of_months = rounded_millionths((months - months.trunc()) * 30.0);
        let spare = rounded_millionths((days - days.trunc() + of_months - of_months.trunc()) * 86_400.0);
        let whole_days = days.trunc() + of_months.trunc();
        let micros = (self.micros as f64 * factor + spare * SECOND as f64).round();
        let fits = months.abs() < f64::from(i32::MAX) && whole_days.abs() < f64::from(i32::MAX);
        (fits && micros.abs() < 9.2e18).then_some(Self {
            months: months as i32,
            days: whole_days as i32,
            micros: micros as i64,
        })
    }
}

fn rounded_millionths(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

impl Ord for Interval {
    fn cmp(&self, other: &Self) -> Ordering {
        self.span().cmp(&other.span())
    }
}

impl PartialOrd for Interval {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Interval {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Interval {}

impl fmt::Display for Interval {
    /// Prints the style `postgres`: `1 year 2 mons 3 days 04:05:06.7`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut was_negative = false;
        for (number, unit) in [(self.months / 12, "year"), (self.months % 12, "mon"), (self.days, "day")] {
            if number != 0 {
                let plural = if number == 1 { "" } else { "s" };
                let plus = if was_negative && number > 0 { "+" } else { "" };
                parts.push(format!("{plus}{number} {unit}{plural}"));
                was_negative = number < 0;
            }
        }
        if self.micros != 0 || parts.is_empty() {
            let sign = match self.micros.signum() {
                -1 => "-",
                1 if was_negative => "+",
                _ => "",
            };
            parts.push(format!("{sign}{}", super::date::time_text(self.micros.unsigned_abs())));
        }
        f.write_str(&parts.join(" "))
    }
}

/// The units: name, then months, days and microseconds of one.
const UNITS: &[(&[&str], i32, i32, i64)] = &[
    (&["microsecond", "us", "usec", "usecond"], 0, 0, 1),
    (&["millisecond", "ms", "msec", "msecond"], 0, 0, 1000),
    (&["second", "s", "sec"], 0, 0, SECOND),
    (&["minute", "m", "min"], 0, 0, 60 * SECOND),
    (&["hour", "h", "hr"], 0, 0, 3600 * SECOND),
    (&["day", "d"], 0, 1, 0),
    (&["week", "w"], 0, 7, 0),
    (&["month", "mon"], 1, 0, 0),
    (&["year", "y", "yr"], 12, 0, 0),
    (&["decade", "dec"], 120, 0, 0),
    (&["century", "c", "cent"], 1200, 0, 0),
];

/// Reads numbers with units, `hh:mm:ss`, and a final `ago`; a number alone is seconds.
pub(super) fn parse(text: &str) -> Result<Interval, SqlError> {
    let wrong = || SqlError::new("22007", format!("invalid input syntax for type interval: \"{text}\""));
    let range = || SqlError::new("22015", format!("interval field value out of range: \"{text}\""));
    let spaced = spaced(text);
    let mut words = spaced.split_whitespace().peekable();
    if words.peek().is_none() || spaced.starts_with('P') {
        return Err(if spaced.starts_with('P') { invalid_iso(text) } else { wrong() });
    }
    let mut sum = Interval::default();
    while let Some(word) = words.next() {
        if word == "ago" {
            sum = sum.negated().ok_or_else(range)?;
            continue;
        }
        let part = if word.contains(':') {
            let micros = i64::try_from(super::date::parse_time(word).ok_or_else(wrong)?);
            Interval { micros: micros.map_err(|_| range())?, ..Interval::default() }
        } else {
            let number: f64 = word.parse().map_err(|_| wrong())?;
            let unit = words.next_if(|next| next.starts_with(char::is_alphabetic) && *next != "ago");
            let unit = of_unit(unit.unwrap_or("s")).ok_or_else(wrong)?;
            match word.parse::<i64>() {
                Ok(count) => unit.repeated(count).ok_or_else(range)?,
                Err(_) => unit.times(number).ok_or_else(range)?,
            }
        };
        sum = sum.plus(part).ok_or_else(range)?;
    }
    Ok(sum)
}

fn invalid_iso(text: &str) -> SqlError {
    let mut error = invalid("interval", text);
    error.hint = Some("the simulated PostgreSQL does not know intervals in ISO 8601".to_owned());
    error
}

/// Separates numbers from units: `5min` is `5 min`.
fn spaced(text: &str) -> String {
    let mut spaced = String::new();
    let mut last = ' ';
    for c in text.trim().chars() {
        if (last.is_ascii_digit() && c.is_alphabetic()) || (last.is_alphabetic() && c.is_ascii_digit()) {
            spaced.push(' ');
        }
        spaced.push(if c == '@' { ' ' } else { c });
        last = c;
    }
    spaced
}

/// Returns one of a unit.
pub(crate) fn of_unit(name: &str) -> Option<Interval> {
    let name = name.to_ascii_lowercase();
    let singular = name.strip_suffix('s').filter(|rest| rest.len() > 1).unwrap_or(&name);
    let is_named = |names: &[&str]| names.contains(&name.as_str()) || names.contains(&singular);
    let singular_centuries = if name == "centuries" { "century" } else { &name };
    UNITS
        .iter()
        .find(|(names, ..)| is_named(names) || names.contains(&singular_centuries))
        .map(|(_, months, days, micros)| Interval { months: *months, days: *days, micros: *micros })
}
