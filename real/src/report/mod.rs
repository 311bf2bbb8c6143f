//! What experiments found, for people: on the terminal at 80 columns, and as the page `docs/experiments.md`.
//!
//! To read it: a [`Section`] is what an experiment says of its findings: [`Expectation`]s (sentences that hold or do not),
//! [`Table`]s and [`Figure`]s. `page` makes the Markdown page of all chapters.

mod figure;
mod page;
mod section;
mod table;

pub use figure::{Axis, Figure, Line, Scale};
pub use page::{Page, PageError};
pub use section::{Expectation, Section};
pub use table::Table;

/// The columns of a terminal.
const WIDTH: usize = 80;
