//! Parses durations: `500ms`, `2s`, `1.5s`, `10m`, `1h`, on the command line and in configurations.

use std::fmt;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const UNITS: [(&str, f64); 6] =
    [("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// A duration in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// Parses a number and its unit.
///
/// # Errors
///
/// A description of the expected format.
pub fn parse(text: &str) -> Result<Duration, String> {
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

impl Span {
    /// Returns it in seconds.
    pub fn seconds(self) -> f64 {
        self.0.as_secs_f64()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:?}", self.0).replace('µ', "u"))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).map(Self).map_err(|help| D::Error::custom(format!("`{text}` is not a duration: {help}")))
    }
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
    fn an_invalid_duration_is_refused() {
        for text in ["", "2", "s", "-1s", "+1s", "infs", "nans", "1e400s", "2 s", "2sec", "1d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_written_duration_can_be_parsed() {
        for text in ["500ms", "2s", "1.5s", "250us", "90s", "0ns"] {
            let span = Span(parse(text).unwrap());
            assert_eq!(span.to_string(), text);
        }
    }
}
