//! Lengths of time as text.

/// Formats a duration in the largest unit in which it is whole, for traces: `2s`, `500ms`. Microseconds are
/// the smallest unit.
pub fn in_whole_units(nanos: u64) -> String {
    match nanos {
        nanos if nanos.is_multiple_of(1_000_000_000) => format!("{}s", nanos / 1_000_000_000),
        nanos if nanos.is_multiple_of(1_000_000) => format!("{}ms", nanos / 1_000_000),
        nanos => format!("{}us", nanos / 1000),
    }
}
