//! Numbers of x86's extended precision, C's `long double`: INCRBYFLOAT and HINCRBYFLOAT add with their 64
//! bits. Numbers that are too small for a full significand are cut to zero.

use std::fmt;

use super::float::{decimal_length, is_space};
use super::natural::Natural;

/// The largest exponent of a decimal number, beyond which it is infinite or zero anyway.
const DECIMAL_EXPONENT_MAX: i64 = 6000;
/// The exponents of the lowest bit of a finite number.
const EXPONENTS: std::ops::RangeInclusive<i64> = -16_445..=16_320;
/// The digits behind the point that Redis writes.
const DECIMALS: u32 = 17;

/// A finite number: `mantissa` times two to the power of `exponent`, rounded to 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extended {
    is_negative: bool,
    /// Its highest bit is set unless it is 0.
    mantissa: u64,
    exponent: i64,
}

impl Extended {
    pub(crate) const ZERO: Self = Self { is_negative: false, mantissa: 0, exponent: 0 };

    /// Reads a whole text as Redis' `string2ld` does, except infinities and hexadecimal numbers.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.first().is_none_or(|byte| is_space(*byte)) {
            return None;
        }
        let (is_negative, digits) = match text {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] => (false, digits),
            digits => (false, digits),
        };
        if digits.is_empty() || decimal_length(digits) != digits.len() {
            return None;
        }
        let end = digits.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(digits.len());
        let point = digits[..end].iter().position(|byte| *byte == b'.').map_or(0, |at| end - at - 1);
        let power = std::str::from_utf8(digits.get(end + 1..).unwrap_or_default()).ok()?;
        // An exponent that no i64 holds is as good as the largest.
        let largest = if power.starts_with('-') { -DECIMAL_EXPONENT_MAX } else { DECIMAL_EXPONENT_MAX };
        let power = if power.is_empty() { 0 } else { power.parse().unwrap_or(largest) };
        let exponent = i64::saturating_sub(power, point as i64);
        let significand = Natural::from_decimal(digits[..end].iter().copied().filter(u8::is_ascii_digit));
        Self::from_decimal(is_negative, significand, exponent)
    }

    fn from_decimal(is_negative: bool, significand: Natural, exponent: i64) -> Option<Self> {
        if significand.is_zero() {
            return Some(Self { is_negative, ..Self::ZERO });
        }
        let power = exponent.unsigned_abs().min(DECIMAL_EXPONENT_MAX.unsigned_abs()) as u32;
        if exponent >= 0 {
            let (high, below) = significand.times_power_of_ten(power).highest();
            return Self::rounded(is_negative, high, i64::from(below));
        }
        let divisor = Natural::from_u64(1).times_power_of_ten(power);
        // The quotient has at least 67 bits.
        let shift = (divisor.bits() + 67).saturating_sub(significand.bits());
        if significand.bits() > divisor.bits() + 120 {
            // Longer than any number that Redis writes: the lowest digits do not count.
            let (high, below) = significand.highest();
            let significand = Natural::from_u64((high >> 2) as u64).shifted_left(divisor.bits());
            let (whole, has_rest) = significand.divided(&divisor);
            let exponent = i64::from(below) + 2 - i64::from(divisor.bits());
            return Self::rounded(is_negative, whole << 1 | u128::from(has_rest), exponent - 1);
        }
        let (whole, has_rest) = significand.shifted_left(shift).divided(&divisor);
        Self::rounded(is_negative, whole << 1 | u128::from(has_rest), -i64::from(shift) - 1)
    }

    /// Adds. `None` if the sum is infinite.
    pub(crate) fn add(self, other: Self) -> Option<Self> {
        let (large, small) = if self.rank() >= other.rank() { (self, other) } else { (other, self) };
        if large.mantissa == 0 {
            let is_negative = large.is_negative && small.is_negative;
            return Some(Self { is_negative, ..Self::ZERO });
        }
        let (high, low) = (u128::from(large.mantissa) << 63, u128::from(small.mantissa) << 63);
        let apart = if small.mantissa == 0 { 0 } else { (large.exponent - small.exponent).unsigned_abs() };
        // The last bit stands for all that are shifted out.
        let shifted = if apart < 127 { low >> apart } else { 0 };
        let is_inexact = low != 0 && (apart >= 127 || shifted << apart != low);
        let low = shifted | u128::from(is_inexact);
        let sum = if large.is_negative == small.is_negative { high + low } else { high - low };
        if sum == 0 {
            return Some(Self::ZERO);
        }
        Self::rounded(large.is_negative, sum, large.exponent - 63)
    }

    /// Orders numbers by their magnitude.
    fn rank(self) -> (bool, i64, u64) {
        (self.mantissa != 0, self.exponent, self.mantissa)
    }

    /// Returns `bits` times two to the power of `exponent`, rounded to 64 bits, to even ones between two.
    fn rounded(is_negative: bool, bits: u128, exponent: i64) -> Option<Self> {
        let extra = i64::from(128 - bits.leading_zeros()) - 64;
        let (mut mantissa, mut exponent) = if extra <= 0 {
            (bits << -extra, exponent + extra)
        } else {
            let whole = bits >> extra;
            let rest = bits & ((1 << extra) - 1);
            let half = 1 << (extra - 1);
            let rounds_up = rest > half || (rest == half && whole & 1 == 1);
            (whole + u128::from(rounds_up), exponent + extra)
        };
        if mantissa >> 64 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
        if exponent > *EXPONENTS.end() {
            return None;
        }
        if exponent < *EXPONENTS.start() {
            return Some(Self { is_negative, ..Self::ZERO });
        }
        // It has 64 bits.
        Some(Self { is_negative, mantissa: mantissa as u64, exponent })
    }

    /// Returns the decimal digits of the magnitude, the last 17 of them behind the point.
    fn digits(self) -> String {
        if self.exponent >= 0 {
            let whole = Natural::from_u64(self.mantissa).shifted_left(self.exponent.unsigned_abs() as u32);
            return whole.times_power_of_ten(DECIMALS).to_decimal();
        }
        // Below 2^121.
        let scaled = u128::from(self.mantissa) * 10u128.pow(DECIMALS);
        let shift = self.exponent.unsigned_abs();
        if shift > 127 {
            return "0".to_owned();
        }
        let (whole, rest) = (scaled >> shift, scaled & ((1 << shift) - 1));
        let half = 1u128 << (shift - 1);
        let rounds_up = rest > half || (rest == half && whole & 1 == 1);
        (whole + u128::from(rounds_up)).to_string()
    }
}

/// Writes the number as C's `%.17Lf` does, without zeros at the end.
impl fmt::Display for Extended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:0>18}", self.digits());
        let (whole, fraction) = digits.split_at(digits.len() - DECIMALS as usize);
        let fraction = fraction.trim_end_matches('0');
        let is_zero = whole == "0" && fraction.is_empty();
        let sign = if self.is_negative && !is_zero { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_a_live_server() {
        for (one, other, sum) in [
            ("0.1", "0.2", Some("0.3")),
            ("3.0", "-3", Some("0")),
            ("1e3", "5.0e3", Some("6000")),
            ("10.50", "0.1", Some("10.6")),
            ("1e17", "0.1", Some("100000000000000000.1015625")),
            ("1e-20", "0", Some("0")),
            ("-0.5", "0.25", Some("-0.25")),
            ("12345678901234567890", "1", Some("12345678901234567891")),
            ("1e30", "1", Some("1000000000000000000024696061952")),
            ("1e4932", "1e4932", None),
        ] {
            let [left, right] = [one, other].map(|text| Extended::parse(text.as_bytes()).unwrap());
            let found = left.add(right).map(|sum| sum.to_string());
            assert_eq!(found.as_deref(), sum, "{one} + {other}");
        }
    }

    #[test]
    fn only_decimal_numbers_are_read() {
        for text in ["", " 1", "1 ", "abc", "1e", ".", "nan", "1.5.5", "+-1"] {
            assert_eq!(Extended::parse(text.as_bytes()), None, "{text:?}");
        }
        let digits = format!("0.{}", "3".repeat(400));
        let third = Extended::parse(digits.as_bytes()).map(|number| number.to_string());
        assert_eq!(third.as_deref(), Some("0.33333333333333333"));
    }
}
