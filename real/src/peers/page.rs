//! The page of the comparison, from its results.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dlock::TokioRuntime;

use super::measure::{PARTS, TAKES};
use super::results::Results;
use super::slice::Scenario;

/// Why no row is of the cron, on a page with a job queue.
const CRON: &str = "
## Not compared: the cron

A tick of ours ends by one commit at the guarded resource, of its effect and of the fact that it is done, so
that it takes effect once. No library at hand does this. BullMQ's job schedulers (npm), APScheduler and
celery-redbeat (PyPI) start a job at each tick, and keep no record beside its effect: after a crash it may run
again. And the rate of all of them is that of the schedule. What is left to measure is the way of a job
through the queue, as above.
";

/// Why the page can't be made.
#[derive(Debug, thiserror::Error)]
pub enum PeersPageError {
    /// The file can't be read.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// The file has no results of a comparison.
    #[error("{}: no results of `real peers`: {source}; run it again with --write", .path.display())]
    Results {
        /// The file.
        path: PathBuf,
        /// The error.
        source: serde_json::Error,
    },
}

/// Returns the page of the results in the file `path`; `None` if there is no such file.
///
/// # Errors
///
/// [`PeersPageError`].
pub fn stored_page(path: &Path) -> Result<Option<String>, PeersPageError> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|source| PeersPageError::File { path: path.to_owned(), source })?,
    };
    let results = serde_json::from_str(&text);
    let results = results.map_err(|source| PeersPageError::Results { path: path.to_owned(), source })?;
    Ok(Some(page(&results)))
}

/// Returns the page of the comparison.
pub fn page(results: &Results) -> String {
    let machine = &results.machine;
    let left_out = match results.without.as_slice() {
        [] => String::new(),
        names => format!(" Without {}.", names.join(", ")),
    };
    let has_jobs = results.rows.iter().any(|row| row.scenario == Scenario::Claim);
    format!(
        "# Peers, side by side\n\n`{}`\n\nOne run on {} cores ({}, Linux {}), all servers on the same \
         machine; {software}. Each peer did the same work in {} slices, all in turns; acquires alone in {TAKES} times as \
         many.{left_out} Latencies of loopback move with the placement of threads on cores, so where single \
         requests are timed the Redis has a core and its client another, and a slice is done in {PARTS} \
         parts: read the ratios. A ratio is a *tie* where the middle halves of the two rows' slices overlap. \
         The Redis is one server without persistence, with a port over TLS beside the other; etcd has three \
         members and ZooKeeper one, each of which syncs its log of writes to this machine's disk before it \
         answers. redis-py and rslock acquire by a \
         SET, which gives no fencing token and costs the server less than a script; so does our row without a \
         token, and the raw SET beside the raw EVALSHA tells how much. Nearly half of a round trip over \
         loopback is the waking of the thread that waits. Ours polls for an answer for \
         {poll:?} before it sleeps, where those before came as soon, and takes a core while it polls \
         (`--busy-poll` of `worker` and `contend`); a row of it never does. Where many of ours acquire \
         or release at the same time they share calls; redis-benchmark, which stands for what the server can \
         do, makes one for each. The semaphores have {permits} permits; those of ours have tokens, and tell of the \
         other permits that are live. Redisson's algorithm is its scripts, written anew. What is measured, and how each peer is driven: `real/src/peers/` and `real/peers/`.\n\n{}{}",
        results.command,
        machine.cores,
        machine.processor,
        machine.kernel,
        results.configuration.rounds,
        results.tables(),
        if has_jobs { CRON } else { "" },
        software = results.software,
        poll = TokioRuntime::BUSY_POLL,
        permits = results.configuration.permits,
    )
}

#[cfg(test)]
mod tests {
    use super::super::targets::tests::{results, row};
    use super::*;

    #[test]
    fn the_page_names_the_peers_left_out() {
        let mut results = results(19.0);
        assert!(!page(&results).contains("Without"), "none is left out");
        results.without = vec!["rslock".to_owned(), "kazoo".to_owned()];
        assert!(page(&results).contains(" Without rslock, kazoo."), "{}", page(&results));
    }

    #[test]
    fn only_a_page_with_jobs_explains_the_missing_cron() {
        let mut results = results(19.0);
        assert!(!page(&results).contains(CRON));
        results.rows.push(row(Scenario::Claim, 1, "bullmq", 40, 5000.0));
        assert!(page(&results).ends_with(CRON));
    }
}
