//! The page that a failed search leaves, if the crate is built with the feature `pages`.

#[cfg(feature = "pages")]
use super::picture::pictured;
#[cfg(feature = "pages")]
use crate::sim;
use crate::sim::Subject;

/// The line of a failure without a page.
#[cfg(feature = "pages")]
pub(super) const NOT_ASKED_FOR: &str = "";

/// The line of a failure without a page.
#[cfg(not(feature = "pages"))]
pub(super) const NOT_ASKED_FOR: &str =
    "the feature `pages` of fencepost-sim would draw the run as a page: DLOCK_SIM_HTML=FILE\n";

/// Returns the page of HTML that shows the run of the schedule with this text, or the reason why there is
/// none.
#[cfg(feature = "pages")]
pub(super) fn page<S: Subject>(subject: &S, name: &str, text: &str) -> Result<String, String> {
    let schedule = sim::parse(subject, name, text).map_err(|error| error.to_string())?;
    let drawn =
        pictured(subject, &schedule, name).map_err(|_| "the code panics, so that the run has no end")?;
    Ok(picture::page(&[drawn], Some(&picture::Schedule::new(name, text))))
}

/// Returns the reason why there is no page.
#[cfg(not(feature = "pages"))]
pub(super) fn page<S: Subject>(_: &S, _: &str, _: &str) -> Result<String, String> {
    Err("build fencepost-sim with its feature `pages`".to_owned())
}
