//! The correct parts, on which the museum's mistakes are made.

pub(super) use crate::Correct;

/// No mistake: the correct lock, worker or resource of the museum.
pub(super) struct Faultless;
