//! Crates in temporary folders, and calls of `cargo sim` in them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

/// A test that only the replacement of tokio passes: tokio lacks the constant.
pub(crate) const USES_TOKIO: &str = "\
#[test]
fn tokio_is_replaced() {
    assert!(tokio::IS_SIMULATED);
    tokio::runtime::Builder::new_current_thread().enable_all();
}
";

/// A folder with a crate or a workspace.
pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    target: PathBuf,
    /// Cargo's home, if it is not that of the user.
    home: Option<PathBuf>,
}

impl Fixture {
    /// Makes a crate `name` with these dependencies and this library, and its Cargo.lock.
    pub(crate) fn new(name: &str, dependencies: &str, library: &str) -> Self {
        let fixture = Self::empty();
        fixture.write("Cargo.toml", &manifest(name, dependencies));
        fixture.write("src/lib.rs", library);
        fixture.resolve();
        fixture
    }

    pub(crate) fn empty() -> Self {
        Self { folder: TempDir::new().unwrap(), target: shared_target(), home: None }
    }

    /// Uses a target folder of its own.
    pub(crate) fn with_own_target(mut self) -> Self {
        self.target = self.path("target");
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn lock_file(&self) -> String {
        fs::read_to_string(self.path("Cargo.lock")).unwrap()
    }

    /// Makes Cargo.lock.
    pub(crate) fn resolve(&self) {
        let output = self.command(env!("CARGO")).arg("generate-lockfile").output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    }

    /// Returns all files with their contents, but those of a target folder and of cargo's home.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && path != self.target && Some(&path) != self.home.as_ref() {
                    folders.push(path);
                } else if path.is_file() {
                    files.insert(path.clone(), fs::read(path).unwrap());
                }
            }
        }
        files
    }

    /// Returns the command `program` in this folder, with the environment of the tests.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| sets_flags(&name.to_string_lossy())) {
            command.env_remove(name);
        }
        command
            .current_dir(self.folder.path())
            .env("CARGO_TARGET_DIR", &self.target)
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_INCREMENTAL", "0")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_TERM_COLOR", "never")
            .envs(self.home.iter().map(|home| ("CARGO_HOME", home)))
            .stdin(Stdio::null());
        command
    }

    /// Returns `cargo sim` with `arguments`, separated by spaces.
    pub(crate) fn sim(&self, arguments: &str) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_cargo-sim"));
        command.env("CARGO", env!("CARGO")).arg("sim").args(arguments.split_whitespace());
        command
    }

    /// Runs `cargo sim`, which must succeed. Returns what it has printed.
    pub(crate) fn succeeds(&self, arguments: &str) -> String {
        let output = self.sim(arguments).output().unwrap();
        assert!(output.status.success(), "cargo sim {arguments}: {}", text(&output));
        text(&output)
    }

    /// Runs `cargo sim`, which must fail with the exit code `code`. Returns what it has printed.
    pub(crate) fn fails(&self, arguments: &str, code: i32) -> String {
        let output = self.sim(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "cargo sim {arguments}: {}", text(&output));
        text(&output)
    }

    /// Makes a git repository of the folder `repository`, which has a package `package` without dependencies,
    /// and lets cargo clone it: into a home of its own, which shares the user's registry. Returns its URL.
    pub(crate) fn clone_repository(&mut self, package: &str) -> String {
        let folder = self.path("repository");
        let identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
        for step in
            [&["init", "--quiet"][..], &["add", "--all", "--force"], &["commit", "--quiet", "-m", "a"]]
        {
            let git = Command::new("git").arg("-C").arg(&folder).args(identity).args(step).status();
            assert!(git.unwrap().success(), "git {step:?}");
        }
        let url = format!("file://{}", folder.display());
        let home = self.path("home");
        fs::create_dir(&home).unwrap();
        std::os::unix::fs::symlink(users_home().join("registry"), home.join("registry")).unwrap();
        self.home = Some(home);
        self.write("clone/Cargo.toml", &manifest("clone", &format!("{package} = {{ git = \"{url}\" }}")));
        self.write("clone/src/lib.rs", "");
        let mut fetch = self.command(env!("CARGO"));
        // Cargo clones no repository offline. No package here is in a registry.
        fetch.args(["fetch", "--manifest-path", "clone/Cargo.toml"]).env("CARGO_NET_OFFLINE", "false");
        let output = fetch.output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        url
    }
}

/// Returns true if cargo takes the flags of a compiler from the variable `name`:
/// CARGO_TARGET_<triple>_RUSTFLAGS is one of them.
fn sets_flags(name: &str) -> bool {
    name.ends_with("RUSTFLAGS") || name.ends_with("RUSTDOCFLAGS")
}

/// Returns the folder in which cargo keeps the registry.
fn users_home() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cargo"))
}

pub(crate) fn manifest(name: &str, dependencies: &str) -> String {
    let package = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    format!("{package}\n[dependencies]\n{dependencies}\n")
}

/// Returns the dependency on this repository's version of tokio, with the features that compile fastest.
pub(crate) fn tokio() -> String {
    format!("tokio = {{ version = \"={}\", default-features = false, features = [\"rt\"] }}", tokio_version())
}

/// Returns the version of tokio in this repository's Cargo.lock: the packages of that are at hand.
pub(crate) fn tokio_version() -> String {
    let lock_file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let lock_file: toml::Table = fs::read_to_string(lock_file).unwrap().parse().unwrap();
    let packages = lock_file["package"].as_array().unwrap();
    let tokio = packages.iter().find(|package| package["name"].as_str() == Some("tokio"));
    tokio.unwrap()["version"].as_str().unwrap().to_owned()
}

pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[expect(clippy::disallowed_methods, reason = "waits for another process")]
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

/// The target folder of most tests, which is emptied once for each run of the tests.
fn shared_target() -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cargo-sim");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    });
    folder.clone()
}
