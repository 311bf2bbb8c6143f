//! The packages that replace tokio and futures-timer: their generated manifests, their sources, and the
//! packages that they need.

use std::path::Path;

use cargo_metadata::Package;
use include_dir::{Dir, include_dir};
use toml::{Table, Value};

use crate::error::Error;
use crate::generate::{Files, write_folder};
use crate::project::{SIM_HOST, Tokio};
use crate::real::{self, QUIET, REAL_LIBRARY, REAL_TOKIO};
use crate::source::Source;

static SHIM: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/shim");
static HOST: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/host");
static TIMER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/timer");
static SEND_WRAPPER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/send_wrapper");

/// A dependency of the replacement, beside the real tokio and the simulator's marks.
struct Needed {
    name: &'static str,
    /// The version, unless tokio depends on the same package: its requirement applies then, since Cargo.lock
    /// has that version, and no other may be at hand without the network.
    version: &'static str,
    features: &'static [&'static str],
    /// The feature of tokio that needs it; without one it is always needed.
    feature: Option<&'static str>,
    /// The sources, if they are part of this program: packages that tokio does not bring are neither in
    /// Cargo.lock nor among vendored sources.
    embedded: Option<&'static Dir<'static>>,
}

/// The dependencies of the replacement. A change of `sim/tokio` that needs another package gets a row here.
const NEEDED: &[Needed] = &[
    Needed { name: "bytes", version: "1", features: &[], feature: Some("io-util"), embedded: None },
    Needed { name: "pin-project-lite", version: "0.2", features: &[], feature: None, embedded: None },
    Needed {
        name: "send_wrapper",
        version: "0.6.0",
        features: &["futures"],
        feature: None,
        embedded: Some(&SEND_WRAPPER),
    },
    Needed { name: "socket2", version: "0.6", features: &["all"], feature: Some("net"), embedded: None },
];

/// Returns the name of the folder of a package's replacement.
pub(crate) fn folder_of(package: &Package) -> String {
    format!("{}-{}", package.name, package.version)
}

/// Writes the copy of tokio and the replacements below `folder`, each in the folder of its name.
pub(crate) fn write(folder: &Path, tokio: &Tokio<'_>) -> Result<(), Error> {
    let version = &tokio.package.version;
    let mut copy = real::files(tokio.package)?;
    copy.insert("Cargo.toml".into(), real::manifest(tokio.package, sim_host(tokio.sim_host)).into_bytes());
    write_folder(&folder.join(format!("real-tokio-{version}")), &copy)?;
    if tokio.sim_host.is_none() {
        let mut files = library(SIM_HOST, "sim_host", env!("CARGO_PKG_VERSION"), &HOST)?;
        files.insert("README.md".into(), b"Marks of the simulator fencepost-sim.\n".to_vec());
        write_folder(&folder.join("sim-host"), &files)?;
    }
    for needed in NEEDED {
        if let Some(sources) = needed.embedded {
            let files = library(&renamed(needed.name), needed.name, needed.version, sources)?;
            write_folder(&folder.join(needed.name), &files)?;
        }
    }
    let mut files = sources(&SHIM)?;
    files.insert("Cargo.toml".into(), manifest(tokio).to_string().into_bytes());
    write_folder(&folder.join(folder_of(tokio.package)), &files)?;
    match &tokio.timer {
        Some((timer, _)) => write_timer(folder, timer, tokio.sim_host),
        None => Ok(()),
    }
}

/// Writes the replacement of futures-timer. Its features are those of other platforms.
fn write_timer(folder: &Path, timer: &Package, used: Option<&Package>) -> Result<(), Error> {
    let features = timer.features.keys().map(|name| (name.clone(), Value::Array(Vec::new())));
    let mut manifest =
        package_of("futures-timer", "futures_timer", &timer.version.to_string(), features.collect());
    let dependencies = Table::from_iter([("sim_host".to_owned(), sim_host(used).into())]);
    manifest.insert("dependencies".to_owned(), dependencies.into());
    let mut files = sources(&TIMER)?;
    files.insert("Cargo.toml".into(), manifest.to_string().into_bytes());
    write_folder(&folder.join(folder_of(timer)), &files)
}

/// Returns the name of an embedded package. Its own name would collide with that of the registry.
fn renamed(name: &str) -> String {
    format!("fencepost-{}", name.replace('_', "-"))
}

/// Returns embedded sources as the files of a package.
fn sources(folder: &Dir<'_>) -> Result<Files, Error> {
    let mut files = Files::new();
    collect(folder, &mut files);
    match files.get_mut(Path::new("src/lib.rs")) {
        Some(library) => library.splice(..0, QUIET.bytes()),
        None => {
            return Err(Error::Message(
                "this `cargo sim` was built without its sources: reinstall it".into(),
            ));
        }
    };
    Ok(files)
}

fn collect(folder: &Dir<'_>, files: &mut Files) {
    for file in folder.files() {
        files.insert(Path::new("src").join(file.path()), file.contents().to_vec());
    }
    for folder in folder.dirs() {
        collect(folder, files);
    }
}

/// Returns the files of a small package without dependencies; each feature is one that `NEEDED` names.
fn library(package: &str, library: &str, version: &str, folder: &Dir<'_>) -> Result<Files, Error> {
    let mut files = sources(folder)?;
    let features = NEEDED.iter().filter(|needed| needed.name == library).flat_map(|needed| needed.features);
    let features = features.map(|feature| ((*feature).to_owned(), Value::Array(Vec::new()))).collect();
    let manifest = package_of(package, library, version, features);
    files.insert("Cargo.toml".into(), manifest.to_string().into_bytes());
    Ok(files)
}

fn package_of(name: &str, library: &str, version: &str, features: Table) -> Table {
    let mut package = Table::new();
    package.insert("name".to_owned(), name.into());
    package.insert("version".to_owned(), version.into());
    package.insert("edition".to_owned(), "2024".into());
    package.insert("publish".to_owned(), false.into());
    let mut lib = Table::new();
    lib.insert("name".to_owned(), library.into());
    let mut manifest = Table::new();
    manifest.insert("package".to_owned(), package.into());
    manifest.insert("lib".to_owned(), lib.into());
    manifest.insert("features".to_owned(), features.into());
    // It lies below the user's workspace, and is no member.
    manifest.insert("workspace".to_owned(), Table::new().into());
    manifest
}

fn manifest(tokio: &Tokio<'_>) -> Table {
    let package = tokio.package;
    let version = package.version.to_string();
    let mut dependencies = Table::new();
    let mut real = by_path(&format!("../real-tokio-{version}"));
    real.insert("package".to_owned(), REAL_TOKIO.into());
    real.insert("default-features".to_owned(), false.into());
    dependencies.insert(REAL_LIBRARY.to_owned(), real.into());
    dependencies.insert("sim_host".to_owned(), sim_host(tokio.sim_host).into());
    for needed in NEEDED {
        dependencies.insert(needed.name.to_owned(), dependency(needed, package).into());
    }
    let mut manifest = package_of("tokio", "tokio", &version, features(package));
    manifest.insert("dependencies".to_owned(), dependencies.into());
    manifest
}

/// Returns tokio's features. Each enables the same feature of the real tokio, and what the replacement needs
/// for it.
fn features(tokio: &Package) -> Table {
    let forwarded = tokio.features.iter().map(|(name, enabled)| {
        let mut values: Vec<String> =
            enabled.iter().filter(|other| tokio.features.contains_key(*other)).cloned().collect();
        values.push(format!("{REAL_LIBRARY}/{name}"));
        let needed = NEEDED.iter().filter(|needed| needed.feature == Some(name));
        values.extend(needed.map(|needed| format!("dep:{}", needed.name)));
        (name.clone(), Value::from(values))
    });
    forwarded.collect()
}

/// Returns the very package that the user's graph has: two copies would know two simulators.
fn sim_host(used: Option<&Package>) -> Table {
    let mut described = match used {
        None => by_path("../sim-host"),
        Some(package) => {
            let mut described = Table::new();
            match (&package.source, package.manifest_path.parent()) {
                (Some(source), _) => {
                    described.insert("version".to_owned(), format!("={}", package.version).into());
                    Source::of(source).add_to(&mut described);
                }
                (None, folder) => {
                    let folder = folder.map(ToString::to_string).unwrap_or_default();
                    described.insert("path".to_owned(), folder.into());
                }
            }
            described
        }
    };
    described.insert("package".to_owned(), SIM_HOST.into());
    described
}

fn dependency(needed: &Needed, tokio: &Package) -> Table {
    let mut described = match needed.embedded {
        Some(_) => by_path(&format!("../{}", needed.name)),
        None => Table::new(),
    };
    if needed.embedded.is_some() {
        described.insert("package".to_owned(), renamed(needed.name).into());
    } else {
        let of_tokio = tokio.dependencies.iter().find(|dependency| dependency.name == needed.name);
        let version = of_tokio.map_or_else(|| needed.version.to_owned(), |found| found.req.to_string());
        described.insert("version".to_owned(), version.into());
    }
    described.insert("features".to_owned(), Value::from(needed.features.to_vec()));
    described.insert("optional".to_owned(), needed.feature.is_some().into());
    described
}

fn by_path(path: &str) -> Table {
    Table::from_iter([("path".to_owned(), path.into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The marks must be the same in a build with the simulator and in one without.
    #[test]
    fn embedded_packages_have_their_libraries() {
        for folder in [&SHIM, &HOST, &TIMER, &SEND_WRAPPER] {
            assert!(sources(folder).unwrap().contains_key(Path::new("src/lib.rs")));
        }
    }
}
