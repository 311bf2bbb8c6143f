//! No file imports another that imports it in turn, straight or through others; nor does a folder.
//!
//! A file imports another if it uses an item that the other defines. Declaring a module and re-exporting its
//! items is no import, nor is what a file takes from the `mod.rs` of its own folder; modules that only tests
//! compile are left out.

mod cycles;
mod imports;
mod resolve;
mod tree;

use std::collections::BTreeSet;

use cycles::{circles, describe};
use imports::{Imports, between_files};
use tree::Tree;

/// The crates and the programs that they hold besides.
const LIBRARIES: [&str; 4] = ["dlock", "resource", "sim", "real"];
const PROGRAMS: [&str; 2] = ["sim/src/main.rs", "real/src/main.rs"];

/// Files in a circle that is still to be opened: imports of these are left out. To be empty.
const STANDING_FILES: &[&str] = &[];

/// The same of the files and folders directly below a crate's `src`. To be empty.
const STANDING_ROOMS: &[&str] = &[];

#[test]
fn no_file_is_in_an_import_circle() {
    assert_none(&between_files(&workspace()), STANDING_FILES);
}

#[test]
fn folders_import_in_one_direction() {
    assert_none(&between_rooms(&between_files(&workspace())), STANDING_ROOMS);
}

fn workspace() -> Tree {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let read = |file: &str| std::fs::read_to_string(format!("{root}/{file}")).ok();
    let mut tree = Tree::default();
    for library in LIBRARIES {
        tree.add_library(library, &format!("{library}/src/lib.rs"), &read);
    }
    for program in PROGRAMS {
        tree.add_root(program, &read);
    }
    tree
}

/// The imports between the files and folders directly below a crate's `src`.
fn between_rooms(imports: &Imports) -> Imports {
    let room = |file: &str| file.split('/').take(3).collect::<Vec<_>>().join("/");
    let mut rooms = Imports::new();
    for ((from, to), names) in imports {
        let (from, to) = (room(from), room(to));
        if from != to {
            rooms.entry((from, to)).or_default().extend(names.iter().cloned());
        }
    }
    rooms
}

fn assert_none(imports: &Imports, standing: &[&str]) {
    let all = circles(imports);
    let opened = standing.iter().filter(|name| !all.iter().any(|circle| circle.contains(**name)));
    let opened: Vec<_> = opened.collect();
    assert!(opened.is_empty(), "in no circle any more, strike them from the list: {opened:?}");

    let mut others = imports.clone();
    others.retain(|(_, to), _| !standing.contains(&to.as_str()));
    let found: Vec<String> = circles(&others).iter().map(|circle| describe(circle, &others)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Finds the circles in a crate `demo` of these files.
fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let read = |file: &str| files.iter().find(|(name, _)| *name == file).map(|(_, text)| (*text).to_owned());
    let mut tree = Tree::default();
    tree.add_library("demo", "demo/src/lib.rs", &read);
    let found = circles(&between_files(&tree));
    let name = |file: &String| file.trim_start_matches("demo/src/").to_owned();
    found.iter().map(|circle: &BTreeSet<String>| circle.iter().map(name).collect()).collect()
}

#[test]
fn two_files_that_use_each_other_are_a_circle() {
    let files = [
        ("demo/src/lib.rs", "mod a; mod b;"),
        ("demo/src/a.rs", "use crate::b::work; pub struct A; fn run() { work(); }"),
        ("demo/src/b.rs", "pub fn work() { let _ = super::a::A; }"),
    ];
    assert_eq!(circles_of(&files), [["a.rs", "b.rs"]]);
}

#[test]
fn a_face_that_only_re_exports_is_no_part_of_a_circle() {
    let files = [
        ("demo/src/lib.rs", "mod folder; pub use folder::{A, b::B};"),
        ("demo/src/folder/mod.rs", "mod a; pub mod b; pub use a::A;"),
        ("demo/src/folder/a.rs", "use super::b::B; pub struct A(B);"),
        ("demo/src/folder/b.rs", "pub struct B;"),
    ];
    assert_eq!(circles_of(&files), Vec::<Vec<String>>::new());
}

#[test]
fn a_circle_through_a_re_export_is_found() {
    let files = [
        ("demo/src/lib.rs", "mod folder; mod c;"),
        ("demo/src/folder/mod.rs", "mod a; pub use self::a::A as Renamed;"),
        ("demo/src/folder/a.rs", "pub struct A(crate::c::C);"),
        ("demo/src/c.rs", "use crate::folder::*; pub struct C; fn make() -> Renamed { todo!() }"),
    ];
    assert_eq!(circles_of(&files), [["c.rs", "folder/a.rs"]]);
}

#[test]
fn a_folder_may_define_what_its_files_share() {
    let files = [
        ("demo/src/lib.rs", "mod folder;"),
        ("demo/src/folder/mod.rs", "mod a; pub struct Shared; fn run() { a::run() }"),
        ("demo/src/folder/a.rs", "pub fn run() { drop(super::Shared) }"),
    ];
    assert_eq!(circles_of(&files), Vec::<Vec<String>>::new());
}

#[test]
fn a_folder_that_defines_items_can_be_in_a_circle() {
    let files = [
        ("demo/src/lib.rs", "mod folder; mod b;"),
        ("demo/src/folder/mod.rs", "mod a; pub struct Shared; fn run() { a::run() }"),
        ("demo/src/folder/a.rs", "pub fn run() { drop(crate::b::B) }"),
        ("demo/src/b.rs", "pub struct B(crate::folder::Shared);"),
    ];
    assert_eq!(circles_of(&files), [["b.rs", "folder/a.rs", "folder/mod.rs"]]);
}

#[test]
fn a_function_named_like_a_module_holds_no_names() {
    let files = [
        ("demo/src/lib.rs", "mod check; mod run; mod work; pub use run::check;"),
        ("demo/src/check.rs", "pub struct Check;"),
        ("demo/src/run.rs", "use crate::work::Work; pub fn check(_: Work) {}"),
        ("demo/src/work.rs", "pub struct Work(crate::check::Check);"),
    ];
    assert_eq!(circles_of(&files), Vec::<Vec<String>>::new());
}

#[test]
fn names_in_macros_and_in_attributes_count() {
    let files = [
        ("demo/src/lib.rs", "mod a; mod b;"),
        ("demo/src/a.rs", "pub const A: u8 = 0; fn run() { println!(\"{}\", [crate::b::is_zero(&A)]) }"),
        ("demo/src/b.rs", "#[serde(default = \"crate::a::A\")] pub struct B; pub fn is_zero(_: &u8) {}"),
    ];
    assert_eq!(circles_of(&files), [["a.rs", "b.rs"]]);
}

#[test]
fn an_item_that_a_macro_defines_counts() {
    let files = [
        ("demo/src/lib.rs", "mod a; mod b;"),
        ("demo/src/a.rs", "define! { Made } fn run() { crate::b::run() }"),
        ("demo/src/b.rs", "use crate::a::Made; pub fn run() { drop(Made) }"),
    ];
    assert_eq!(circles_of(&files), [["a.rs", "b.rs"]]);
}

#[test]
fn modules_for_tests_are_left_out() {
    let files = [
        ("demo/src/lib.rs", "mod a; mod b;"),
        ("demo/src/a.rs", "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }"),
        ("demo/src/b.rs", "pub struct B(crate::a::A);"),
    ];
    assert_eq!(circles_of(&files), Vec::<Vec<String>>::new());
}
