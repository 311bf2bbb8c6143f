//! Numbers in the environment that choose the runs.

/// The environment variables for one seed. The first one that is set applies.
const SEED: [&str; 2] = ["DLOCK_SIM_SEED", "SEED"];

/// Returns the seed that the environment asks for, if it does.
///
/// # Errors
///
/// If it is no whole number.
pub(crate) fn of_environment() -> Result<Option<u64>, String> {
    number(&SEED)
}

/// Returns the number in the first of these environment variables that is set.
///
/// # Errors
///
/// If it is no whole number.
pub(crate) fn number(variables: &[&str]) -> Result<Option<u64>, String> {
    for variable in variables {
        if let Ok(text) = std::env::var(variable) {
            let number = text.parse();
            return number.map(Some).map_err(|_| {
                format!("{variable}={text} is no whole number: give one, such as {variable}=42")
            });
        }
    }
    Ok(None)
}
