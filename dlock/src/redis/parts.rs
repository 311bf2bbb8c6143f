//! The script of one claim with its keys and arguments.

use super::script::{Arg, Call, Script, StoredKey};
use crate::backend::Claim;

/// A script with keys and arguments that borrow from the claim.
pub(super) struct Parts<'a> {
    pub(super) script: &'static Script,
    pub(super) keys: Vec<StoredKey<'a>>,
    pub(super) args: Vec<Arg<'a>>,
}

impl<'a> Parts<'a> {
    /// Makes a script whose first argument is the owner token of the claim.
    pub(super) fn of(script: &'static Script, claim: &'a Claim, keys: Vec<StoredKey<'a>>) -> Self {
        Self { script, keys, args: vec![Arg::Text(claim.owner.as_str())] }
    }

    /// Adds an argument.
    pub(super) fn with(mut self, arg: Arg<'a>) -> Self {
        self.args.push(arg);
        self
    }

    /// Adds an argument if `is_wanted`.
    pub(super) fn with_if(self, is_wanted: bool, arg: Arg<'a>) -> Self {
        if is_wanted { self.with(arg) } else { self }
    }

    pub(super) fn call(&self) -> Call<'_> {
        Call { script: self.script, keys: &self.keys, args: &self.args }
    }
}
