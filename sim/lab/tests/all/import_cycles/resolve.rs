//! Finds the module that defines the item at a path, through `use` declarations and re-exports.

use std::collections::BTreeSet;

use super::tree::{Binding, ModuleId, Tree};

/// An item and the module that defines it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Definition {
    pub module: ModuleId,
    pub name: String,
}

type Definitions = BTreeSet<Definition>;

/// The paths that one resolution has followed, since names may be imported in a cycle.
type Seen = BTreeSet<(ModuleId, Vec<String>)>;

impl Tree {
    /// Returns the items of this tree that `path`, written in the module `from`, can name. One name may mean
    /// several items (a type, a function, a macro). A path that ends at a module names no item.
    pub fn resolve(&self, from: ModuleId, path: &[String]) -> Definitions {
        self.follow(from, path, &mut Seen::new())
    }

    /// Returns true if `module` is inside `ancestor`, or is `ancestor` itself.
    pub fn is_within(&self, module: ModuleId, ancestor: ModuleId) -> bool {
        let mut current = Some(module);
        while let Some(module) = current {
            if module == ancestor {
                return true;
            }
            current = self.modules[module].parent;
        }
        false
    }

    fn follow(&self, from: ModuleId, path: &[String], seen: &mut Seen) -> Definitions {
        if !seen.insert((from, path.to_vec())) {
            return Definitions::new();
        }
        match self.start(from, path) {
            Some((module, rest)) => self.member(module, rest, true, seen),
            None => self.member(from, path, false, seen),
        }
    }

    /// Returns the module that the first segments of `path` name in any scope, and the rest of the path.
    /// Returns `None` if the first segment is a name in scope.
    fn start<'path>(&self, from: ModuleId, path: &'path [String]) -> Option<(ModuleId, &'path [String])> {
        let (first, mut rest) = path.split_first()?;
        let mut module = match first.as_str() {
            "crate" => self.root(from),
            "self" => from,
            "super" => self.modules[from].parent?,
            name if self.modules[from].bindings.contains_key(name) => return None,
            name => *self.libraries.get(name)?,
        };
        while let Some((first, tail)) = rest.split_first()
            && first == "super"
        {
            module = self.modules[module].parent?;
            rest = tail;
        }
        Some((module, rest))
    }

    fn root(&self, module: ModuleId) -> ModuleId {
        self.modules[module].parent.map_or(module, |parent| self.root(parent))
    }

    /// Looks `path` up in `module`. The first name of a `qualified` path is in the module even if no item has
    /// it: then a macro defines it.
    fn member(&self, module: ModuleId, path: &[String], qualified: bool, seen: &mut Seen) -> Definitions {
        let Some((name, rest)) = path.split_first() else { return Definitions::new() };
        let here = || Definition { module, name: name.clone() };
        let Some(bindings) = self.modules[module].bindings.get(name) else {
            let found = self.through_globs(module, path, seen);
            return if found.is_empty() && qualified { Definitions::from([here()]) } else { found };
        };
        // Only a module contains items; a function of the same name does not.
        let is_module = |binding: &&Binding| matches!(binding, Binding::Module(_));
        let only_modules = !rest.is_empty() && bindings.iter().any(|binding| is_module(&binding));
        let mut found = Definitions::new();
        for binding in bindings.iter().filter(|binding| !only_modules || is_module(binding)) {
            match binding {
                Binding::Item => drop(found.insert(here())),
                Binding::Module(child) => found.extend(self.member(*child, rest, true, seen)),
                // `use name::…::name`: the first is the name of a crate, unless there is such a module.
                Binding::Import(target)
                    if target.len() > 1
                        && target[0] == *name
                        && !bindings.iter().any(|it| is_module(&it)) => {}
                Binding::Import(target) => {
                    let target = [target.as_slice(), rest].concat();
                    found.extend(self.follow(module, &target, seen));
                }
            }
        }
        found
    }

    fn through_globs(&self, module: ModuleId, path: &[String], seen: &mut Seen) -> Definitions {
        let targets = self.modules[module].globs.iter().filter_map(|glob| self.module_at(module, glob));
        let targets: Vec<ModuleId> = targets.filter(|target| *target != module).collect();
        let known = |target: &ModuleId| self.modules[*target].bindings.contains_key(&path[0]);
        targets.into_iter().filter(known).flat_map(|target| self.member(target, path, false, seen)).collect()
    }

    /// Returns the module that `path` names without any `use` declaration, if there is one.
    pub fn module_at(&self, from: ModuleId, path: &[String]) -> Option<ModuleId> {
        let (mut module, rest) = self.start(from, path).unwrap_or((from, path));
        for name in rest {
            let bindings = self.modules[module].bindings.get(name)?;
            module = bindings.iter().find_map(|binding| match binding {
                Binding::Module(child) => Some(*child),
                _ => None,
            })?;
        }
        Some(module)
    }
}
