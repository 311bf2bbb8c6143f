//! Numbers as Redis reads and writes them.

mod extended;
mod float;
mod natural;

pub(crate) use extended::Extended;
pub(crate) use float::{parse_f64, strtod};

/// The error for a text that is no number of [`parse_f64`] or [`Extended::parse`].
pub(crate) const NOT_A_FLOAT: &str = "ERR value is not a valid float";

/// Reads a whole number as Redis' `string2ll` does: no sign but `-`, no space, no leading zero, the range of
/// `i64`.
pub(crate) fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut number: u64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // 19 digits stay below 2^64.
        number = number * 10 + u64::from(digit - b'0');
    }
    if negative { 0i64.checked_sub_unsigned(number) } else { i64::try_from(number).ok() }
}

/// Appends `number` in decimal digits.
pub(crate) fn push_i64(out: &mut Vec<u8>, number: i64) {
    with_i64(number, |text| out.extend_from_slice(text));
}

/// Calls `used` with the decimal digits of `number`, which are written on the stack.
pub(crate) fn with_i64<T>(number: i64, used: impl FnOnce(&[u8]) -> T) -> T {
    let mut text = [0u8; 20];
    let mut start = text.len();
    let mut rest = number.unsigned_abs();
    loop {
        start -= 1;
        // The remainder is below 10.
        text[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        start -= 1;
        text[start] = b'-';
    }
    used(&text[start..])
}

/// Writes `number` as C's `%.17g` does: enough digits to read the same number back.
pub(crate) fn format_f64(number: f64) -> String {
    if !number.is_finite() {
        let text = if number.is_nan() { "nan" } else { "inf" };
        return if number.is_sign_negative() { format!("-{text}") } else { text.into() };
    }
    if number == 0.0 {
        return if number.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{number:.16e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..17).contains(&exponent) {
        let decimals = usize::try_from(16 - exponent).unwrap_or(0);
        return without_trailing_zeros(&format!("{number:.decimals$}")).into();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.abs())
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_as_strictly_as_redis_reads_them() {
        for (text, number) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("99999999999999999999", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("01", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("1.0", None),
        ] {
            assert_eq!(parse_i64(text.as_bytes()), number, "{text:?}");
        }
    }

    #[test]
    fn whole_numbers_are_written_as_decimals() {
        for number in [0, 7, -7, 10, 1234567890, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            push_i64(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }

    #[test]
    fn floats_are_written_as_c_writes_them() {
        for (number, text) in [
            (1.5, "1.5"),
            (3.0, "3"),
            (-0.1, "-0.10000000000000001"),
            (1e20, "1e+20"),
            (12345678901234567.0, "12345678901234568"),
            (1e-7, "9.9999999999999995e-08"),
            (0.0001, "0.0001"),
            (f64::INFINITY, "inf"),
            (-0.0, "-0"),
        ] {
            assert_eq!(format_f64(number), text);
        }
    }
}
