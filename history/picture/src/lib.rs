//! Histories for people to read, from the simulator and from live runs.
//!
//! [`Run`] is the source of a picture: a history, and what else is known of it. [`Picture`] is the picture as
//! data (`model/`). [`page`] and [`svg`] draw it (`layout`, `draw/`), [`terminal`] prints it. [`site`] is a
//! page around such pages.

mod draw;
mod layout;
mod model;
mod page;
mod run;
mod site;
mod table;
mod terminal;
mod width;

pub use draw::{svg, thumbnail};
pub use model::{Arrow, Change, EVENTS_MAX, Edge, Lane, Mark, Picture, Shape, Span, SpanKind, Violation};
pub use page::{page, page_of_site};
pub use run::{Finding, Role, Run, Schedule};
pub use site::{Link, site};
pub use terminal::terminal;
