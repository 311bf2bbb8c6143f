//! The crate has few public items, and none from another crate.
//!
//! Counts the names that `src/lib.rs` and its public modules export: those of `pub use`, and items declared
//! `pub` at their top level, under all features. Modules, methods, fields, variants and items that the
//! documentation hides are not counted.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The largest number of public items.
const ITEMS_MAX: usize = 96;

/// Other crates whose items may be exported: the crate of the runtime, which is a part of this one.
const OTHER_CRATES: [&str; 1] = ["dlock_runtime"];

/// A public name, and the first segment of the path of its `pub use`; empty if it is declared in place.
type Export = (String, String);

fn source(module: &str) -> PathBuf {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let file = src.join(format!("{module}.rs"));
    if file.exists() { file } else { src.join(module).join("mod.rs") }
}

/// Returns the lines of a file, with each `pub use` of several lines joined into one.
fn statements(file: &Path) -> Vec<String> {
    let mut statements = vec![String::new()];
    for line in fs::read_to_string(file).unwrap().lines() {
        let is_continued =
            statements.last().unwrap().starts_with("pub use") && !statements.last().unwrap().ends_with(';');
        match is_continued {
            true => statements.last_mut().unwrap().push_str(line.trim()),
            false => statements.push(line.to_owned()),
        }
    }
    statements
}

fn exports(file: &Path) -> Vec<Export> {
    let mut found = Vec::new();
    let statements = statements(file);
    let hidden = statements.iter().map(|statement| statement == "#[doc(hidden)]");
    for (statement, is_hidden) in statements.iter().skip(1).zip(hidden) {
        if is_hidden {
            continue;
        }
        if let Some(path) = statement.strip_prefix("pub use ") {
            let path = path.trim_end_matches(';');
            let (from, names) = path.rsplit_once("::").unwrap_or(("", path));
            let (from, names) = path.split_once("::{").unwrap_or((from, names));
            let first = from.split("::").next().unwrap().to_owned();
            let names = names.trim_end_matches('}').split(',').map(str::trim).filter(|name| !name.is_empty());
            found.extend(names.map(|name| (name.to_owned(), first.clone())));
        }
        let declared = ["struct ", "enum ", "trait ", "fn ", "const fn ", "const ", "static ", "type "];
        for kind in declared {
            if let Some(rest) = statement.strip_prefix("pub ").and_then(|rest| rest.strip_prefix(kind)) {
                let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
                found.push((name.to_owned(), String::new()));
            }
        }
    }
    found
}

fn public_modules(file: &Path) -> Vec<String> {
    let module = |line: &String| Some(line.strip_prefix("pub mod ")?.trim_end_matches(';').to_owned());
    statements(file).iter().filter_map(module).collect()
}

fn surface() -> Vec<(String, Export)> {
    let root = source("lib");
    let modules = public_modules(&root);
    let files = modules.iter().map(|module| (module.clone(), source(module)));
    let files = [("crate".to_owned(), root.clone())].into_iter().chain(files);
    files
        .flat_map(|(module, file)| exports(&file).into_iter().map(move |export| (module.clone(), export)))
        .collect()
}

#[test]
fn the_crate_exports_few_items() {
    let names: BTreeSet<_> =
        surface().into_iter().map(|(module, (name, _))| format!("{module}::{name}")).collect();
    assert!(
        names.contains("crate::Lock") && names.contains("redis::Redis"),
        "the exports are read: {names:?}"
    );
    assert!(names.len() <= ITEMS_MAX, "{} public items: {names:#?}", names.len());
}

#[test]
fn no_public_module_contains_another() {
    for module in public_modules(&source("lib")) {
        assert_eq!(public_modules(&source(&module)), [""; 0], "in {module}");
    }
}

#[test]
fn no_export_is_from_another_crate() {
    for (module, (name, from)) in surface() {
        let is_own = from.is_empty() || from == "self" || from == "crate" || source(&from).exists();
        assert!(is_own || OTHER_CRATES.contains(&from.as_str()), "{module}::{name} is from {from}");
    }
}
