//! `cargo sim test`: runs a crate's tests in a simulator, with tokio replaced, and changes neither its
//! manifest nor its code.
//!
//! In the order of a call: `arguments` reads the command line, `session` does the steps. `project` asks cargo
//! for the workspace and its tokio, `generate` writes the packages that replace it (`real` is the copy of
//! tokio, `shim` its replacement, `source` how a manifest names the source of a package), `flags` finds the
//! compiler's flags, `lockfile` exchanges and restores Cargo.lock, `child` runs cargo.

mod arguments;
mod child;
mod error;
mod flags;
mod generate;
mod help;
mod lockfile;
mod project;
mod real;
mod session;
mod shim;
mod source;

use std::ffi::OsString;
use std::process::ExitCode;

use arguments::Request;
use error::Error;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match run(&words) {
        Ok(code) => code,
        Err(Error::Cargo(code)) => code,
        Err(Error::Message(message)) => {
            eprintln!("error: {message}");
            error::FAILED.into()
        }
    }
}

fn run(words: &[OsString]) -> Result<ExitCode, Error> {
    if flags::report_as_rustdoc(words)? {
        return Ok(ExitCode::SUCCESS);
    }
    match arguments::parse(words)? {
        Request::Help => {
            help::print(help::HELP);
            Ok(ExitCode::SUCCESS)
        }
        Request::Version => {
            help::print(concat!("cargo-sim ", env!("CARGO_PKG_VERSION"), "\n"));
            Ok(ExitCode::SUCCESS)
        }
        Request::Run(arguments) => session::run(&arguments),
    }
}
