//! The command that runs a failing test again.

/// Returns the line that shows the command to run `test` again with one seed.
pub fn replay_line(test: &str, seed: u64) -> String {
    format!("replay it: SEED={seed} cargo test --test {test}")
}
