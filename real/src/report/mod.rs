//! The findings of experiments as text: for a terminal of 80 columns, and as the page `docs/experiments.md`.
//!
//! A [`Section`] holds the findings of an experiment: [`Expectation`]s (sentences that hold or not),
//! [`Table`]s and [`Figure`]s. A [`Chapter`] adds the question, the command and the machine, and renders
//! text.

mod chapter;
mod figure;
mod section;
mod table;

pub use chapter::Chapter;
pub use figure::{Axis, Figure, Line, Scale};
pub use section::{Expectation, Section};
pub use table::Table;

/// The columns of a terminal.
const WIDTH: usize = 80;
