//! Writes docs/tokio.md: each public item of tokio, and how a simulated process gets it.

#![allow(clippy::expect_used, reason = "a tool for the repository's own sources ends at its first error")]

mod left_out;
mod methods;
mod page;
mod parse;
mod resolve;

fn main() {
    std::fs::write(page::path(), page::page()).expect("docs/tokio.md is writable");
}
