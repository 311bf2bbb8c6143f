//! A row in a table of faults.

use std::sync::Arc;

use super::action::Action;
use super::class::Class;
use super::draw::Variant;
use super::fields::{Fields, Misread};
use super::form::Form;
use crate::span::Span;

/// A kind of fault: for schedule files, for searches and for the comparison of systems.
pub struct FaultKind {
    /// The field that names it in schedule files.
    pub verb: &'static str,
    /// Its other fields.
    pub fields: &'static [&'static str],
    /// Reads an action and removes its fields. A field that is left does not belong to it, and is refused.
    pub read: fn(&mut Fields) -> Result<Arc<dyn Action>, Misread>,
    /// The variants in which it is drawn.
    pub variants: &'static [&'static Variant],
    /// The variants in which a search draws it beside those: see [`Faults::widely`](super::Faults::widely).
    pub wide: &'static [&'static Variant],
    /// The forms in which an exhaustive search places it, for leases of this length.
    pub forms: fn(Span) -> Vec<Form>,
    /// Its class in the comparison of systems; `None` if it is not compared.
    pub class: Option<&'static Class>,
}
