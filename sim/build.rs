//! Says what a crate outside the workspace lacks, before its build fails with words that nobody could act on.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a build script")]

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_CFG_MADSIM").is_some() {
        return;
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let checkout = package.parent().unwrap_or(Path::new(".."));
    // A package from a registry comes without the tools of the repository.
    let setup = if checkout.join("tools/init").is_file() {
        format!("One command sets your crate up: {}/tools/init FOLDER_OF_YOUR_CRATE.", checkout.display())
    } else {
        format!("Copy the `.cargo/config.toml` in {}/README.md to your workspace.", package.display())
    };
    println!(
        "cargo::error=`sim` needs `--cfg madsim`. {setup} (A RUSTFLAGS variable in the environment overrides \
         that file: unset it, or add `--cfg madsim` to it.)"
    );
}
