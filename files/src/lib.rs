//! Files that appear whole or not at all, and places that are tried before the work whose results they are
//! to hold.
//!
//! [`write()`] replaces a file in one step, [`write_new`] writes one that does not exist yet, and [`keep`]
//! writes to the first free of several names. [`Draft`] does the same for content that is written in pieces.
//! [`try_outputs`] and [`try_folder`] find out before the work whether its results can be written, and refuse
//! an output that would replace an input. [`put_aside`] keeps the folder of an earlier run.
//!
//! Content is written to a temporary file in the same folder, synced and then renamed. A program that is
//! killed in between leaves the old file as it was, and at most a temporary file called `.new-…`.
//!
//! Devices, pipes and the open files of processes (`/dev/stdout`, `/proc/self/fd/1`) can't be replaced:
//! content is written into them.
//!
//! Nothing in a simulated process may use this crate: real files are outside the simulation.

mod destination;
mod draft;
mod error;
mod folder;
mod trial;

pub use destination::is_same;
pub use draft::{Draft, keep, write, write_new};
pub use error::Error;
pub use folder::{create_folder, put_aside, sync_folder};
pub use trial::{Parents, try_folder, try_outputs};
