//! Collects the imports between files, with the imported names.

use std::collections::{BTreeMap, BTreeSet};

use syn::buffer::{Cursor, TokenBuffer};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, ItemUse, Macro, Meta, Path, Visibility};

use super::tree::{ModuleId, Tree, imports, is_for_tests};

/// For each pair of files, the names that the first imports from the second.
pub type Imports = BTreeMap<(String, String), BTreeSet<String>>;

/// Finds all imports between the files of `tree`. Two kinds of use are no import: re-exporting an item of an
/// inner module, and using an item of an outer module, since a folder's `mod.rs` may define items that its
/// files share.
pub fn between_files(tree: &Tree) -> Imports {
    let mut found = Imports::new();
    for (id, module) in tree.modules.iter().enumerate() {
        let mut reader = Reader { tree, module: id, found: &mut found };
        module.items.iter().for_each(|item| reader.visit_item(item));
    }
    found
}

struct Reader<'tree, 'found> {
    tree: &'tree Tree,
    module: ModuleId,
    found: &'found mut Imports,
}

impl Reader<'_, '_> {
    fn uses(&mut self, path: &[String]) {
        self.uses_unless(path, |_| false);
    }

    fn uses_unless(&mut self, path: &[String], left_out: impl Fn(ModuleId) -> bool) {
        let file = &self.tree.modules[self.module].file;
        for definition in self.tree.resolve(self.module, path) {
            let source = &self.tree.modules[definition.module].file;
            let is_around = self.tree.is_within(self.module, definition.module);
            if source != file && !is_around && !left_out(definition.module) {
                self.found.entry((file.clone(), source.clone())).or_default().insert(definition.name);
            }
        }
    }

    /// Reads the paths in unparsed tokens: the arguments of a macro or an attribute.
    fn tokens(&mut self, mut cursor: Cursor<'_>) {
        while !cursor.eof() {
            if let Some((inner, _, _, rest)) = cursor.any_group() {
                self.tokens(inner);
                cursor = rest;
            } else if let Some((path, rest)) = path_at(cursor) {
                self.uses(&path);
                cursor = rest;
            } else if let Some((literal, rest)) = cursor.literal() {
                self.path_in_text(&literal.to_string());
                cursor = rest;
            } else if let Some((_, rest)) = cursor.token_tree() {
                cursor = rest;
            }
        }
    }

    /// Reads a path in a string literal: serde's attributes name functions in strings.
    fn path_in_text(&mut self, literal: &str) {
        let Ok(path) = syn::parse_str::<Path>(literal.trim_matches('"')) else { return };
        if path.segments.len() > 1 {
            self.uses(&names(&path));
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_, '_> {
    fn visit_item_use(&mut self, declaration: &'ast ItemUse) {
        let exported = !matches!(declaration.vis, Visibility::Inherited);
        let (tree, module) = (self.tree, self.module);
        // The import of a module is not counted; the use of an item through it is.
        let is_module = |path: &[String]| tree.module_at(module, path).is_some();
        for import in imports(&declaration.tree).iter().filter(|import| !is_module(&import.path)) {
            self.uses_unless(&import.path, |source| exported && tree.is_within(source, module));
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() {
            self.uses(&names(path));
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        visit::visit_macro(self, called);
        self.tokens(TokenBuffer::new2(called.tokens.clone()).begin());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.tokens(TokenBuffer::new2(list.tokens.clone()).begin());
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }
}

fn names(path: &Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Returns the path `a::b::c` at the cursor, and the cursor behind it.
fn path_at(cursor: Cursor<'_>) -> Option<(Vec<String>, Cursor<'_>)> {
    let (first, mut cursor) = cursor.ident()?;
    let mut path = vec![first.to_string()];
    while let Some((ident, rest)) = separator(cursor).and_then(Cursor::ident) {
        path.push(ident.to_string());
        cursor = rest;
    }
    Some((path, cursor))
}

fn separator(cursor: Cursor<'_>) -> Option<Cursor<'_>> {
    let (first, cursor) = cursor.punct()?;
    let (second, cursor) = cursor.punct()?;
    (first.as_char() == ':' && second.as_char() == ':').then_some(cursor)
}
