//! A row in a table of faults.

use std::sync::Arc;

use super::action::Action;
use super::draw::Variant;
use super::fields::{Fields, Misread};

/// A kind of fault, for schedule files and for drawing.
pub struct FaultKind {
    /// The field that names it in schedule files.
    pub verb: &'static str,
    /// Its other fields.
    pub fields: &'static [&'static str],
    /// Reads an action and removes its fields. A field that is left does not belong to it, and is refused.
    pub read: fn(&mut Fields) -> Result<Arc<dyn Action>, Misread>,
    /// The variants in which it is drawn.
    pub variants: &'static [&'static Variant],
}
