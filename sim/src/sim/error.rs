//! The errors of a run that has no report.

use std::time::Duration;

use crate::field_path::Invalid;
use crate::world::escape::Outside;

/// A run that could not start, or that failed because of code in it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The world or a fault in it breaks a rule.
    #[error("the schedule can't be run: {0}")]
    Invalid(#[from] Invalid),
    /// No thread could be started for the run.
    #[error("no thread for the run: {0}; run fewer at once (--threads)")]
    Thread(#[from] std::io::Error),
    /// Code in the world panicked.
    #[error("seed {seed}: {process} panicked at {location}: {message}")]
    Panicked {
        /// The run's seed.
        seed: u64,
        /// The process whose code panicked, `the script`, or `the simulator`.
        process: String,
        /// File and line.
        location: String,
        /// The panic's message.
        message: String,
        /// The trace until then, one line per event.
        trace: String,
    },
    /// Code in the world used another runtime than its process's.
    #[error(
        "seed {seed}: {process} asked tokio itself for a timer, a socket or a task at {location}; inside a \
         simulated process there is no tokio runtime: use Process::sleep or Runtime::sleep_until for \
         tokio::time, Process::connect and Process::listen for tokio::net, Process::spawn for tokio::spawn"
    )]
    ForeignRuntime {
        /// The run's seed.
        seed: u64,
        /// The process whose code made the call.
        process: String,
        /// File and line of the call.
        location: String,
        /// The trace until then, one line per event.
        trace: String,
    },
    /// Code in the world made a call that would have left the simulation.
    #[error(
        "seed {seed}: {process} tried to {} ({call}) at {location}; that leaves the simulation, whose runs \
         could not be repeated: {}",
        .outside.act(),
        .outside.instead()
    )]
    Escaped {
        /// The run's seed.
        seed: u64,
        /// The process whose code made the call.
        process: String,
        /// File and line of the call in the user's code.
        location: String,
        /// The function of libc that was called.
        call: &'static str,
        /// The part of the outside that the call would have reached.
        outside: Outside,
        /// The trace until then, one line per event. Empty if the code never returned to the simulator.
        trace: String,
    },
    /// Tasks ran without end while no time passed.
    #[error(
        "seed {seed}: {process} is in a busy loop at {location}: tasks took {turns} turns while nothing waited \
         for time to pass; a loop that waits must sleep (Process::sleep)"
    )]
    Stalled {
        /// The run's seed.
        seed: u64,
        /// The process whose task ran last.
        process: String,
        /// File and line of the user's code that last woke a task.
        location: String,
        /// The number of turns.
        turns: u64,
        /// The trace until then, one line per event.
        trace: String,
    },
    /// The run took too long in real time. Its thread goes on.
    #[error(
        "seed {seed}: the run had not ended after {limit:?} of real time, while {process} ran at {location}: \
         it is in a loop that never awaits, or in a call that blocks; a run that is only long needs a longer \
         Sim::real_limit"
    )]
    Hung {
        /// The run's seed.
        seed: u64,
        /// The limit, in real time.
        limit: Duration,
        /// The process whose code ran at the limit.
        process: String,
        /// File and line of the user's code that ran at the limit.
        location: String,
    },
    /// The process of a run ended before the run did ([`Sim::in_own_process`](super::Sim::in_own_process)).
    #[error("seed {seed}: the run's process ended {end}, before the run did: code in it ends the program")]
    Died {
        /// The run's seed.
        seed: u64,
        /// The way in which it ended.
        end: String,
    },
    /// The program is linked without the flag that lets `std::time` read the clocks of a process.
    #[error(
        "`std::time` inside a process would read the simulator's time, and not the clocks of the process: \
         the program is linked without `-C link-arg=-Wl,--allow-multiple-definition`; `tools/init` adds it to \
         .cargo/config.toml"
    )]
    StdTime,
    /// A second run of the same schedule differs.
    #[error("seed {seed}: {difference}")]
    Differs {
        /// The run's seed.
        seed: u64,
        /// The first event that differs, and the cause.
        difference: String,
    },
    /// The script had not ended at the run's limit.
    #[error(
        "seed {seed}: the script had not ended after {limit:?} of simulated time: it waits for something \
         that does not happen, or needs a longer Sim::limit"
    )]
    Unfinished {
        /// The run's seed.
        seed: u64,
        /// The run's limit.
        limit: Duration,
        /// The trace until then, one line per event.
        trace: String,
    },
    /// An event that is not in the vocabulary was emitted.
    #[error("the run emitted an event that no history may hold: {0}; this is a defect of the simulator")]
    Vocabulary(String),
    /// The program has installed another tracing subscriber, so that nothing was recorded.
    #[error("nothing was recorded: this program has installed a tracing subscriber of its own; remove it")]
    Unrecorded,
}

impl RunError {
    /// Returns the trace of a run that failed because of code in the world; `None` for all other errors.
    pub fn trace(&self) -> Option<&str> {
        match self {
            Self::Panicked { trace, .. }
            | Self::ForeignRuntime { trace, .. }
            | Self::Escaped { trace, .. }
            | Self::Stalled { trace, .. }
            | Self::Unfinished { trace, .. } => Some(trace),
            // The thread or process that has the trace does not answer.
            Self::Hung { .. } | Self::Died { .. } => Some(""),
            _ => None,
        }
    }
}
