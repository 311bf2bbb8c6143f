//! The versions of the installed servers.

use std::collections::BTreeMap;
use std::process::Command;

use super::{etcd, program, redis, zookeeper};

/// Returns the version of each installed server of the experiments, by its name.
pub(crate) fn versions() -> BTreeMap<String, String> {
    let server = |name, package| says(Command::new(program::find(name, package).ok()?).arg("--version"));
    let all = [
        ("Redis", server("redis-server", redis::PACKAGE)),
        ("etcd", server("etcd", etcd::PACKAGE)),
        (
            "PostgreSQL",
            program::find_postgres("postgres")
                .ok()
                .and_then(|file| says(Command::new(file).arg("--version"))),
        ),
        ("ZooKeeper", zookeeper::version_command().ok().and_then(|mut command| says(&mut command))),
    ];
    all.into_iter().filter_map(|(name, version)| Some((name.to_owned(), version?))).collect()
}

fn says(command: &mut Command) -> Option<String> {
    number(&String::from_utf8_lossy(&command.output().ok()?.stdout))
}

/// Returns the first word of digits with a point between them in `text`.
fn number(text: &str) -> Option<String> {
    let mut words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.find(|word| word.split('.').filter(|part| !part.is_empty()).count() >= 2).map(ToOwned::to_owned)
}
