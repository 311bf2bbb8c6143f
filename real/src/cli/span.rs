//! Durations on the command line: `500ms`, `2s`, `1.5s`, `10m`, `1h`.

use std::time::Duration;

const UNITS: [(&str, f64); 6] =
    [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Reads a number and its unit.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let read = || {
        let (unit, seconds) = UNITS.into_iter().find(|(unit, _)| text.ends_with(unit))?;
        let number = text.strip_suffix(unit)?;
        let plain = number.starts_with(|first: char| first.is_ascii_digit());
        let number: f64 = number.parse().ok().filter(|_| plain)?;
        Duration::try_from_secs_f64(number * seconds).ok()
    };
    read()
        .or_else(|| (text == "0").then_some(Duration::ZERO))
        .ok_or_else(|| "give a number and a unit: 500ms, 2s, 10m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_unit() {
        for (text, millis) in
            [("500ms", 500), ("2s", 2000), ("1.5s", 1500), ("10m", 600_000), ("1h", 3_600_000), ("0", 0)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("250us"), Ok(Duration::from_micros(250)));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "2", "s", "-1s", "+1s", "infs", "nans", "1e400s", "2 s", "2sec", "1d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
