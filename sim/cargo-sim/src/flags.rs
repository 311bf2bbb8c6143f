//! The flags of the compiler: those of the user, with those of the simulator.
//!
//! The user's flags may come from the environment, from configuration files or from `--config`, and cargo's
//! rules choose among them. Cargo tells a build script which flags it has chosen: so cargo checks a package
//! here whose build script reports them.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use cargo_metadata::Message;

use crate::arguments::Arguments;
use crate::error::{Error, FAILED};
use crate::generate::{Files, write_folder};
use crate::project::cargo;

/// The flags that the simulator needs (`.cargo/config.toml` of its repository explains them).
const CFG: &str = "madsim";
const LINK: &str = "link-arg=-Wl,--allow-multiple-definition";

/// Separates the flags in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\u{1f}";

/// The variable in which the build script reports the flags.
const REPORTED: &str = "CARGO_SIM_FLAGS";

/// The variable that names the file for the arguments of rustdoc.
const REPORT: &str = "CARGO_SIM_RUSTDOC";

/// Stands for the user's flags among the arguments of rustdoc.
const MARK: &str = "--cfg=cargo_sim_mark";

const MANIFEST: &str = "\
[package]
name = \"cargo-sim-flags\"
version = \"0.0.0\"
edition = \"2021\"
publish = false

[lib]
path = \"lib.rs\"

[workspace]
";

const BUILD_SCRIPT: &str = "\
fn main() {
    println!(\"cargo:rerun-if-changed=build.rs\");
    let flags = std::env::var(\"CARGO_ENCODED_RUSTFLAGS\").unwrap_or_default();
    println!(\"cargo:rustc-env=CARGO_SIM_FLAGS={flags}\");
}
";

/// Returns the value of `CARGO_ENCODED_RUSTFLAGS`: the flags of the user and those of the simulator.
pub(crate) fn of_compiler(folder: &Path, arguments: &Arguments) -> Result<String, Error> {
    Ok(with_simulator(&of_user(folder, arguments)?))
}

/// Returns the value of `CARGO_ENCODED_RUSTDOCFLAGS`, by which tests in documentation are compiled.
///
/// No build script learns these flags. So cargo runs this program in place of rustdoc, which reports its
/// arguments: once with the user's flags, and once with a mark instead, which tells their place.
pub(crate) fn of_documentation(folder: &Path, arguments: &Arguments) -> Result<String, Error> {
    let encoded = std::env::var("CARGO_ENCODED_RUSTDOCFLAGS").ok();
    let spaced = || {
        let flags = std::env::var("RUSTDOCFLAGS").ok()?;
        Some(flags.split_whitespace().collect::<Vec<_>>().join(SEPARATOR))
    };
    if let Some(flags) = encoded.or_else(spaced) {
        return Ok(with_simulator(&flags));
    }
    let marked = arguments_of_rustdoc(folder, arguments, Some(MARK))?;
    let of_user = arguments_of_rustdoc(folder, arguments, None)?;
    let between = marked.iter().position(|argument| argument == MARK).and_then(|start| {
        let after = marked.len() - start - 1;
        of_user.get(start..of_user.len().checked_sub(after)?)
    });
    Ok(with_simulator(&between.unwrap_or_default().join(SEPARATOR)))
}

/// Returns the arguments that cargo gives to rustdoc, with `flags` in place of the user's if there are any.
fn arguments_of_rustdoc(
    folder: &Path,
    arguments: &Arguments,
    flags: Option<&str>,
) -> Result<Vec<String>, Error> {
    let target = folder.join(if flags.is_some() { "build-mark" } else { "build-flags" });
    let report = target.join("rustdoc");
    let program = std::env::current_exe().map_err(Error::at("can't find", Path::new("cargo-sim")))?;
    let mut command = on_package(folder, &target, arguments, &["doc", "--quiet", "--no-deps"])?;
    command.env("RUSTDOC", program).env(REPORT, &report).envs(flags.map(|flags| ("RUSTDOCFLAGS", flags)));
    succeed(command)?;
    let text = std::fs::read_to_string(&report).map_err(Error::at("can't read", &report))?;
    Ok(text.split(SEPARATOR).map(str::to_owned).collect())
}

/// Reports the arguments of this program if cargo runs it in place of rustdoc. Returns true if it does.
pub(crate) fn report_as_rustdoc(arguments: &[OsString]) -> Result<bool, Error> {
    let Some(report) = std::env::var_os(REPORT) else { return Ok(false) };
    let report = Path::new(&report);
    let text: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    std::fs::write(report, text.join(SEPARATOR)).map_err(Error::at("can't write", report))?;
    Ok(true)
}

/// Adds the simulator's flags to encoded ones that lack them.
pub(crate) fn with_simulator(encoded: &str) -> String {
    let mut flags: Vec<&str> = encoded.split(SEPARATOR).filter(|flag| !flag.is_empty()).collect();
    let has = |flags: &[&str], option: &str, value: &str| {
        flags.windows(2).any(|pair| pair == [option, value]) || flags.contains(&&*format!("{option}{value}"))
    };
    if !has(&flags, "--cfg", CFG) && !has(&flags, "--cfg=", CFG) {
        flags.extend(["--cfg", CFG]);
    }
    if cfg!(target_os = "linux") && !has(&flags, "-C", LINK) {
        flags.extend(["-C", LINK]);
    }
    flags.join(SEPARATOR)
}

/// Asks cargo for the user's flags.
fn of_user(folder: &Path, arguments: &Arguments) -> Result<String, Error> {
    let target = folder.join("build-flags");
    let command = on_package(folder, &target, arguments, &["check", "--quiet", "--message-format", "json"])?;
    reported(&succeed(command)?).ok_or_else(|| {
        Error::Message(format!(
            "cargo did not report the compiler's flags; remove {} and try again",
            target.display()
        ))
    })
}

/// Returns a command of cargo on the package that reports the flags, which it writes first.
fn on_package(folder: &Path, target: &Path, arguments: &Arguments, words: &[&str]) -> Result<Command, Error> {
    let package = folder.join("flags");
    let mut files = Files::from([
        ("Cargo.toml".into(), MANIFEST.into()),
        ("build.rs".into(), BUILD_SCRIPT.into()),
        ("lib.rs".into(), "#![no_std]\n".into()),
    ]);
    // Cargo writes a Cargo.lock, which is kept.
    if let Ok(content) = std::fs::read(package.join("Cargo.lock")) {
        files.insert("Cargo.lock".into(), content);
    }
    write_folder(&package, &files)?;
    let mut command = cargo();
    command.args(words).args(&arguments.configuration);
    command.arg("--manifest-path").arg(package.join("Cargo.toml")).arg("--target-dir").arg(target);
    for platform in &arguments.platforms {
        command.args([&OsString::from("--target"), platform]);
    }
    if arguments.is_offline {
        command.arg("--offline");
    }
    Ok(command)
}

/// Runs cargo. Returns its output, or prints its messages if it fails.
fn succeed(mut command: Command) -> Result<Vec<u8>, Error> {
    let output = command.output().map_err(Error::at("can't run", Path::new("cargo")))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    eprintln!("{}", String::from_utf8_lossy(&output.stderr).trim_end());
    eprintln!(
        "cargo sim: cargo can't compile an empty package with these arguments, environment and \
         configuration; its message is above"
    );
    let code = output.status.code().and_then(|code| u8::try_from(code).ok());
    Err(Error::Cargo(ExitCode::from(code.unwrap_or(FAILED))))
}

fn reported(output: &[u8]) -> Option<String> {
    Message::parse_stream(output).filter_map(Result::ok).find_map(|message| match message {
        Message::BuildScriptExecuted(script) => {
            script.env.into_iter().find_map(|(name, value)| (name == REPORTED).then_some(value))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_user_are_kept_and_not_doubled() {
        let flags = with_simulator("-D\u{1f}warnings\u{1f}--cfg\u{1f}madsim");
        assert!(flags.starts_with("-D\u{1f}warnings\u{1f}--cfg\u{1f}madsim"), "{flags}");
        assert_eq!(flags.matches("madsim").count(), 1);
        assert_eq!(with_simulator(&flags), flags);
        assert!(with_simulator("").starts_with("--cfg\u{1f}madsim"));
    }
}
