//! How a failing test says how to run it again.

/// The line that runs this test again with one seed.
pub fn replay_line(test: &str, seed: u64) -> String {
    format!("replay it: SEED={seed} cargo test -p sim --test {test}")
}
