//! The command line: which of cargo's arguments this command reads, and which go on to cargo.

use std::ffi::{OsStr, OsString};

use crate::error::Error;

/// A command line, parsed.
#[derive(Debug, PartialEq)]
pub(crate) enum Request {
    Help,
    Version,
    Run(Arguments),
}

/// A call of cargo.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Arguments {
    /// `test`, `run` or `bench`.
    pub(crate) command: &'static str,
    /// The arguments that choose packages' dependencies: the manifest, features and configuration. They are
    /// for `cargo metadata`, too.
    pub(crate) graph: Vec<OsString>,
    /// The part of `graph` that configures cargo: `--config` and `-Z`.
    pub(crate) configuration: Vec<OsString>,
    /// The target platforms, without their flag.
    pub(crate) platforms: Vec<OsString>,
    /// The target folder that `--target-dir` names.
    pub(crate) target_folder: Option<OsString>,
    /// `--locked` or `--frozen`: Cargo.lock must be up to date.
    pub(crate) is_locked: bool,
    /// `--offline` or `--frozen`: no network.
    pub(crate) is_offline: bool,
    /// All arguments in their order, without those of the target folder, the lock file and the network.
    pub(crate) rest: Vec<OsString>,
}

/// The subcommands, with the short names that cargo has for them.
const COMMANDS: [(&str, &str); 5] =
    [("test", "test"), ("t", "test"), ("run", "run"), ("r", "run"), ("bench", "bench")];

/// Options of cargo with a value, which may be an argument of its own. `cargo run` gives all that follows its
/// first positional argument to the program, so values must not be taken for one.
const WITH_VALUE: [&str; 20] = [
    "--manifest-path",
    "--features",
    "-F",
    "--config",
    "-Z",
    "--target",
    "--target-dir",
    "--package",
    "-p",
    "--exclude",
    "--bin",
    "--example",
    "--test",
    "--bench",
    "--jobs",
    "-j",
    "--profile",
    "--message-format",
    "--color",
    "--artifact-dir",
];

/// Options that `cargo metadata` has, too, and that choose the dependencies.
const GRAPH: [&str; 5] = ["--manifest-path", "--features", "-F", "--config", "-Z"];

/// Parses the arguments that cargo gives to its subcommand, or a direct call of the program.
///
/// # Errors
///
/// A command that is missing or unknown, and options that can't be combined with this command.
pub(crate) fn parse(words: &[OsString]) -> Result<Request, Error> {
    // Cargo repeats the name of the subcommand: `cargo-sim sim test`.
    let words = words.strip_prefix(&[OsString::from("sim")]).unwrap_or(words);
    let Some((first, rest)) = words.split_first() else {
        return Err(usage("no command is given"));
    };
    match first.to_str() {
        Some("-h" | "--help" | "help") => return Ok(Request::Help),
        Some("-V" | "--version") => return Ok(Request::Version),
        _ => {}
    }
    let Some((_, command)) = COMMANDS.iter().find(|(name, _)| *first == **name) else {
        return Err(usage(&format!("`{}` is no command of `cargo sim`", first.display())));
    };
    read(command, rest)
}

fn usage(problem: &str) -> Error {
    Error::Message(format!(
        "{problem}; use `cargo sim test`, `cargo sim run` or `cargo sim bench`, followed by cargo's own \
         arguments. `cargo sim --help` tells more."
    ))
}

fn read(command: &'static str, words: &[OsString]) -> Result<Request, Error> {
    let mut arguments = Arguments { command, ..Arguments::default() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if text == "--" || (command == "run" && !text.starts_with('-')) {
            arguments.rest.push(word.clone());
            break;
        }
        if matches!(&*text, "-h" | "--help") {
            return Ok(Request::Help);
        }
        let (name, joined) = split(&text);
        let value = match joined {
            Some(value) => Some(OsString::from(value)),
            None if WITH_VALUE.contains(&name) => value_after(&mut words),
            None => None,
        };
        arguments.take(name, value, joined.is_some(), word)?;
    }
    arguments.rest.extend(words.cloned());
    Ok(Request::Run(arguments))
}

/// Returns the next argument, unless it is an option: some options may be without a value, such as `--bin`.
fn value_after(words: &mut std::slice::Iter<'_, OsString>) -> Option<OsString> {
    let next = words.as_slice().first()?;
    let is_option = next.to_string_lossy().starts_with('-');
    if is_option { None } else { words.next().cloned() }
}

/// Splits `--name=value`, and the short form `-Fvalue`.
fn split(text: &str) -> (&str, Option<&str>) {
    if text.starts_with("--") {
        return text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    }
    for name in WITH_VALUE.iter().filter(|name| name.len() == 2) {
        if let Some(value) = text.strip_prefix(name).filter(|value| !value.is_empty()) {
            return (name, Some(value.strip_prefix('=').unwrap_or(value)));
        }
    }
    (text, None)
}

impl Arguments {
    /// Takes one option, which is `word` as it was typed.
    fn take(
        &mut self,
        name: &str,
        value: Option<OsString>,
        is_joined: bool,
        word: &OsStr,
    ) -> Result<(), Error> {
        let typed = || {
            let separate = value.iter().filter(|_| !is_joined);
            std::iter::once(word.to_owned()).chain(separate.cloned())
        };
        match name {
            "--locked" => self.is_locked = true,
            "--offline" => self.is_offline = true,
            "--frozen" => (self.is_locked, self.is_offline) = (true, true),
            "--target-dir" => self.target_folder = Some(required(name, value)?),
            "--lockfile-path" => {
                return Err(Error::Message(
                    "`--lockfile-path` can't be used with `cargo sim`, which exchanges the workspace's \
                     Cargo.lock itself; leave it out"
                        .to_owned(),
                ));
            }
            _ => {
                if GRAPH.contains(&name) || matches!(name, "--all-features" | "--no-default-features") {
                    self.graph.extend(typed());
                }
                if matches!(name, "--config" | "-Z") {
                    self.configuration.extend(typed());
                }
                if name == "--target" {
                    self.platforms.extend(value.clone());
                }
                self.rest.extend(typed());
            }
        }
        Ok(())
    }
}

fn required(name: &str, value: Option<OsString>) -> Result<OsString, Error> {
    value.ok_or_else(|| Error::Message(format!("`{name}` needs a value: add it")))
}

#[cfg(test)]
mod tests;
