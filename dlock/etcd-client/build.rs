//! Puts the generated code to where `tonic::include_proto!` looks for it.

use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=generated");
    let which = if cfg!(feature = "build-server") {
        "server"
    } else {
        "client"
    };
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    for entry in fs::read_dir(Path::new("generated").join(which)).expect("the generated code") {
        let file = entry.expect("the generated code").path();
        let name = file.file_name().expect("a name");
        fs::copy(&file, Path::new(&out).join(name)).expect("a copy of the generated code");
    }
}
