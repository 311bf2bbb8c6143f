//! The `sim` command.

fn main() {}
