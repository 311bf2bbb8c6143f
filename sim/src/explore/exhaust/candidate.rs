//! The faults that a search can place.

use std::sync::Arc;

use super::reach::Touched;
use crate::Sim;
use crate::faults::{Action, Form, Link};

/// A fault that can be placed.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// The number of its form in the search.
    pub(super) form: usize,
    /// Its target: a process or a link.
    pub(super) target: String,
    pub(super) what: Arc<dyn Action>,
    pub(super) touched: Touched,
}

impl Candidate {
    /// Returns the faults of these forms in the world; the subject may refuse some.
    pub(super) fn all(sim: &Sim, forms: &[Form], links: &[Link]) -> Vec<Self> {
        let of_form = |(form, faults): (usize, &Form)| {
            let faults = faults.faults(sim.scene(), links).into_iter();
            faults.map(move |(target, what)| {
                let touched = Touched::of(sim, what.reach());
                Self { form, target, what, touched }
            })
        };
        forms.iter().enumerate().flat_map(of_form).collect()
    }
}
