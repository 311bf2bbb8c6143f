//! `numeric`: decimal numbers with the scales that PostgreSQL chooses.

use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive, Zero};

use super::invalid;
use crate::error::SqlError;

/// The largest power of ten.
const LARGEST_EXPONENT: i64 = 131_071;
/// Digits that a quotient has at least.
const SIGNIFICANT: i64 = 16;

pub(super) fn text(number: &BigDecimal) -> String {
    number.to_plain_string()
}

pub(super) fn parse(text: &str) -> Result<BigDecimal, SqlError> {
    let trimmed = text.trim();
    if matches!(trimmed.to_ascii_lowercase().as_str(), "nan" | "infinity" | "inf" | "-infinity" | "-inf") {
        return Err(SqlError::unknown(format_args!("the numeric {trimmed}")));
    }
    let exponent = trimmed.split_once(['e', 'E']).map(|(_, exponent)| exponent);
    let exponent = exponent.and_then(|exponent| exponent.parse::<i64>().ok()).unwrap_or(0);
    if !(-LARGEST_EXPONENT..=LARGEST_EXPONENT).contains(&exponent) {
        return Err(SqlError::new("22003", "value overflows numeric format"));
    }
    let is_number = trimmed.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let number: Option<BigDecimal> = is_number.then(|| trimmed.parse().ok()).flatten();
    let number = number.ok_or_else(|| invalid("numeric", text))?;
    Ok(if scale(&number) < 0 { number.with_scale(0) } else { number })
}

/// Returns the number of digits after the point.
pub(crate) fn scale(number: &BigDecimal) -> i64 {
    number.fractional_digit_count()
}

/// Rounds to digits after the point, half away from zero.
pub(crate) fn round(number: &BigDecimal, digits: i64) -> BigDecimal {
    number.with_scale_round(digits, RoundingMode::HalfUp)
}

/// Returns the nearest bigint; `None` out of its range.
pub(crate) fn to_integer(number: &BigDecimal) -> Option<i64> {
    round(number, 0).to_i64()
}

/// Divides; `None` by zero. The scale follows `select_div_scale`.
pub(crate) fn divide(a: &BigDecimal, b: &BigDecimal) -> Option<BigDecimal> {
    if b.is_zero() {
        return None;
    }
    let (weight_a, first_a) = leading(a);
    let (weight_b, first_b) = leading(b);
    let weight = weight_a - weight_b - i64::from(first_a <= first_b);
    let digits = (SIGNIFICANT - weight * 4).max(scale(a)).max(scale(b)).clamp(0, 1000);
    let (a_int, a_scale) = a.as_bigint_and_exponent();
    let (b_int, b_scale) = b.as_bigint_and_exponent();
    // One digit more than the result, to round it: the quotient is cut towards zero.
    let shift = digits + 1 + b_scale - a_scale;
    let ten = |power: i64| num_bigint::BigInt::from(10).pow(u32::try_from(power).unwrap_or_default());
    let quotient = if shift >= 0 { a_int * ten(shift) / b_int } else { a_int / (b_int * ten(-shift)) };
    Some(round(&BigDecimal::new(quotient, digits + 1), digits))
}

/// Returns the weight and the value of the first non-zero digit in base 10000, PostgreSQL's own.
fn leading(number: &BigDecimal) -> (i64, i64) {
    let (digits, scale) = number.abs().as_bigint_and_exponent();
    if digits.is_zero() {
        return (0, 0);
    }
    let digits = digits.to_string();
    let exponent = i64::try_from(digits.len()).unwrap_or(i64::MAX) - 1 - scale;
    let weight = exponent.div_euclid(4);
    let count = usize::try_from(exponent.rem_euclid(4) + 1).unwrap_or(1);
    let first: String = format!("{digits:0<4}").chars().take(count).collect();
    (weight, first.parse().unwrap_or_default())
}
