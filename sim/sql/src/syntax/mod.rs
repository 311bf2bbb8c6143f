//! Text as statements.

mod depth;
pub(crate) mod parse;
pub(crate) mod utility;
