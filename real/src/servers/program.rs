//! Finds server programs, and names the Debian package of a missing one.

use std::path::{Path, PathBuf};

use super::error::ServerError;

/// Debian's folders of servers, besides those in `PATH`: an ordinary user's `PATH` lacks some.
const ALSO: [&str; 3] = ["/usr/bin", "/usr/sbin", "/usr/local/bin"];
/// Debian's folder of PostgreSQL's programs, with a folder for each version.
const POSTGRES: &str = "/usr/lib/postgresql";
/// The folder of servers that `tools/test` fetches.
const FETCHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/servers");
/// Debian's folder of Java archives.
const JARS: &str = "/usr/share/java";

/// Finds the program `name`.
pub(super) fn find(name: &str, package: &'static str) -> Result<PathBuf, ServerError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(ALSO.iter().map(PathBuf::from));
    let mut files = directories.map(|directory| directory.join(name));
    files.find(|file| file.is_file()).ok_or_else(|| missing(name, package))
}

/// Finds the program `name` that `tools/test` has fetched from `package`.
pub(super) fn find_fetched(name: &str, package: &'static str) -> Result<PathBuf, ServerError> {
    let file = Path::new(FETCHED).join(name);
    if file.is_file() {
        return Ok(file);
    }
    Err(ServerError::NotFetched { program: file.display().to_string(), package })
}

/// Finds the folder `name` into which `tools/test` has fetched PyPI's `package`.
pub(super) fn fetched_folder(name: &str, package: &'static str) -> Result<PathBuf, ServerError> {
    let folder = Path::new(FETCHED).join(name);
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(ServerError::NotFetched { program: folder.display().to_string(), package })
}

/// Finds PostgreSQL's program `name` in the newest version installed.
pub(super) fn find_postgres(name: &str) -> Result<PathBuf, ServerError> {
    let versions = std::fs::read_dir(POSTGRES).into_iter().flatten().flatten();
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let programs = versions.filter_map(|entry| {
        let program = entry.path().join("bin").join(name);
        program.is_file().then(|| (version(&entry.path()), program))
    });
    programs.max().map_or_else(|| find(name, "postgresql"), |(_, program)| Ok(program))
}

/// Finds the Java archives `names`, and returns them as a class path.
pub(super) fn class_path(names: &[&str], package: &'static str) -> Result<String, ServerError> {
    let mut path = String::new();
    for name in names {
        let jar = Path::new(JARS).join(name);
        if !jar.is_file() {
            return Err(missing(&jar.display().to_string(), package));
        }
        path.push_str(&jar.display().to_string());
        path.push(':');
    }
    path.pop();
    Ok(path)
}

fn missing(program: &str, package: &'static str) -> ServerError {
    ServerError::Missing { program: program.to_owned(), package }
}
