//! Reads floating-point numbers as C's `strtod` and Redis' `string2d` do.

/// Reads a whole text as a number, as Redis' `getDoubleFromObject` does: no space before it, nothing after
/// it, no NaN, and nothing that is too large or too small.
pub(crate) fn parse_f64(text: &[u8]) -> Option<f64> {
    if text.first().is_none_or(|byte| is_space(*byte)) {
        return None;
    }
    let (number, length) = strtod(text);
    let is_infinite_by_overflow = number.is_infinite() && !names_infinity(text);
    let is_zero_by_underflow =
        number == 0.0 && significand(text).iter().any(|byte| (b'1'..=b'9').contains(byte));
    let is_number = length == text.len() && !number.is_nan();
    (is_number && !is_infinite_by_overflow && !is_zero_by_underflow).then_some(number)
}

/// Reads the number at the start of `text`, after spaces, and returns it and its end. Without a number both
/// are 0.
pub(crate) fn strtod(text: &[u8]) -> (f64, usize) {
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    let signed = &text[spaces..];
    let sign = usize::from(matches!(signed.first(), Some(b'+' | b'-')));
    let (magnitude, length) = magnitude(&signed[sign..]);
    if length == 0 {
        return (0.0, 0);
    }
    let number = if signed[0] == b'-' { -magnitude } else { magnitude };
    (number, spaces + sign + length)
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Reads a number without a sign.
fn magnitude(text: &[u8]) -> (f64, usize) {
    let begins = |name: &[u8]| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    match text {
        _ if begins(b"infinity") => (f64::INFINITY, 8),
        _ if begins(b"inf") => (f64::INFINITY, 3),
        _ if begins(b"nan") => (f64::NAN, 3),
        _ if begins(b"0x") => hexadecimal(text),
        _ => {
            let length = decimal_length(text);
            let number = std::str::from_utf8(&text[..length]).ok().and_then(|digits| digits.parse().ok());
            number.map_or((0.0, 0), |number| (number, length))
        }
    }
}

/// Returns the length of the decimal number at the start of `text`: digits with a point, and an exponent.
pub(super) fn decimal_length(text: &[u8]) -> usize {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut length = whole;
    if text.get(length) == Some(&b'.') {
        let fraction = digits(length + 1);
        if whole + fraction == 0 {
            return 0;
        }
        length += 1 + fraction;
    }
    if length > 0 && matches!(text.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(length + 1), Some(b'+' | b'-')));
        let start = length + 1 + sign;
        let exponent = if start <= text.len() { digits(start) } else { 0 };
        if exponent > 0 {
            length = start + exponent;
        }
    }
    length
}

/// Reads `0x1.8p3`. Digits beyond the sixteenth are cut off.
fn hexadecimal(text: &[u8]) -> (f64, usize) {
    let (mut mantissa, mut exponent, mut at) = (0u64, 0i32, 2);
    let (mut has_digits, mut is_fraction) = (false, false);
    while let Some(byte) = text.get(at) {
        match char::from(*byte).to_digit(16) {
            Some(digit) => {
                has_digits = true;
                if mantissa >> 60 == 0 {
                    mantissa = mantissa << 4 | u64::from(digit);
                    exponent -= if is_fraction { 4 } else { 0 };
                } else {
                    exponent += if is_fraction { 0 } else { 4 };
                }
            }
            None if *byte == b'.' && !is_fraction => is_fraction = true,
            None => break,
        }
        at += 1;
    }
    if !has_digits {
        // Only the zero is a number.
        return (0.0, 1);
    }
    if matches!(text.get(at), Some(b'p' | b'P')) {
        let tail = &text[at + 1..];
        let sign = usize::from(matches!(tail.first(), Some(b'+' | b'-')));
        let digits = tail[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let power =
            std::str::from_utf8(&tail[..sign + digits]).ok().and_then(|text| text.parse::<i32>().ok());
        if let Some(power) = power {
            exponent = exponent.saturating_add(power);
            at += 1 + sign + digits;
        }
    }
    // In two steps, since each power alone may be out of range.
    let half = exponent / 2;
    (mantissa as f64 * 2f64.powi(half) * 2f64.powi(exponent - half), at)
}

fn names_infinity(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.eq_ignore_ascii_case(&b'n'))
}

/// Returns the digits before the exponent.
fn significand(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| matches!(byte, b'e' | b'E' | b'p' | b'P')).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_redis_reads_them() {
        for (text, number) in [
            ("1.5", Some(1.5)),
            ("-.5e1", Some(-5.0)),
            ("+1.", Some(1.0)),
            ("0x1.8p1", Some(3.0)),
            ("0x10", Some(16.0)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("+Infinity", Some(f64::INFINITY)),
            ("0e-400", Some(0.0)),
            ("1e400", None),
            ("1e-400", None),
            ("nan", None),
            ("", None),
            (" 1", None),
            ("1 ", None),
            ("1e", None),
            (".", None),
            ("0x", None),
            ("abc", None),
            ("1\0", None),
        ] {
            assert_eq!(parse_f64(text.as_bytes()), number, "{text:?}");
        }
    }

    #[test]
    fn the_start_of_a_text_is_read_after_spaces() {
        for (text, number, end) in
            [(" 1.5x", 1.5, 4), ("2e", 2.0, 1), ("x", 0.0, 0), ("", 0.0, 0), ("0xg", 0.0, 1)]
        {
            assert_eq!(strtod(text.as_bytes()), (number, end), "{text:?}");
        }
    }
}
