//! Peers in other languages, or with a build of their own: processes that read jobs as lines of JSON.
//!
//! Their dependencies are fetched once, in the versions pinned in `real/peers/`, into `target/peers`.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::PeerError;
use super::slice::{Job, Peer, Slice};

/// The folder of the peers' sources.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers");
/// The folder of their dependencies and builds.
const CACHE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/peers");
/// The number of lines of a failed command's output that the error quotes.
const LAST_LINES: usize = 3;

/// A peer in a process of its own. Dropping it kills the process.
pub(super) struct Foreign {
    name: &'static str,
    child: Child,
    jobs: ChildStdin,
    slices: BufReader<ChildStdout>,
}

impl Foreign {
    /// Starts a process that reads jobs and writes slices.
    pub(super) fn start(name: &'static str, command: &mut Command) -> Result<Self, PeerError> {
        let lost = |why: String| PeerError::Missing { name, why };
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| lost(error.to_string()))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(jobs), Some(slices)) => Ok(Self { name, child, jobs, slices: BufReader::new(slices) }),
            _ => Err(lost("it has no standard input or output".to_owned())),
        }
    }

    fn ask(&mut self, job: &Job) -> io::Result<Slice> {
        let mut line = serde_json::to_string(job)?;
        line.push('\n');
        self.jobs.write_all(line.as_bytes())?;
        line.clear();
        if self.slices.read_line(&mut line)? == 0 {
            return Err(io::Error::other("it ended before it answered"));
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Peer for Foreign {
    fn name(&self) -> &'static str {
        self.name
    }

    fn process(&self) -> Option<u32> {
        Some(self.child.id())
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        let what = match self.ask(job) {
            Ok(Slice { error: Some(what), .. }) => what,
            Ok(slice) => return Ok(slice),
            Err(error) => error.to_string(),
        };
        Err(PeerError::Failed { name: self.name, what })
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // It fails only if the process has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts redis-py's Lock, on the Redis at `server`.
pub(super) fn redis_py(server: &str) -> Result<Foreign, PeerError> {
    python("redis-py", "redis_py.py", &[server])
}

/// Starts kazoo's Lock, Semaphore, ReadLock and WriteLock, on the ZooKeeper at `server`.
pub(super) fn kazoo(server: &str) -> Result<Foreign, PeerError> {
    python("kazoo", "kazoo_lock.py", &[server])
}

/// Starts kazoo's Election, on the ZooKeeper at `server`.
pub(super) fn kazoo_election(server: &str) -> Result<Foreign, PeerError> {
    python("kazoo's Election", "kazoo_lock.py", &[server, "election"])
}

fn python(name: &'static str, script: &str, arguments: &[&str]) -> Result<Foreign, PeerError> {
    let home = Path::new(CACHE).join("python");
    let interpreter = home.join("bin/python");
    prepare(name, "requirements.txt", &home, |requirements| {
        run(Command::new("python3").args(["-m", "venv"]).arg(&home), "apt-get install python3-venv")?;
        let mut install = Command::new(&interpreter);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
        run(install.arg(requirements), "let this machine reach PyPI, or set PIP_INDEX_URL")
    })?;
    Foreign::start(name, Command::new(interpreter).arg(source(script)).args(arguments))
}

/// Starts node-redlock, on the Redis at `server`.
pub(super) fn node_redlock(server: &str) -> Result<Foreign, PeerError> {
    node("node-redlock", "node_redlock.mjs", server)
}

/// Starts redis-semaphore, on the Redis at `server`.
pub(super) fn redis_semaphore(server: &str) -> Result<Foreign, PeerError> {
    node("redis-semaphore", "redis_semaphore.mjs", server)
}

/// Starts BullMQ, on the Redis at `server`.
pub(super) fn bullmq(server: &str) -> Result<Foreign, PeerError> {
    node("bullmq", "bullmq.mjs", server)
}

/// Starts pg-boss, on the PostgreSQL at `url`.
pub(super) fn pg_boss(url: &str) -> Result<Foreign, PeerError> {
    node("pg-boss", "pg_boss.mjs", url)
}

fn node(name: &'static str, script: &str, server: &str) -> Result<Foreign, PeerError> {
    let home = Path::new(CACHE).join("node");
    prepare(name, "package-lock.json", &home, |lock| {
        fs::create_dir_all(&home)
            .and_then(|()| fs::copy(lock, home.join("package-lock.json")))
            .and_then(|_| fs::copy(source("package.json"), home.join("package.json")))
            .map_err(|error| error.to_string())?;
        let mut install = Command::new("npm");
        install.args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(&home);
        run(&mut install, "apt-get install nodejs npm, and let this machine reach the npm registry")
    })?;
    // Node looks for packages beside the program.
    let program = home.join(script);
    fs::copy(source(script), &program)
        .map_err(|error| PeerError::Missing { name, why: error.to_string() })?;
    Foreign::start(name, Command::new("node").arg(program).arg(server))
}

/// Starts the rslock crate, on the Redis at `server`.
pub(super) fn rslock(server: &str) -> Result<Foreign, PeerError> {
    let name = "rslock";
    let home = Path::new(CACHE).join("rslock");
    let mut build = Command::new("cargo");
    build.args(["build", "--quiet", "--release", "--locked", "--target-dir"]).arg(&home);
    build.arg("--manifest-path").arg(source("rslock/Cargo.toml"));
    run(&mut build, "install Rust by rustup, and let this machine reach crates.io")
        .map_err(|why| PeerError::Missing { name, why })?;
    Foreign::start(name, Command::new(home.join("release/rslock-peer")).arg(server))
}

fn source(file: &str) -> PathBuf {
    Path::new(SOURCES).join(file)
}

/// Calls `install` with the file of versions `pins`, unless `home` was installed from the same file.
fn prepare(
    name: &'static str,
    pins: &str,
    home: &Path,
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), PeerError> {
    let missing = |why| PeerError::Missing { name, why };
    let (wanted, note) = (source(pins), home.join("installed"));
    let versions = fs::read(&wanted).map_err(|error| missing(format!("{}: {error}", wanted.display())))?;
    if fs::read(&note).is_ok_and(|installed| installed == versions) {
        return Ok(());
    }
    install(&wanted).map_err(missing)?;
    fs::write(&note, versions).map_err(|error| missing(error.to_string()))
}

/// Runs a command to completion; `advice` is the remedy if it fails.
fn run(command: &mut Command, advice: &str) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => return Err(format!("`{program}` could not be started: {error}; {advice}")),
    };
    if output.status.success() {
        return Ok(());
    }
    let told =
        String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr });
    let lines: Vec<_> = told.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LAST_LINES)..].join(" / ");
    Err(format!("`{program}` failed ({}): {last}; {advice}", output.status))
}

#[cfg(test)]
mod tests {
    use super::super::slice::Scenario;
    use super::*;

    fn job() -> Job {
        let name = "k".to_owned();
        Job {
            scenario: Scenario::Hot,
            name,
            operations: 1,
            contenders: 2,
            keys: 2,
            permits: 6,
            work_ms: 3,
            ttl_ms: 4,
            millis: 5,
        }
    }

    fn shell(script: &str) -> Foreign {
        Foreign::start("a shell", Command::new("sh").args(["-c", script])).unwrap()
    }

    #[test]
    fn a_peer_gets_a_job_and_answers_with_a_slice() {
        // It answers only to the job expected.
        let script = r#"read -r job; case $job in *'"scenario":"hot"'*'"contenders":2'*)
            echo '{"acquire_ns":[1,2],"completed":2,"elapsed_ns":9}';; esac"#;
        let slice = shell(script).run(&job()).unwrap();
        assert_eq!((slice.acquire_ns.as_slice(), slice.completed, slice.elapsed_ns), (&[1, 2][..], 2, 9));
    }

    #[test]
    fn a_peer_that_fails_or_ends_is_named() {
        let told = |script| shell(script).run(&job()).unwrap_err().to_string();
        assert!(told(r#"read -r job; echo '{"error":"no lock"}'"#).contains("a shell failed: no lock"));
        assert!(told("read -r job").contains("ended before it answered"));
    }

    #[test]
    fn a_failed_command_shows_its_output_and_the_remedy() {
        let error = run(Command::new("sh").args(["-c", "echo why >&2; exit 3"]), "do this").unwrap_err();
        assert_eq!(error, "`sh` failed (exit status: 3): why; do this");
        let error = run(&mut Command::new("no-such-program"), "do that").unwrap_err();
        assert!(error.contains("`no-such-program`") && error.ends_with("do that"), "{error}");
    }
}
