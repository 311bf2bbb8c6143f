//! Seeds from the environment.

/// Returns the seeds to run, from `SEED` or 0 on. Their number is `SEEDS`; without it, 1 with `SEED` and
/// `count` without.
pub fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let seed = number("SEED");
    let count = number("SEEDS").unwrap_or(if seed.is_some() { 1 } else { count });
    assert!(count > 0, "SEEDS=0 checks nothing: give at least 1");
    (0..count).map(move |number| seed.unwrap_or(0).wrapping_add(number))
}

/// Returns the whole number in the environment variable, if it is set.
pub fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse().unwrap_or_else(|_| {
            panic!("{variable}={text} is no whole number: give one, such as {variable}=42")
        }),
    )
}
