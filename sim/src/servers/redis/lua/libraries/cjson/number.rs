//! Numbers as C's `printf` writes them.

use std::fmt::{self, Write};

/// The longest number: a sign, 14 digits, a point, and either an exponent or zeros before the digits.
const LENGTH_MAX: usize = 32;

/// A short text on the stack: the functions of `cjson` may own none in memory.
#[derive(Debug, Default)]
pub(super) struct Short {
    bytes: [u8; LENGTH_MAX],
    length: usize,
}

impl Short {
    /// Writes `number` as `%.<precision>g` does. `precision` is from 1 to 14.
    pub(super) fn of(number: f64, precision: usize) -> Self {
        let mut out = Self::default();
        // A number that does not fit is cut, which can't happen.
        let _ = out.write_number(number, precision);
        out
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn write_number(&mut self, number: f64, precision: usize) -> fmt::Result {
        if number.is_sign_negative() {
            self.write_char('-')?;
        }
        let magnitude = number.abs();
        if !magnitude.is_finite() {
            return self.write_str(if magnitude.is_nan() { "nan" } else { "inf" });
        }
        let mut scientific = Self::default();
        write!(scientific, "{magnitude:.*e}", precision.saturating_sub(1))?;
        let text = std::str::from_utf8(scientific.bytes()).map_err(|_| fmt::Error)?;
        let (mantissa, exponent) = text.split_once('e').ok_or(fmt::Error)?;
        let exponent: i32 = exponent.parse().map_err(|_| fmt::Error)?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction = fraction.trim_end_matches('0');
        if exponent < -4 || exponent >= precision as i32 {
            let point = if fraction.is_empty() { "" } else { "." };
            let sign = if exponent < 0 { '-' } else { '+' };
            return write!(self, "{whole}{point}{fraction}e{sign}{:02}", exponent.unsigned_abs());
        }
        let places = exponent.unsigned_abs() as usize;
        if exponent < 0 {
            return write!(self, "0.{:0<zeros$}{whole}{fraction}", "", zeros = places - 1);
        }
        let (before, after) = fraction.split_at(places.min(fraction.len()));
        let point = if after.is_empty() { "" } else { "." };
        write!(self, "{whole}{before:0<places$}{point}{after}")
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let place = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        for (number, precision, text) in [
            (0.0, 14, "0"),
            (-0.0, 14, "-0"),
            (1.0, 14, "1"),
            (-1.5, 14, "-1.5"),
            (0.1, 14, "0.1"),
            (1.0 / 3.0, 14, "0.33333333333333"),
            (1e-4, 14, "0.0001"),
            (-1.25e-4, 14, "-0.000125"),
            (9.5e-5, 14, "9.5e-05"),
            (100_000.0, 14, "100000"),
            (123_456.5, 14, "123456.5"),
            (99_999_999_999_999.0, 14, "99999999999999"),
            (100_000_000_000_000.0, 14, "1e+14"),
            (1e300, 14, "1e+300"),
            (1.5e-300, 14, "1.5e-300"),
            (f64::MAX, 14, "1.7976931348623e+308"),
            (5e-324, 14, "4.9406564584125e-324"),
            (12.0, 1, "1e+01"),
            (9.6, 1, "1e+01"),
            (2.5, 1, "2"),
            (123.456, 3, "123"),
            (123.456, 5, "123.46"),
            (0.000_012_345_678_901_234_5, 14, "1.2345678901235e-05"),
            (f64::INFINITY, 14, "inf"),
            (f64::NEG_INFINITY, 3, "-inf"),
        ] {
            let short = Short::of(number, precision);
            assert_eq!(std::str::from_utf8(short.bytes()), Ok(text), "{number:?}, {precision} digits");
        }
    }
}
