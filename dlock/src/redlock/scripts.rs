//! Redlock's scripts.

use std::sync::LazyLock;

use crate::redis::Script;

/// The first phase: see `vote.lua`.
pub(super) static VOTE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("vote.lua")));

/// The second phase: see `raise.lua`.
pub(super) static RAISE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("raise.lua")));

/// The name and the text of each.
pub(crate) const SCRIPTS: &[(&str, &str)] =
    &[("vote", include_str!("vote.lua")), ("raise", include_str!("raise.lua"))];
