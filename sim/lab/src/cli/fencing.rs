//! The values of the flag `--fence`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use resource::Fencing;

/// Reads `on` or `off`.
pub(crate) fn parser() -> impl TypedValueParser<Value = Fencing> {
    let value = |fencing: Fencing| PossibleValue::new(fencing.as_str());
    let values = [
        value(Fencing::On).help("The resource refuses stale tokens"),
        value(Fencing::Off).help("The unsafe baseline: the resource accepts every write"),
    ];
    PossibleValuesParser::new(values).map(|text| if text == "off" { Fencing::Off } else { Fencing::On })
}
