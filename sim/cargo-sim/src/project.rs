//! The user's workspace, its dependencies and its tokio, as cargo reports them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use cargo_metadata::semver::Version;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

use crate::arguments::Arguments;
use crate::error::{Error, FAILED};
use crate::source::Source;

/// The oldest version of tokio that can be replaced.
pub(crate) const OLDEST: Version = Version::new(1, 44, 0);
/// The first version that is too new to be replaced.
pub(crate) const TOO_NEW: Version = Version::new(1, 60, 0);

/// The package of the simulator's marks, which the simulator and the replacement of tokio share.
pub(crate) const SIM_HOST: &str = "fencepost-sim-host";

/// The folders of a workspace.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
}

/// The tokio of a workspace, which is to be replaced.
pub(crate) struct Tokio<'a> {
    pub(crate) package: &'a Package,
    /// The names under which `[patch]` replaces it: `crates-io` or a URL.
    pub(crate) patched: BTreeSet<String>,
    /// The futures-timer of the workspace, and the names under which `[patch]` replaces it. Its timers have a
    /// thread of their own.
    pub(crate) timer: Option<(&'a Package, BTreeSet<String>)>,
    /// The simulator's marks, if the workspace depends on them.
    pub(crate) sim_host: Option<&'a Package>,
}

/// Returns a command that runs the cargo that has called this program.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Finds the workspace without a look at Cargo.lock, which an interrupted call may have left changed.
pub(crate) fn workspace(arguments: &Arguments) -> Result<Workspace, Error> {
    let mut command = cargo();
    command.args(["metadata", "--no-deps", "--format-version", "1"]).args(&arguments.graph);
    let metadata = parsed(command)?;
    let target = match &arguments.target_folder {
        Some(folder) => {
            let folder = Path::new(folder);
            std::path::absolute(folder).map_err(Error::at("can't use the target folder", folder))?
        }
        None => metadata.target_directory.into_std_path_buf(),
    };
    Ok(Workspace { root: metadata.workspace_root.into_std_path_buf(), target })
}

/// Returns the arguments by which `cargo metadata` reports the packages that this machine builds. Without a
/// platform it would download packages of all others.
pub(crate) fn platforms(arguments: &Arguments) -> Result<Vec<OsString>, Error> {
    let output = cargo().arg("-vV").output().map_err(Error::at("can't run", Path::new("cargo")))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).map(OsString::from);
    let platforms = host.into_iter().chain(arguments.platforms.iter().cloned());
    Ok(platforms.flat_map(|platform| ["--filter-platform".into(), platform]).collect())
}

/// Reports all packages, by the user's Cargo.lock. Cargo updates that file here as it always does, or fails
/// if the user forbids it.
pub(crate) fn packages(arguments: &Arguments, platforms: &[OsString]) -> Result<Metadata, Error> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1"]).args(&arguments.graph).args(platforms);
    if arguments.is_locked {
        command.arg("--locked");
    }
    if arguments.is_offline {
        command.arg("--offline");
    }
    parsed(command)
}

fn parsed(mut command: Command) -> Result<Metadata, Error> {
    let output =
        command.stderr(Stdio::inherit()).output().map_err(Error::at("can't run", Path::new("cargo")))?;
    if !output.status.success() {
        let code = output.status.code().and_then(|code| u8::try_from(code).ok());
        return Err(Error::Cargo(ExitCode::from(code.unwrap_or(FAILED))));
    }
    MetadataCommand::parse(String::from_utf8_lossy(&output.stdout)).map_err(|error| {
        Error::Message(format!(
            "can't read the output of `cargo metadata`: {error}; install a newer `cargo sim`"
        ))
    })
}

/// Finds the tokio 1 that is to be replaced, if there is one.
///
/// # Errors
///
/// A tokio that can't be replaced: from a path, of an unsupported version, or one of several.
pub(crate) fn tokio(metadata: &Metadata) -> Result<Option<Tokio<'_>>, Error> {
    let used = used(metadata);
    let mut found = used.iter().filter(|package| package.name == "tokio" && package.version.major == 1);
    let Some(package) = found.next() else { return Ok(None) };
    if let Some(other) = found.next() {
        return Err(Error::Message(format!(
            "two packages tokio are in use: {} and {}; let all dependencies use one of them \
             (`cargo tree -i tokio` shows who uses which)",
            package.id, other.id
        )));
    }
    check(package)?;
    let is_timer = |package: &&&Package| {
        package.name == "futures-timer" && package.version.major == 3 && package.source.is_some()
    };
    let timer = used.iter().find(is_timer).map(|timer| (*timer, patched(metadata, &used, timer)));
    let sim_host = used.iter().find(|package| package.name == SIM_HOST).copied();
    Ok(Some(Tokio { package, patched: patched(metadata, &used, package), timer, sim_host }))
}

/// Returns the names under which `[patch]` replaces `package`, for all packages that depend on it.
fn patched(metadata: &Metadata, used: &[&Package], package: &Package) -> BTreeSet<String> {
    let patched = used.iter().flat_map(|user| {
        let is_member = metadata.workspace_members.contains(&user.id);
        user.dependencies
            .iter()
            .filter(move |dependency| is_member || dependency.kind != DependencyKind::Development)
            .filter(|dependency| dependency.name == *package.name && dependency.req.matches(&package.version))
            .filter_map(|dependency| Some(Source::of(dependency.source.as_ref()?).patch_key()))
    });
    patched.collect()
}

/// Returns the packages that are built with the chosen features, for the chosen platforms.
fn used(metadata: &Metadata) -> Vec<&Package> {
    let nodes = metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
    let ids: BTreeSet<_> = nodes.map(|node| &node.id).collect();
    metadata.packages.iter().filter(|package| ids.contains(&package.id)).collect()
}

fn check(tokio: &Package) -> Result<(), Error> {
    if tokio.source.is_none() {
        let folder = tokio.manifest_path.parent().map(ToString::to_string).unwrap_or_default();
        return Err(Error::Message(format!(
            "tokio comes from the folder {folder}. `cargo sim` replaces tokio by a `[patch]`, which applies \
             to packages of registries and git repositories, not to folders. Remove the `[patch]` of tokio \
             or the `path` of the dependency, or let it name a git repository"
        )));
    }
    if tokio.version < OLDEST || tokio.version >= TOO_NEW {
        return Err(Error::Message(format!(
            "tokio {} can't be replaced: `cargo sim` {} supports tokio from {OLDEST} to below {TOO_NEW}. {}",
            tokio.version,
            env!("CARGO_PKG_VERSION"),
            if tokio.version < OLDEST {
                "Update it: `cargo update tokio`"
            } else {
                "Install a newer `cargo sim`, or use an older tokio: `cargo update tokio --precise VERSION`"
            }
        )));
    }
    Ok(())
}
