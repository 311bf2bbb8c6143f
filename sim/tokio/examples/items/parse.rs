//! Reads the sources of a crate: its modules with their items, imports and methods.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Item, UseTree, Visibility};

use crate::left_out::{is_elsewhere, is_hidden, is_left_out_macro};
use crate::methods::{Method, collect, refuses};

/// The name of a module: its path from the root, such as `net::tcp`.
pub(crate) type Name = String;

/// A crate.
#[derive(Default)]
pub(crate) struct Source {
    pub(crate) modules: BTreeMap<Name, Module>,
    /// The bodies of macros that stand for items, by their names, with the names of their arguments.
    macros: BTreeMap<String, (Vec<String>, String)>,
}

/// A module.
#[derive(Default)]
pub(crate) struct Module {
    /// The modules in it, and whether each is public.
    pub(crate) modules: BTreeMap<String, bool>,
    /// Its own items, and whether each is public.
    pub(crate) items: BTreeMap<String, (Kind, bool)>,
    /// The imported names, each with its path, and whether it is public.
    pub(crate) uses: BTreeMap<String, (Vec<String>, bool)>,
    /// The modules of which it imports all names, and whether they are public.
    pub(crate) globs: Vec<(Vec<String>, bool)>,
    /// The methods, each with the path of its type.
    pub(crate) methods: Vec<(Vec<String>, Method)>,
}

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Type,
    Trait,
    Function { is_refused: bool },
    Macro,
    Other,
}

/// Items from the body of a macro.
struct Items(Vec<Item>);

impl Parse for Items {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        input.call(Attribute::parse_inner)?;
        let mut items = Vec::new();
        while !input.is_empty() {
            items.push(input.parse()?);
        }
        Ok(Self(items))
    }
}

impl Source {
    /// Reads the crate whose root is `src/lib.rs` in `folder`.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut source = Self::default();
        source.file(&folder.join("src/lib.rs"), &folder.join("src"), "");
        source
    }

    /// Reads a file; the files of the modules in it are in `folder`.
    fn file(&mut self, path: &Path, folder: &Path, module: &str) {
        let text = std::fs::read_to_string(path).expect("a source file");
        let file = syn::parse_file(&text).expect("Rust");
        if file.attrs.iter().any(is_elsewhere) {
            return;
        }
        self.items(file.items, folder, module);
    }

    fn module(&mut self, module: &str) -> &mut Module {
        self.modules.entry(module.to_owned()).or_default()
    }

    fn items(&mut self, items: Vec<Item>, folder: &Path, module: &str) {
        self.module(module);
        for item in items {
            self.item(item, folder, module);
        }
    }

    fn item(&mut self, item: Item, folder: &Path, module: &str) {
        let (attributes, visibility) = head(&item);
        if attributes.iter().any(is_elsewhere) {
            return;
        }
        // A hidden module may have items that another one exports.
        let is_hidden = attributes.iter().any(is_hidden);
        let is_public = matches!(visibility, Some(Visibility::Public(_))) && !is_hidden;
        let (name, kind) = match item {
            Item::Mod(inner) => {
                let name = inner.ident.to_string();
                *self.module(module).modules.entry(name.clone()).or_default() |= is_public;
                return self.inner(&name, inner.content.map(|(_, items)| items), folder, module);
            }
            Item::Use(item) => return self.imports(&item.tree, Vec::new(), is_public, module),
            Item::Impl(item) => return self.methods(item, module),
            Item::Macro(_) if is_hidden => return,
            Item::Macro(item) => return self.called(item, folder, module),
            Item::Struct(item) => (item.ident.to_string(), Kind::Type),
            Item::Enum(item) => (item.ident.to_string(), Kind::Type),
            Item::Type(item) => (item.ident.to_string(), Kind::Type),
            Item::Trait(item) => (item.ident.to_string(), Kind::Trait),
            Item::Fn(item) => {
                let is_refused = refuses(&item.block);
                (item.sig.ident.to_string(), Kind::Function { is_refused })
            }
            Item::Const(item) => (item.ident.to_string(), Kind::Other),
            _ => return,
        };
        let known = self.module(module).items.entry(name).or_insert((kind, is_public));
        known.1 |= is_public;
    }

    fn inner(&mut self, name: &str, content: Option<Vec<Item>>, folder: &Path, module: &str) {
        let path = if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") };
        let inner = folder.join(name);
        if let Some(items) = content {
            return self.items(items, &inner, &path);
        }
        let files: [PathBuf; 2] = [folder.join(format!("{name}.rs")), inner.join("mod.rs")];
        if let Some(file) = files.iter().find(|file| file.exists()) {
            self.file(file, &inner, &path);
        }
    }

    fn imports(&mut self, tree: &UseTree, mut path: Vec<String>, is_public: bool, module: &str) {
        let mut add = |name: String, path: Vec<String>| {
            let known = self.module(module).uses.entry(name).or_insert((path, is_public));
            known.1 |= is_public;
        };
        match tree {
            UseTree::Path(step) => {
                path.push(step.ident.to_string());
                self.imports(&step.tree, path, is_public, module);
            }
            UseTree::Name(name) if name.ident == "self" => {
                if let Some(last) = path.last().cloned() {
                    add(last, path);
                }
            }
            UseTree::Name(name) => {
                path.push(name.ident.to_string());
                add(name.ident.to_string(), path);
            }
            UseTree::Rename(name) => {
                path.push(name.ident.to_string());
                add(name.rename.to_string(), path);
            }
            UseTree::Glob(_) => self.module(module).globs.push((path, is_public)),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.imports(tree, path.clone(), is_public, module);
                }
            }
        }
    }

    fn methods(&mut self, item: syn::ItemImpl, module: &str) {
        let syn::Type::Path(path) = &*item.self_ty else { return };
        if item.trait_.is_some() {
            return;
        }
        let of: Vec<String> = path.path.segments.iter().map(|step| step.ident.to_string()).collect();
        let mut found = Vec::new();
        collect(item.items, &mut found);
        self.module(module).methods.extend(found.into_iter().map(|method| (of.clone(), method)));
    }

    /// Reads the items in the body of a macro such as `cfg_net! { … }`, or those for which one of the crate's
    /// own macros stands.
    fn called(&mut self, item: syn::ItemMacro, folder: &Path, module: &str) {
        let called = item.mac.path.segments.last().map(|step| step.ident.to_string()).unwrap_or_default();
        if called == "macro_rules" {
            return self.defines(item, module);
        }
        let tokens = item.mac.tokens.to_string();
        self.exported(&tokens);
        let body = match self.macros.get(&called) {
            Some((names, body)) => filled(body, &arguments(names, &tokens)),
            None if is_left_out_macro(&called) => return,
            None => tokens,
        };
        if let Ok(Items(items)) = syn::parse_str(&body) {
            self.items(items, folder, module);
        }
    }

    /// Notes the macros in the body of a macro that are exported.
    fn exported(&mut self, text: &str) {
        for part in text.split("macro_export").skip(1).filter_map(|part| part.split("macro_rules").nth(1)) {
            let name = part.trim_start_matches([' ', '!']).split([' ', '{', '(']).next().unwrap_or_default();
            self.module("").items.insert(name.to_owned(), (Kind::Macro, true));
        }
    }

    /// Keeps a macro with one rule, without repetitions, for its calls.
    fn defines(&mut self, item: syn::ItemMacro, module: &str) {
        let Some(name) = item.ident.map(|name| name.to_string()) else { return };
        if item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
            self.module("").items.insert(name.clone(), (Kind::Macro, true));
        }
        let text = item.mac.tokens.to_string();
        let Some((pattern, body)) = text.split_once("=>") else { return };
        let is_plain = !pattern.replace(' ', "").contains("$(");
        if is_plain && !name.starts_with("cfg_") && name != "feature" {
            let names = pattern.split('$').skip(1).filter_map(|part| part.split(':').next());
            let names = names.map(|name| name.trim().to_owned()).collect();
            let body = body.trim().trim_end_matches(';').trim();
            let Some(body) = body.strip_prefix('{').and_then(|body| body.strip_suffix('}')) else { return };
            self.macros.insert(name.clone(), (names, body.to_owned()));
            self.module(module).items.insert(name, (Kind::Macro, false));
        }
    }
}

/// Returns the arguments of a macro by their names. They are separated by commas.
fn arguments(names: &[String], text: &str) -> BTreeMap<String, String> {
    if let [name] = names {
        return BTreeMap::from([(name.clone(), text.to_owned())]);
    }
    names.iter().cloned().zip(text.split(',').map(|value| value.trim().to_owned())).collect()
}

/// Returns the body of a macro with the arguments in their places.
fn filled(body: &str, arguments: &BTreeMap<String, String>) -> String {
    let mut parts = body.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let part = part.trim_start();
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        out.push_str(arguments.get(name).map_or(name, String::as_str));
        out.push_str(rest);
    }
    out
}

/// Returns the attributes of an item, and its visibility if it has one.
fn head(item: &Item) -> (&[Attribute], Option<&Visibility>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.vis)),
        Item::Enum(item) => (&item.attrs, Some(&item.vis)),
        Item::Fn(item) => (&item.attrs, Some(&item.vis)),
        Item::Mod(item) => (&item.attrs, Some(&item.vis)),
        Item::Struct(item) => (&item.attrs, Some(&item.vis)),
        Item::Trait(item) => (&item.attrs, Some(&item.vis)),
        Item::Type(item) => (&item.attrs, Some(&item.vis)),
        Item::Use(item) => (&item.attrs, Some(&item.vis)),
        Item::Impl(item) => (&item.attrs, None),
        Item::Macro(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}
