//! The texts of the command.

use std::io::Write;

pub(crate) const HELP: &str = "\
Runs a crate's tests in a simulator, with tokio replaced. Neither its manifest nor its code changes.

Usage: cargo sim test  [arguments of cargo test]  [-- arguments of the tests]
       cargo sim run   [arguments of cargo run]   [-- arguments of the program]
       cargo sim bench [arguments of cargo bench] [-- arguments of the benchmarks]

Options:
  -h, --help     Print this text
  -V, --version  Print the version

All other arguments are cargo's own: `cargo help test` lists them. Cargo.lock is exchanged while cargo runs,
and restored after. All that is built or written lies in the folder `sim` of the target folder.
";

/// Prints `text`; a closed output is ignored.
pub(crate) fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
