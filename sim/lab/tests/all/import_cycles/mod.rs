//! Files and folders do not import each other in cycles, neither directly nor through others.
//!
//! A file imports another if it uses an item that the other defines. Three uses are no import: declaring a
//! module, re-exporting its items, and using items of the `mod.rs` of the file's own folder. Modules that
//! only tests compile are left out.

mod cycles;
mod imports;
mod resolve;
pub mod tree;

use std::collections::BTreeSet;

use cycles::{describe, find_cycles};
use imports::{Imports, between_files};
use tree::Tree;

/// The libraries to check, each with its folder.
const LIBRARIES: [(&str, &str); 12] = [
    ("dlock_runtime", "dlock/runtime"),
    ("sim_host", "sim/host"),
    ("dlock_zookeeper", "dlock/zookeeper"),
    ("dlock", "dlock"),
    ("history", "history"),
    ("picture", "history/picture"),
    ("fence", "resource/fence"),
    ("resource", "resource"),
    ("files", "files"),
    ("sim", "sim"),
    ("lab", "sim/lab"),
    ("real", "real"),
];
/// The programs in these crates.
const PROGRAMS: [&str; 2] = ["sim/lab/src/main.rs", "real/src/main.rs"];

/// Files in a cycle that is still to be broken: imports of these files are ignored. The aim is an empty list.
const IGNORED_FILES: &[&str] = &[];

/// The same for files and folders directly below a crate's `src`.
const IGNORED_FOLDERS: &[&str] = &[];

#[test]
fn no_file_is_in_an_import_cycle() {
    assert_none(&between_files(&workspace()), IGNORED_FILES);
}

#[test]
fn folders_import_in_one_direction() {
    assert_none(&between_folders(&between_files(&workspace())), IGNORED_FOLDERS);
}

/// Reads the sources of all libraries and programs.
pub fn workspace() -> Tree {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |file: &str| std::fs::read_to_string(format!("{root}/{file}")).ok();
    let mut tree = Tree::default();
    for (library, folder) in LIBRARIES {
        tree.add_library(library, &format!("{folder}/src/lib.rs"), &read);
    }
    for program in PROGRAMS {
        tree.add_root(program, &read);
    }
    tree
}

/// Returns the imports between the files and folders directly below a crate's `src`.
fn between_folders(imports: &Imports) -> Imports {
    let folder = |file: &str| match file.split_once("/src/") {
        Some((library, rest)) => format!("{library}/src/{}", rest.split('/').next().unwrap_or(rest)),
        None => file.to_owned(),
    };
    let mut folders = Imports::new();
    for ((from, to), names) in imports {
        let (from, to) = (folder(from), folder(to));
        if from != to {
            folders.entry((from, to)).or_default().extend(names.iter().cloned());
        }
    }
    folders
}

fn assert_none(imports: &Imports, ignored: &[&str]) {
    let all = find_cycles(imports);
    let broken = ignored.iter().filter(|name| !all.iter().any(|cycle| cycle.contains(**name)));
    let broken: Vec<_> = broken.collect();
    assert!(broken.is_empty(), "in no cycle any more, remove them from the list: {broken:?}");

    let mut others = imports.clone();
    others.retain(|(_, to), _| !ignored.contains(&to.as_str()));
    let found: Vec<String> = find_cycles(&others).iter().map(|cycle| describe(cycle, &others)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Finds the cycles in a crate `demo` with these files.
fn cycles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let read = |file: &str| files.iter().find(|(name, _)| *name == file).map(|(_, text)| (*text).to_owned());
    let mut tree = Tree::default();
    tree.add_library("demo", "demo/src/lib.rs", &read);
    let found = find_cycles(&between_files(&tree));
    let name = |file: &String| file.trim_start_matches("demo/src/").to_owned();
    found.iter().map(|cycle: &BTreeSet<String>| cycle.iter().map(name).collect()).collect()
}

#[test]
fn two_files_that_use_each_other_are_a_cycle() {
    let files = [
        ("demo/src/lib.rs", "mod a; mod b;"),
        ("demo/src/a.rs", "use crate::b::work; pub struct A; fn run() { work(); }"),
        ("demo/src/b.rs", "pub fn work() { let _ = super::a::A; }"),
    ];
    assert_eq!(cycles_of(&files), [["a.rs", "b.rs"]]);
}

#[test]
fn a_module_that_only_re_exports_is_in_no_cycle() {
    let files = [
        ("demo/src/lib.rs", "mod folder; pub use folder::{A, b::B};"),
        ("demo/src/folder/mod.rs", "mod a; pub mod b; pub use a::A;"),
        ("demo/src/folder/a.rs", "use super::b::B; pub struct A(B);"),
        ("demo/src/folder/b.rs", "pub struct B;"),
    ];
    assert_eq!(cycles_of(&files), Vec::<Vec<String>>::new());
}

#[test]
fn a_cycle_through_a_re_export_is_found() {
    let files = [
        ("demo/src/lib.rs", "mod folder; mod c;"),
        ("demo/src/folder/mod.rs", "mod a; pub use self::a::A as Renamed;"),
        ("demo/src/folder/a.rs", "pub struct A(crate::c::C);"),
        ("demo/src/c.rs", "use crate::folder::*; pub struct C; fn take(_: Renamed) {}"),
    ];
    assert_eq!(cycles_of(&files), [["c.rs", "folder/a.rs"]]);
}

#[test]
fn a_folder_may_define_items_that_its_files_share() {
    let files = [
        ("demo/src/lib.rs", "mod folder;"),
        ("demo/src/folder/mod.rs", "mod a; pub struct Shared; fn run() { a::run() }"),
        ("demo/src/folder/a.rs", "pub fn run() { drop(super::Shared) }"),
    ];
    assert_eq!(cycles_of(&files), Vec::<Vec<String>>::new());
}

#[test]
fn a_folder_that_defines_items_can_be_in_a_cycle() {
    let files = [
        ("demo/src/lib.rs", "mod folder; mod b;"),
        ("demo/src/folder/mod.rs", "mod a; pub struct Shared; fn run() { a::run() }"),
        ("demo/src/folder/a.rs", "pub fn run() { drop(crate::b::B) }"),
        ("demo/src/b.rs", "pub struct B(crate::folder::Shared);"),
    ];
    assert_eq!(cycles_of(&files), [["b.rs", "folder/a.rs", "folder/mod.rs"]]);
}

#[test]
fn a_function_named_like_a_module_contains_no_items() {
    let files = [
        ("demo/src/lib.rs", "mod check; mod run; mod work; pub use run::check;"),
        ("demo/src/check.rs", "pub struct Check;"),
        ("demo/src/run.rs", "use crate::work::Work; pub fn check(_: Work) {}"),
        ("demo/src/work.rs", "pub struct Work(crate::check::Check);"),
    ];
    assert_eq!(cycles_of(&files), Vec::<Vec<String>>::new());
}

#[test]
fn names_in_macros_and_in_attributes_count() {
    let files = [
        ("demo/src/lib.rs", "mod a; mod b;"),
        ("demo/src/a.rs", "pub const A: u8 = 0; fn run() { println!(\"{}\", [crate::b::is_zero(&A)]) }"),
        ("demo/src/b.rs", "#[serde(default = \"crate::a::A\")] pub struct B; pub fn is_zero(_: &u8) {}"),
    ];
    assert_eq!(cycles_of(&files), [["a.rs", "b.rs"]]);
}

#[test]
fn an_item_that_a_macro_defines_counts() {
    let files = [
        ("demo/src/lib.rs", "mod a; mod b;"),
        ("demo/src/a.rs", "define! { Made } fn run() { crate::b::run() }"),
        ("demo/src/b.rs", "use crate::a::Made; pub fn run() { drop(Made) }"),
    ];
    assert_eq!(cycles_of(&files), [["a.rs", "b.rs"]]);
}

#[test]
fn modules_for_tests_are_left_out() {
    let files = [
        ("demo/src/lib.rs", "mod a; mod b;"),
        ("demo/src/a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }"),
        ("demo/src/b.rs", "pub struct B(crate::a::A);"),
    ];
    assert_eq!(cycles_of(&files), Vec::<Vec<String>>::new());
}
