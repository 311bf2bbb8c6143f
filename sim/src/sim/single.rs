//! A world of one process, for code that is in no world and starts a runtime: a function under
//! `#[tokio::test]` or `#[tokio::main]` of a program that `cargo sim` compiles.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use super::builder::Sim;
use super::report::Report;
use super::seed;
use crate::world::lock;

/// The name of the process.
const NAME: &str = "main";

/// The simulated time at which a run ends at the latest: tests of services wait long for timeouts.
const LIMIT: Duration = Duration::from_secs(3_600);

/// Code that borrows from its caller.
type Main<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// The payload of a panic.
type Payload = Box<dyn std::any::Any + Send>;

/// The code, as a task of the process.
struct Task(Main<'static>);

// SAFETY: one thread at a time has the task. The thread that made it waits while the run's thread polls and
// drops it.
#[allow(unsafe_code, reason = "the code need not be Send, as in tokio's own `block_on`")]
unsafe impl Send for Task {}

impl Future for Task {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

/// Runs `main` as the process `main` of a world without faults, whose seed is that of the environment
/// (`SEED`), or 0. It may take an hour of simulated time.
///
/// # Errors
///
/// The error of the run, or what it was found guilty of, as text.
///
/// # Panics
///
/// If `main` does, with its own payload.
pub(super) fn run(main: Main<'_>) -> Result<(), String> {
    let seed = seed::of_environment()?.unwrap_or(0);
    // SAFETY: the task is dropped before this function returns: `run_script` drops its world, tasks included,
    // on its thread, and waits for that thread, or ends the program.
    #[allow(unsafe_code, reason = "a task of a process can't borrow")]
    let main = Task(unsafe { std::mem::transmute::<Main<'_>, Main<'static>>(main) });
    let panicked: Arc<Mutex<Option<Payload>>> = Arc::default();
    let slot = Arc::clone(&panicked);
    let ran = Sim::new(seed).empty_process(NAME).limit(LIMIT).run_script(|control| async move {
        let (ended, end) = futures_util::future::abortable(std::future::pending::<()>());
        control.process(NAME).spawn(async move {
            let mut main = main;
            // The first panic of a run is kept by its hook; its payload is kept here, for `should_panic`.
            let polled = std::future::poll_fn(|cx| {
                match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut main).poll(cx))) {
                    Ok(polled) => polled,
                    Err(payload) => {
                        *lock(&slot) = Some(payload);
                        resume_unwind(Box::new("the program panicked"))
                    }
                }
            });
            polled.await;
            drop(main);
            end.abort();
        });
        let _ = ended.await;
    });
    match ran {
        Ok((report, ())) => judged(&report),
        Err(error) => {
            if let Some(payload) = lock(&panicked).take() {
                eprintln!("{error}");
                resume_unwind(payload);
            }
            Err(error.to_string())
        }
    }
}

/// Fails if the run was found guilty.
fn judged(report: &Report) -> Result<(), String> {
    let verdicts = report.verdicts.iter().map(|verdict| format!("{}: {}", verdict.kind, verdict.detail));
    let findings = report.findings.iter().map(|finding| format!("{}: {}", finding.check, finding.problem));
    let problems: Vec<String> = verdicts.chain(findings).collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("seed {}: {}", report.seed, problems.join("; ")))
}
