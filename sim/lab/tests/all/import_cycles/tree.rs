//! The modules of crates, read from their sources: the items of each and the names that it imports.

use std::collections::BTreeMap;

use syn::{Attribute, Item, Meta, UseTree, Visibility};

/// Index of a module in its tree.
pub type ModuleId = usize;

/// The meaning of a name in a module.
pub enum Binding {
    /// An item that the module defines.
    Item,
    /// A module inside the module.
    Module(ModuleId),
    /// The path of a `use` declaration.
    Import(Vec<String>),
}

/// A module: a file, or an inline module of one.
pub struct Module {
    pub file: String,
    pub parent: Option<ModuleId>,
    /// True if the documentation shows it: it is public and not hidden.
    pub is_shown: bool,
    pub bindings: BTreeMap<String, Vec<Binding>>,
    /// Paths of the module's glob imports.
    pub globs: Vec<Vec<String>>,
    /// The items, without modules and without items that only tests compile.
    pub items: Vec<Item>,
}

/// The modules of all added crates.
#[derive(Default)]
pub struct Tree {
    pub modules: Vec<Module>,
    /// The root module of each library, by the library's name.
    pub libraries: BTreeMap<String, ModuleId>,
}

/// One name of a `use` declaration.
pub struct Import {
    /// The name in scope; none for `_` and for a glob.
    pub name: Option<String>,
    pub path: Vec<String>,
    pub glob: bool,
}

impl Tree {
    /// Adds the library or program whose root is `file`, with all modules below it. `read` returns a file's
    /// text, or `None` if there is no such file.
    ///
    /// # Panics
    ///
    /// If the root or a declared module is missing, or is not Rust.
    pub fn add_root(&mut self, file: &str, read: &dyn Fn(&str) -> Option<String>) -> ModuleId {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        self.add_file(file, folder, None, read)
    }

    /// Adds a library; paths in other crates may then begin with its name.
    pub fn add_library(&mut self, name: &str, file: &str, read: &dyn Fn(&str) -> Option<String>) {
        let root = self.add_root(file, read);
        self.libraries.insert(name.to_owned(), root);
    }

    /// Adds a file with its modules, whose files are in `folder`; returns its module.
    fn add_file(
        &mut self,
        file: &str,
        folder: &str,
        parent: Option<ModuleId>,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> ModuleId {
        let text = read(file).unwrap_or_else(|| panic!("{file}: no such file"));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.add_module(file, folder, parent, parsed.items, read)
    }

    fn add_module(
        &mut self,
        file: &str,
        folder: &str,
        parent: Option<ModuleId>,
        items: Vec<Item>,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> ModuleId {
        let id = self.modules.len();
        let file = file.to_owned();
        let (bindings, globs) = (BTreeMap::new(), Vec::new());
        self.modules.push(Module {
            file: file.clone(),
            parent,
            is_shown: true,
            bindings,
            globs,
            items: Vec::new(),
        });
        for item in items {
            if is_for_tests(attributes(&item)) {
                continue;
            }
            if let Item::Mod(module) = item {
                let name = module.ident.to_string();
                let inner = format!("{folder}/{name}");
                let shown = is_shown(&module.vis, &module.attrs);
                let child = match module.content {
                    Some((_, items)) => self.add_module(&file, &inner, Some(id), items, read),
                    None => {
                        let nested = format!("{inner}/mod.rs");
                        let beside = format!("{inner}.rs");
                        let child = if read(&beside).is_some() { beside } else { nested };
                        self.add_file(&child, &inner, Some(id), read)
                    }
                };
                self.modules[child].is_shown = shown;
                self.bind(id, name, Binding::Module(child));
            } else {
                self.declare(id, &item);
                self.modules[id].items.push(item);
            }
        }
        id
    }

    fn declare(&mut self, id: ModuleId, item: &Item) {
        if let Item::Use(declaration) = item {
            for import in imports(&declaration.tree) {
                match import.name {
                    _ if import.glob => self.modules[id].globs.push(import.path),
                    Some(name) => self.bind(id, name, Binding::Import(import.path)),
                    None => {}
                }
            }
        } else if let Some(name) = defined_name(item) {
            self.bind(id, name, Binding::Item);
        }
    }

    fn bind(&mut self, id: ModuleId, name: String, binding: Binding) {
        self.modules[id].bindings.entry(name).or_default().push(binding);
    }
}

/// Returns the names that a `use` declaration brings into scope.
pub fn imports(tree: &UseTree) -> Vec<Import> {
    let mut found = Vec::new();
    collect(tree, &mut Vec::new(), &mut found);
    found
}

fn collect(tree: &UseTree, prefix: &mut Vec<String>, found: &mut Vec<Import>) {
    let mut add = |name: String, alias: Option<String>| {
        let mut path = prefix.clone();
        if name != "self" {
            path.push(name);
        }
        let name = alias.or_else(|| path.last().cloned()).filter(|name| name != "_");
        found.push(Import { name, path, glob: false });
    };
    match tree {
        UseTree::Name(name) => add(name.ident.to_string(), None),
        UseTree::Rename(rename) => add(rename.ident.to_string(), Some(rename.rename.to_string())),
        UseTree::Glob(_) => found.push(Import { name: None, path: prefix.clone(), glob: true }),
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            collect(&path.tree, prefix, found);
            prefix.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|item| collect(item, prefix, found)),
    }
}

pub fn defined_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns true if the documentation shows an item with this visibility and these attributes.
pub fn is_shown(visibility: &Visibility, attributes: &[Attribute]) -> bool {
    let is_hidden = attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("doc") => list.tokens.to_string() == "hidden",
        _ => false,
    });
    matches!(visibility, Visibility::Public(_)) && !is_hidden
}

/// Returns true if `#[cfg(test)]` is among the attributes.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string() == "test",
        _ => false,
    })
}
