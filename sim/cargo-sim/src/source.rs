//! Sources of packages: how Cargo.lock writes them, and how a manifest and a `[patch]` do.

use percent_encoding::percent_decode_str;
use toml::{Table, Value};

/// The index of crates.io, as Cargo.lock writes it.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// A source of packages, other than a path.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    CratesIo,
    /// The index of another registry.
    Registry(String),
    /// A git repository, with `branch`, `tag` or `rev` and its value.
    Git {
        url: String,
        reference: Option<(String, String)>,
    },
}

impl Source {
    /// Parses a source as `cargo metadata` and Cargo.lock write it.
    pub(crate) fn of(source: &cargo_metadata::Source) -> Self {
        Self::parse(&source.repr)
    }

    fn parse(text: &str) -> Self {
        if text == CRATES_IO || text == "sparse+https://index.crates.io/" {
            return Self::CratesIo;
        }
        let Some(git) = text.strip_prefix("git+") else {
            return Self::Registry(text.strip_prefix("registry+").unwrap_or(text).to_owned());
        };
        let git = git.split_once('#').map_or(git, |(git, _)| git);
        let (url, query) = git.split_once('?').unwrap_or((git, ""));
        let reference = query.split('&').find_map(|pair| pair.split_once('='));
        let reference = reference.map(|(kind, name)| {
            (kind.to_owned(), percent_decode_str(&name.replace('+', " ")).decode_utf8_lossy().into_owned())
        });
        Self::Git { url: url.to_owned(), reference }
    }

    /// Returns the name of the table in `[patch]`.
    pub(crate) fn patch_key(&self) -> String {
        match self {
            Self::CratesIo => "crates-io".to_owned(),
            Self::Registry(url) | Self::Git { url, .. } => url.clone(),
        }
    }

    /// Adds the keys that name this source to a dependency.
    pub(crate) fn add_to(&self, dependency: &mut Table) {
        match self {
            Self::CratesIo => {}
            Self::Registry(url) => {
                dependency.insert("registry-index".to_owned(), url.clone().into());
            }
            Self::Git { url, reference } => {
                dependency.insert("git".to_owned(), url.clone().into());
                if let Some((kind, name)) = reference {
                    dependency.insert(kind.clone(), Value::String(name.clone()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_source_keeps_its_branch_without_its_revision() {
        let source = Source::parse("git+https://example.org/tokio?branch=fix%2Fone#0123abc");
        let reference = Some(("branch".to_owned(), "fix/one".to_owned()));
        assert_eq!(source, Source::Git { url: "https://example.org/tokio".to_owned(), reference });
        assert_eq!(source.patch_key(), "https://example.org/tokio");
        let mut dependency = Table::new();
        source.add_to(&mut dependency);
        assert_eq!(dependency["branch"].as_str(), Some("fix/one"));
    }

    #[test]
    fn registries_are_told_from_crates_io() {
        assert_eq!(Source::parse(CRATES_IO).patch_key(), "crates-io");
        let other = Source::parse("sparse+https://example.org/index/");
        assert_eq!(other.patch_key(), "sparse+https://example.org/index/");
    }
}
