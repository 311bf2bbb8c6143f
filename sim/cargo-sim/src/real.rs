//! The copy of the user's tokio, under another name.
//!
//! Cargo refuses two packages of the same name and version in a graph, so both the package and its library
//! are renamed. Its manifest is written anew from what cargo reports, since that of a git checkout may
//! inherit keys from a workspace which the copy does not have.

use std::path::Path;

use cargo_metadata::{Dependency, DependencyKind, Package};
use toml::{Table, Value};

use crate::error::Error;
use crate::generate::{Files, read_folder};
use crate::source::Source;

/// The package name of the copy. It also tells a Cargo.lock with the replaced tokio from any other.
pub(crate) const REAL_TOKIO: &str = "fencepost-real-tokio";

/// The name of the copy's library.
pub(crate) const REAL_LIBRARY: &str = "real_tokio";

/// Files and folders of tokio that its library does not need.
const LEFT_OUT: [&str; 8] =
    ["tests", "benches", "examples", "target", "Cargo.toml", "Cargo.toml.orig", "Cargo.lock", ".git"];

/// Silences the warnings of a library, which cargo shows for packages from a path, and which the user may
/// have made errors (`-D warnings`). It stands before the first line, so that no line gets another number.
pub(crate) const QUIET: &str = "#![allow(warnings)] ";

/// Returns the files of the copy.
pub(crate) fn files(tokio: &Package) -> Result<Files, Error> {
    let folder = tokio.manifest_path.parent().map_or(Path::new("/"), |folder| folder.as_std_path());
    let mut files = read_folder(folder, |name| {
        let text = name.to_string_lossy();
        !LEFT_OUT.contains(&&*text) && !text.starts_with(".cargo")
    })?;
    let library = Path::new("src/lib.rs");
    let Some(source) = files.get_mut(library) else {
        return Err(Error::Message(format!(
            "{} does not exist: the sources of tokio are incomplete. Remove this folder, and cargo will \
             fetch them again",
            folder.join(library).display()
        )));
    };
    source.splice(..0, QUIET.bytes());
    draw_from_the_world(&mut files, tokio)?;
    Ok(files)
}

/// The function by which `select!` picks a branch, and a watch channel a waiter, and its replacement.
const DRAW: &str = "pub(crate) fn thread_rng_n(n: u32) -> u32 {";
const DRAW_OF_WORLD: &str = "pub(crate) fn thread_rng_n(n: u32) -> u32 { if let Some(process) = \
    ::sim_host::process() { return (process.random() % u64::from(n.max(1))) as u32; }";

/// Lets the copy draw from the random stream of the simulated process: its own is seeded by the machine. The
/// line stays one line.
fn draw_from_the_world(files: &mut Files, tokio: &Package) -> Result<(), Error> {
    let source = files.get_mut(Path::new("src/runtime/context.rs"));
    let text = source.as_ref().and_then(|source| std::str::from_utf8(source).ok());
    let changed = text.filter(|text| text.contains(DRAW)).map(|text| text.replacen(DRAW, DRAW_OF_WORLD, 1));
    match (source, changed) {
        (Some(source), Some(changed)) => {
            *source = changed.into_bytes();
            Ok(())
        }
        _ => Err(Error::Message(format!(
            "tokio {} can't be replaced: the place where it draws random numbers is not known. Install a newer \
             `cargo sim`, or use another tokio: `cargo update tokio --precise VERSION`",
            tokio.version
        ))),
    }
}

/// Returns the manifest of the copy, which asks the simulator's `sim_host` for random numbers.
pub(crate) fn manifest(tokio: &Package, sim_host: Table) -> String {
    let mut package = Table::new();
    package.insert("name".to_owned(), REAL_TOKIO.into());
    package.insert("version".to_owned(), tokio.version.to_string().into());
    package.insert("edition".to_owned(), tokio.edition.to_string().into());
    package.insert("publish".to_owned(), false.into());
    for unused in ["autobins", "autoexamples", "autotests", "autobenches"] {
        package.insert(unused.to_owned(), false.into());
    }
    let mut library = Table::new();
    library.insert("name".to_owned(), REAL_LIBRARY.into());
    library.insert("test".to_owned(), false.into());
    library.insert("doctest".to_owned(), false.into());

    let mut manifest = Table::new();
    manifest.insert("package".to_owned(), package.into());
    manifest.insert("lib".to_owned(), library.into());
    manifest.insert("features".to_owned(), features(tokio).into());
    // It lies below the user's workspace, and is no member.
    manifest.insert("workspace".to_owned(), Table::new().into());
    for dependency in &tokio.dependencies {
        add(&mut manifest, dependency);
    }
    if let Some(dependencies) = table(&mut manifest, "dependencies") {
        dependencies.insert("sim_host".to_owned(), sim_host.into());
    }
    manifest.to_string()
}

fn features(tokio: &Package) -> Table {
    let features = tokio.features.iter();
    features.map(|(name, enabled)| (name.clone(), Value::from(enabled.clone()))).collect()
}

/// Adds a dependency to the table for its kind and platform; those of tests are left out.
fn add(manifest: &mut Table, dependency: &Dependency) {
    let kind = match dependency.kind {
        DependencyKind::Normal => "dependencies",
        DependencyKind::Build => "build-dependencies",
        _ => return,
    };
    let place = match &dependency.target {
        None => Some(manifest),
        Some(target) => table(manifest, "target").and_then(|all| table(all, &target.to_string())),
    };
    if let Some(dependencies) = place.and_then(|place| table(place, kind)) {
        let name = dependency.rename.as_ref().unwrap_or(&dependency.name);
        dependencies.insert(name.clone(), described(dependency).into());
    }
}

fn described(dependency: &Dependency) -> Table {
    let mut described = Table::new();
    described.insert("package".to_owned(), dependency.name.clone().into());
    described.insert("version".to_owned(), dependency.req.to_string().into());
    described.insert("optional".to_owned(), dependency.optional.into());
    described.insert("default-features".to_owned(), dependency.uses_default_features.into());
    described.insert("features".to_owned(), dependency.features.clone().into());
    if let Some(path) = &dependency.path {
        described.insert("path".to_owned(), path.to_string().into());
    }
    if let Some(source) = &dependency.source {
        Source::of(source).add_to(&mut described);
    }
    described
}

/// Returns the table `name` in `parent`, which it makes if need be.
fn table<'a>(parent: &'a mut Table, name: &str) -> Option<&'a mut Table> {
    parent.entry(name).or_insert_with(|| Table::new().into()).as_table_mut()
}
