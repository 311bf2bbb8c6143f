//! The values of the flag `--fence`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use resource::Fencing;

/// Reads `on` or `off`, of a resource.
pub(crate) fn parser() -> impl TypedValueParser<Value = Fencing> {
    by("Stale tokens are refused", "The unsafe baseline: every write is taken")
}

/// Reads `on` or `off`, of acquires.
pub(crate) fn demand() -> impl TypedValueParser<Value = Fencing> {
    by("Every lease has a token", "No token is demanded, which costs a Redis less")
}

fn by(on: &'static str, off: &'static str) -> impl TypedValueParser<Value = Fencing> {
    let value = |fencing: Fencing| PossibleValue::new(fencing.as_str());
    let values = [value(Fencing::On).help(on), value(Fencing::Off).help(off)];
    PossibleValuesParser::new(values).map(|text| if text == "off" { Fencing::Off } else { Fencing::On })
}
