//! `init`: sets up a crate outside the workspace, so that `sim` builds as its dependency.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Outcome, print};

/// The configuration of cargo: madsim simulates only under its cfg, and the build of etcd-client compiles
/// etcd's protocol.
const CONFIG: &str = r#"# For the crate `sim`: madsim simulates only under this cfg, and etcd-client compiles etcd's protocol when it is built.
[build]
rustflags = ["--cfg", "madsim"]
rustdocflags = ["--cfg", "madsim"]

# In place of the flags above. The linker takes the first of two definitions of `clock_gettime`, that of `sim`: it gives
# `std::time` inside a process the clocks of that process.
[target.'cfg(target_os = "linux")']
rustflags = ["--cfg", "madsim", "-C", "link-arg=-Wl,--allow-multiple-definition"]

# The same for tests in documentation: cargo takes them by the name of the target only.
[target.x86_64-unknown-linux-gnu]
rustdocflags = ["--cfg", "madsim", "-C", "link-arg=-Wl,--allow-multiple-definition"]

[target.aarch64-unknown-linux-gnu]
rustdocflags = ["--cfg", "madsim", "-C", "link-arg=-Wl,--allow-multiple-definition"]

[env]
PROTOC = { value = ".cargo/protoc", relative = true }
"#;

/// The script that finds the protobuf compiler that cargo itself has downloaded.
const PROTOC: &str = include_str!("../../../tools/protoc");

/// Writes `.cargo/config.toml` and `.cargo/protoc` into the crate's folder. Keeps an existing config.toml; it
/// is an error if that lacks a setting.
pub(crate) fn init(folder: &Path) -> Outcome {
    if !folder.join("Cargo.toml").is_file() {
        let problem = format!("{} has no Cargo.toml: give the folder of your crate", folder.display());
        return Err(problem.into());
    }
    let cargo = folder.join(".cargo");
    let config = cargo.join("config.toml");
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| format!("{}: {error}", path.display())
    };
    if config.exists() {
        let text = fs::read_to_string(&config).map_err(failed(&config))?;
        if let Some(missing) = missing(&text) {
            let problem = format!(
                "{} exists and lacks {missing}: add this to it by hand, and run this command again\n\n\
                 {CONFIG}",
                config.display()
            );
            return Err(problem.into());
        }
    } else {
        fs::create_dir_all(&cargo).map_err(failed(&cargo))?;
        write(&config, CONFIG).map_err(failed(&config))?;
    }
    let protoc = cargo.join("protoc");
    write(&protoc, PROTOC).map_err(failed(&protoc))?;
    make_executable(&protoc).map_err(failed(&protoc))?;
    print(&format!(
        "{} is set up. Add this to its Cargo.toml:\n\n[dev-dependencies]\nsim = {{ path = \"{}\" }}\n",
        folder.display(),
        path_to_sim(folder).display()
    ))?;
    Ok(true)
}

/// Returns the first setting that the file lacks, if any.
fn missing(text: &str) -> Option<&'static str> {
    let Ok(table) = text.parse::<toml::Table>() else { return Some("valid TOML") };
    let flags = table.get("build").and_then(|build| build.get("rustflags")).map(ToString::to_string);
    if !flags.is_some_and(|flags| flags.contains("madsim")) {
        return Some("build.rustflags with --cfg madsim");
    }
    if !text.contains("--allow-multiple-definition") {
        return Some("the linker flag --allow-multiple-definition");
    }
    let protoc = table.get("env").and_then(|env| env.get("PROTOC"));
    protoc.is_none().then_some("env.PROTOC")
}

/// Writes a draft and renames it, so that the file is never incomplete.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension("new");
    fs::write(&draft, text)?;
    fs::rename(&draft, path)
}

#[cfg(unix)]
fn make_executable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns the path to the crate `sim`: relative if `folder` and the workspace of `sim` have the same parent.
fn path_to_sim(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let parent = |path: &Path| path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
    match (parent(folder), parent(root), root.file_name()) {
        (Some(ours), Some(theirs), Some(name)) if ours == theirs => Path::new("..").join(name).join("sim"),
        _ => root.join("sim"),
    }
}
