//! Follows imports to the items that they mean.

use crate::methods::Method;
use crate::parse::{Kind, Name, Source};

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// An item of the crate: its module, its name and its kind.
    Own(Name, String, Kind),
    /// A module of the crate.
    Module(Name),
    /// An item of another crate.
    Other(Vec<String>),
}

/// The longest chain of imports.
const DEPTH_MAX: usize = 16;

impl Source {
    /// Returns the public names of a module with their meanings.
    pub(crate) fn exports(&self, module: &str) -> Vec<(String, Meaning)> {
        let Some(found) = self.modules.get(module) else { return Vec::new() };
        let items = found.items.iter().filter(|(_, (_, is_public))| *is_public).map(|(name, _)| name);
        let uses = found.uses.iter().filter(|(_, (_, is_public))| *is_public).map(|(name, _)| name);
        let modules = found.modules.iter().filter(|(_, is_public)| **is_public).map(|(name, _)| name);
        let mut exports: Vec<(String, Meaning)> = items
            .chain(uses)
            .filter_map(|name| Some((name.clone(), self.meaning(module, name, DEPTH_MAX)?)))
            .chain(modules.map(|name| (name.clone(), Meaning::Module(join(module, name)))))
            .collect();
        for (path, _) in found.globs.iter().filter(|(_, is_public)| *is_public) {
            match self.resolve(module, path, DEPTH_MAX) {
                Some(Meaning::Module(of)) => exports.extend(self.exports(&of)),
                Some(other) => exports.push(("*".to_owned(), other)),
                None => {}
            }
        }
        let is_module = |meaning: &Meaning| matches!(meaning, Meaning::Module(_));
        exports.sort_by(|a, b| (&a.0, is_module(&a.1)).cmp(&(&b.0, is_module(&b.1))));
        exports.dedup_by(|a, b| a.0 == b.0 && is_module(&a.1) == is_module(&b.1));
        exports
    }

    /// Returns the public methods of a type, in the order of their names.
    pub(crate) fn methods_of(&self, meaning: &Meaning) -> Vec<Method> {
        let mut methods: Vec<Method> = Vec::new();
        for (module, found) in &self.modules {
            for (of, method) in &found.methods {
                if self.resolve(module, of, DEPTH_MAX).as_ref() == Some(meaning) {
                    methods.push(method.clone());
                }
            }
        }
        methods.sort_by(|a, b| a.name.cmp(&b.name));
        methods.dedup_by(|a, b| a.name == b.name);
        methods
    }

    /// Returns the meaning of a name. A module of this name comes last: a function may have the same.
    fn meaning(&self, module: &str, name: &str, depth: usize) -> Option<Meaning> {
        let found = self.modules.get(module)?;
        if let Some((kind, _)) = found.items.get(name) {
            return Some(Meaning::Own(module.to_owned(), name.to_owned(), *kind));
        }
        if let Some((path, _)) = found.uses.get(name) {
            return self.resolve(module, path, depth.checked_sub(1)?);
        }
        if found.modules.contains_key(name) {
            return Some(Meaning::Module(join(module, name)));
        }
        let depth = depth.checked_sub(1)?;
        found.globs.iter().find_map(|(path, _)| match self.resolve(module, path, depth)? {
            Meaning::Module(of) => self.meaning(&of, name, depth),
            Meaning::Own(..) | Meaning::Other(_) => None,
        })
    }

    /// Returns the meaning of a name in a path: before the last one, a module.
    fn step(&self, module: &str, name: &str, is_last: bool, depth: usize) -> Option<Meaning> {
        if !is_last && self.modules.get(module)?.modules.contains_key(name) {
            return Some(Meaning::Module(join(module, name)));
        }
        self.meaning(module, name, depth)
    }

    /// Returns the meaning of a path in a module.
    fn resolve(&self, module: &str, path: &[String], depth: usize) -> Option<Meaning> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Meaning::Module(String::new()),
            "self" => Meaning::Module(module.to_owned()),
            "super" => Meaning::Module(parent(module)),
            name => match self.step(module, name, rest.is_empty(), depth.checked_sub(1)?) {
                Some(meaning) => meaning,
                None => return Some(Meaning::Other(path.to_vec())),
            },
        };
        while let Some((name, left)) = rest.split_first() {
            at = match at {
                Meaning::Module(of) if name == "super" => Meaning::Module(parent(&of)),
                Meaning::Module(of) => self.step(&of, name, left.is_empty(), depth.checked_sub(1)?)?,
                // A variant or an associated item.
                Meaning::Own(..) => return None,
                Meaning::Other(mut path) => {
                    path.push(name.clone());
                    Meaning::Other(path)
                }
            };
            rest = left;
        }
        Some(at)
    }
}

/// Returns the name of a module in another.
pub(crate) fn join(module: &str, name: &str) -> Name {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

fn parent(module: &str) -> Name {
    module.rsplit_once("::").map_or("", |(parent, _)| parent).to_owned()
}
