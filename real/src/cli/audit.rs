//! `audit`: judges a live history.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use real::history;
use real::judgement::Judgement;

use super::{Outcome, print, span};

/// The flags of `audit`.
#[derive(Args)]
pub(crate) struct Audit {
    /// The history files of the processes of one run, all on one machine.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Demands that the lock serves waiters in the order in which they queued.
    #[arg(long)]
    fifo: bool,
    /// Demands that every request is served within this time after it began and after the last fault healed.
    #[arg(long, value_parser = span::parse, value_name = "TIME")]
    served_within: Option<Duration>,
    /// Counts overlaps as violations, too. No lease can rule them out.
    #[arg(long)]
    strict: bool,
    /// Prints one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl Audit {
    pub(crate) fn run(self) -> Outcome {
        let history = history::read(&self.files)?;
        let judgement = Judgement::of(&history.events, self.fifo, self.served_within);
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&judgement)?))?;
        } else {
            print(&judgement.to_string())?;
        }
        Ok(judgement.is_clean(self.strict))
    }
}
