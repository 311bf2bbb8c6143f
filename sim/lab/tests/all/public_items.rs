//! The public items of the libraries: `sim` shows few, and the comment of each function begins with a verb.
//!
//! The sources are read as rustdoc reads them, under all features. Items that a macro defines are found only
//! where a `pub use` names them.

use std::collections::BTreeSet;

use syn::{Attribute, Expr, ImplItem, Item, Lit, Meta, TraitItem, Visibility};

use crate::import_cycles::tree::{Binding, ModuleId, Tree, defined_name, imports, is_for_tests, is_shown};
use crate::import_cycles::workspace;

/// The largest number of items that the documentation of `sim` shows, items of other crates included.
/// Ten of them are the marks of `sim_host`.
const ITEMS_MAX: usize = 138;

/// The libraries whose comments are checked.
const LIBRARIES: [&str; 5] = ["dlock", "fence", "history", "resource", "sim"];

/// Words that end as a verb does, and are none.
const NO_VERBS: [&str; 5] = ["Always", "As", "Its", "This", "Thus"];

#[test]
fn the_simulator_shows_few_items() {
    let shown = shown_items(&workspace(), "sim");
    let items: Vec<&str> = shown.iter().map(String::as_str).collect();
    let advice = "hide those that only the program uses by #[doc(hidden)]";
    assert!(
        items.len() <= ITEMS_MAX,
        "{} of {ITEMS_MAX} items: {advice}:\n{}",
        items.len(),
        items.join("\n")
    );
}

#[test]
fn comments_of_public_functions_begin_with_a_verb() {
    let tree = workspace();
    let mut wrong = Vec::new();
    for (id, module) in tree.modules.iter().enumerate() {
        if LIBRARIES.iter().any(|library| tree.is_within(id, tree.libraries[*library])) {
            for (name, attributes) in module.items.iter().flat_map(public_functions) {
                let comment = comment(attributes);
                if !begins_with_a_verb(&comment) {
                    wrong.push(format!("{}: {name}: {comment}", module.file));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "begin these comments with a verb, such as \"Returns\":\n{}", wrong.join("\n"));
}

#[test]
fn only_a_verb_in_the_third_person_is_a_verb() {
    let words = ["Returns the time.", "Waits, and then sends.", "As [`run`].", "The time.", "(x)", ""];
    assert_eq!(words.map(begins_with_a_verb), [true, true, false, false, false, false]);
}

/// Returns the items that the documentation of a library shows, each with the file that defines it. An item
/// of a crate outside this workspace has its path instead.
fn shown_items(tree: &Tree, library: &str) -> BTreeSet<String> {
    let (mut items, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut modules = vec![tree.libraries[library]];
    while let Some(id) = modules.pop() {
        if !seen.insert(id) {
            continue;
        }
        let module = &tree.modules[id];
        for item in module.items.iter().filter(|item| is_shown_item(item)) {
            match item {
                Item::Use(declaration) => {
                    for import in imports(&declaration.tree) {
                        assert!(!import.glob, "{}: name the items of this `pub use`", module.file);
                        let module = tree.module_at(id, &import.path);
                        match module.filter(|module| tree.modules[*module].is_shown) {
                            Some(module) => modules.push(module),
                            None => items.extend(exported(tree, id, &import.path)),
                        }
                    }
                }
                item => items.extend(defined_name(item).map(|name| format!("{}: {name}", module.file))),
            }
        }
        modules.extend(module.bindings.values().flatten().filter_map(|binding| match binding {
            Binding::Module(child) if tree.modules[*child].is_shown => Some(*child),
            _ => None,
        }));
    }
    items
}

fn exported(tree: &Tree, module: ModuleId, path: &[String]) -> Vec<String> {
    let defined = tree.resolve(module, path);
    if defined.is_empty() {
        return vec![path.join("::")];
    }
    defined.iter().map(|item| format!("{}: {}", tree.modules[item.module].file, item.name)).collect()
}

fn is_shown_item(item: &Item) -> bool {
    match item {
        Item::Const(item) => is_shown(&item.vis, &item.attrs),
        Item::Enum(item) => is_shown(&item.vis, &item.attrs),
        Item::Fn(item) => is_shown(&item.vis, &item.attrs),
        Item::Static(item) => is_shown(&item.vis, &item.attrs),
        Item::Struct(item) => is_shown(&item.vis, &item.attrs),
        Item::Trait(item) => is_shown(&item.vis, &item.attrs),
        Item::Type(item) => is_shown(&item.vis, &item.attrs),
        Item::Union(item) => is_shown(&item.vis, &item.attrs),
        Item::Use(item) => is_shown(&item.vis, &item.attrs),
        Item::Macro(item) => {
            let is_exported = item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"));
            is_exported && is_shown(&Visibility::Public(syn::token::Pub::default()), &item.attrs)
        }
        _ => false,
    }
}

/// Returns the public functions and methods of an item, each with its attributes.
fn public_functions(item: &Item) -> Vec<(String, &[Attribute])> {
    match item {
        Item::Fn(item) if is_public(&item.vis) => vec![(item.sig.ident.to_string(), &item.attrs)],
        Item::Trait(item) if is_public(&item.vis) => {
            let functions = item.items.iter().filter_map(|item| match item {
                TraitItem::Fn(function) => Some((function.sig.ident.to_string(), &function.attrs[..])),
                _ => None,
            });
            functions.collect()
        }
        Item::Impl(item) if item.trait_.is_none() => {
            let functions = item.items.iter().filter_map(|item| match item {
                ImplItem::Fn(function) if is_public(&function.vis) && !is_for_tests(&function.attrs) => {
                    Some((function.sig.ident.to_string(), &function.attrs[..]))
                }
                _ => None,
            });
            functions.collect()
        }
        _ => Vec::new(),
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns the first line of the comment; empty if there is none.
fn comment(attributes: &[Attribute]) -> String {
    let line = attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    line.unwrap_or_default()
}

fn begins_with_a_verb(comment: &str) -> bool {
    let word = comment.split(|c: char| c.is_whitespace() || c == ',').next().unwrap_or_default();
    word.starts_with(char::is_uppercase) && word.ends_with('s') && !NO_VERBS.contains(&word)
}
