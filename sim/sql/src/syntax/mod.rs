//! Text as statements.

pub(crate) mod parse;
pub(crate) mod utility;
