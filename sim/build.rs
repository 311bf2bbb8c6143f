//! Says what a crate outside the workspace lacks, before its build fails with words that nobody could act on.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a build script")]

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PROTOC");
    let has_madsim = env::var_os("CARGO_CFG_MADSIM").is_some();
    let in_path = |folder: std::path::PathBuf| folder.join("protoc").is_file();
    let path = env::var_os("PATH").unwrap_or_default();
    // Only etcd's client compiles protobuf files.
    let can_compile_etcd = env::var_os("CARGO_FEATURE_ETCD").is_none()
        || env::var_os("PROTOC").is_some()
        || env::split_paths(&path).any(in_path);
    if has_madsim && can_compile_etcd {
        return;
    }
    let lacks = match (has_madsim, can_compile_etcd) {
        (false, false) => "`--cfg madsim` and a protobuf compiler",
        (false, true) => "`--cfg madsim`",
        _ => "a protobuf compiler",
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".."));
    println!(
        "cargo::error=`sim` needs {lacks}. One command sets both up for your crate: \
         {}/tools/init FOLDER_OF_YOUR_CRATE. (A RUSTFLAGS variable in the environment overrides what it writes: \
         unset it, or add `--cfg madsim` to it.)",
        root.display()
    );
}
