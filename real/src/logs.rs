//! The log of a command: its events as lines on standard error, as `RUST_LOG` asks.
//!
//! The events are those of the history, so that log and history can't disagree; neither needs the other.

use std::{env, io};

use tracing::Subscriber;
use tracing_subscriber::filter::{EnvFilter, FilterExt, FilterFn, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::recording::Recorder;

/// The environment variable with the levels of the log, such as `info` or `dlock=info,worker=debug`. Children
/// do not inherit it: their standard error is a file that nobody reads.
pub const VARIABLE: &str = "RUST_LOG";

/// Sends this process's events to `recorder`, if there is one, and to the log, if [`VARIABLE`] asks for one.
///
/// # Errors
///
/// An error if the variable is no list of levels, or if another subscriber is installed.
pub fn install(recorder: Option<Recorder>) -> io::Result<()> {
    let asked = env::var(VARIABLE).ok().filter(|levels| !levels.is_empty());
    let registry = tracing_subscriber::registry();
    let installed = match (recorder, asked) {
        (None, None) => return Ok(()),
        // Without a log, the recorder decides alone which events exist.
        (Some(recorder), None) => tracing::subscriber::set_global_default(registry.with(recorder)),
        (None, Some(levels)) => tracing::subscriber::set_global_default(registry.with(lines(&levels)?)),
        (Some(recorder), Some(levels)) => {
            // Its refusal of all other call sites must not hide them from the log.
            let recorder = recorder.with_filter(FilterFn::new(Recorder::wants));
            tracing::subscriber::set_global_default(registry.with(recorder).with(lines(&levels)?))
        }
    };
    installed.map_err(io::Error::other)
}

/// Returns the layer that prints events of these levels.
fn lines<S>(levels: &str) -> io::Result<impl Layer<S> + Send + Sync + 'static>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let levels = EnvFilter::try_new(levels).map_err(|error| {
        let help = "give a level, or TARGET=LEVEL, such as info or dlock=debug";
        io::Error::new(io::ErrorKind::InvalidInput, format!("{VARIABLE}={levels}: {error}; {help}"))
    })?;
    // An event has all fields of the spans around it.
    let events = filter_fn(|metadata| !metadata.is_span());
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(io::stderr);
    Ok(lines.with_filter(levels.and(events)))
}
