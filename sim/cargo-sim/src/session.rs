//! The steps of a call.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use toml::{Table, Value};

use crate::arguments::Arguments;
use crate::child::{self, Signals};
use crate::error::Error;
use crate::lockfile::LockFile;
use crate::project::{self, Tokio};
use crate::{flags, generate, shim};

/// Runs cargo with tokio replaced. Returns cargo's exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let workspace = project::workspace(arguments)?;
    let folder = workspace.target.join("sim");
    let state = folder.join("workspaces").join(name_of(&workspace.root));
    fs::create_dir_all(&state).map_err(Error::at("can't create", &state))?;
    let _turn = wait_for_turn(&folder)?;
    let lock_file = LockFile::new(&workspace.root, &state);
    lock_file.recover()?;

    let platforms = project::platforms(arguments)?;
    let metadata = project::packages(arguments, &platforms)?;
    let tokio = project::tokio(&metadata)?;
    let mut command = command(arguments, &folder)?;
    let Some(tokio) = tokio else {
        eprintln!("cargo sim: no package here depends on tokio 1, so there is nothing to replace");
        if arguments.is_locked {
            command.arg("--locked");
        }
        command.args(&arguments.rest);
        return child::run(command, &Signals::catch()?);
    };
    let patch = state.join("patch.toml");
    shim::write(&folder, &tokio)?;
    write_patch(&patch, &tokio, &folder)?;
    command.arg("--config").arg(&patch).args(&arguments.rest);

    // From here on the program ends only when Cargo.lock is restored.
    let signals = Signals::catch()?;
    let exchanged = lock_file.exchange()?;
    if !exchanged.is_known() {
        resolve_offline(arguments, &platforms, &patch);
    }
    let code = match signals.received() {
        Some(signal) => ExitCode::from(signal.saturating_add(128)),
        None => child::run(command, &signals)?,
    };
    exchanged.finish()?;
    Ok(code)
}

/// Returns cargo's command without the user's arguments.
fn command(arguments: &Arguments, folder: &Path) -> Result<Command, Error> {
    let mut command = project::cargo();
    command.arg(arguments.command).arg("--target-dir").arg(folder.join("build"));
    if arguments.is_offline {
        command.arg("--offline");
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", flags::of_compiler(folder, arguments)?);
    if arguments.command == "test" {
        command.env("CARGO_ENCODED_RUSTDOCFLAGS", flags::of_documentation(folder, arguments)?);
    }
    Ok(command)
}

/// Waits until no other call uses `folder`. The turn ends when the file is closed, at the latest with the
/// program.
fn wait_for_turn(folder: &Path) -> Result<File, Error> {
    let path = folder.join(".lock");
    let file = File::options().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(Error::at("can't open", &path))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(Error::at("can't lock", &path)(error)),
    }
    eprintln!("cargo sim: waiting for another `cargo sim` in {}", folder.display());
    file.lock().map_err(Error::at("can't lock", &path))?;
    Ok(file)
}

/// Writes the configuration by which cargo replaces packages by those in `folder`.
fn write_patch(file: &Path, tokio: &Tokio<'_>, folder: &Path) -> Result<(), Error> {
    let mut patches = Table::new();
    let timer = tokio.timer.as_ref().map(|(package, patched)| (*package, patched));
    for (package, patched) in [(tokio.package, &tokio.patched)].into_iter().chain(timer) {
        let path = folder.join(shim::folder_of(package)).to_string_lossy().into_owned();
        let by_path = Table::from_iter([("path".to_owned(), Value::from(path))]);
        for key in patched {
            let of_source = patches.entry(key.clone()).or_insert_with(|| Table::new().into());
            if let Some(of_source) = of_source.as_table_mut() {
                of_source.insert(package.name.to_string(), by_path.clone().into());
            }
        }
    }
    let configuration = Table::from_iter([("patch".to_owned(), Value::from(patches))]);
    generate::write_changed(file, configuration.to_string().as_bytes())
}

/// Lets cargo make the lock file without the network: all packages are at hand as a rule. If it fails,
/// cargo's run makes it, and reports the error if there is one.
fn resolve_offline(arguments: &Arguments, platforms: &[std::ffi::OsString], patch: &Path) {
    let mut command = project::cargo();
    command.args(["metadata", "--offline", "--format-version", "1", "--config"]).arg(patch);
    command.args(&arguments.graph).args(platforms).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = command.status();
}

/// Returns a folder's name for a workspace: one target folder may serve several of them.
fn name_of(root: &Path) -> PathBuf {
    // FNV-1a, 64 bits (RFC 9923): the name must be the same in each call, by any build of this program.
    let hash = root.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}-{hash:016x}").into()
}
