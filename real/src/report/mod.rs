//! What experiments found, for people: on the terminal at 80 columns, and as the page `docs/experiments.md`.
//!
//! To read it: a [`Section`] is what an experiment says of its findings: [`Expectation`]s (sentences that hold or do not),
//! [`Table`]s and [`Figure`]s. A [`Chapter`] is that with the question, the command and the machine, and writes it as text.

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
