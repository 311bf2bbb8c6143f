//! `audit`: judges a live history.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use files::Parents;
use history::text::Names;
use history::{Event, VerdictKind};
use picture::{Finding, Picture, Run};
use real::judgement::{Judgement, Queue};
use real::recording::{self, Merged};

use super::{Outcome, print, span, written};

/// The flags of `audit`.
#[derive(Args)]
pub(crate) struct Audit {
    /// The history files of the processes of one run, all on one machine.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Demands that the lock serves waiters in the order in which they queued.
    #[arg(long)]
    fifo: bool,
    /// The lock is a queue whose places are the tokens, as on etcd and ZooKeeper: demands that waiters are
    /// served in the order of their places, and that no more wait than may. It takes only what the events of
    /// clients prove, so that pauses and lost sessions do no harm.
    #[arg(long, conflicts_with = "fifo")]
    queue: bool,
    /// Demands that every request is served within this time after it began and after the last fault healed.
    #[arg(long, value_parser = span::parse, value_name = "TIME")]
    served_within: Option<Duration>,
    /// Counts overlaps as violations, too. No lease can rule them out.
    #[arg(long)]
    strict: bool,
    /// Prints one JSON object instead of text.
    #[arg(long)]
    json: bool,
    /// Draws the history as a page of HTML, in this file. It needs no network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Draws the history as SVG, in this file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl Audit {
    pub(crate) fn run(self) -> Outcome {
        let outputs: Vec<&Path> = self.html.iter().chain(&self.svg).map(PathBuf::as_path).collect();
        let inputs: Vec<&Path> = self.files.iter().map(PathBuf::as_path).collect();
        files::try_outputs(&outputs, &inputs, Parents::Exist)?;
        let Merged { history, empty, torn } = recording::merge(&self.files)?;
        if let Some(file) = empty.first() {
            return Err(format!(
                "{}: has no event, so that it proves nothing: leave it out, or record it again with --history",
                file.display()
            )
            .into());
        }
        let queue = match (self.queue, self.fifo) {
            (true, _) => Queue::TokensArePlaces,
            (false, true) => Queue::Reported,
            (false, false) => Queue::Unknown,
        };
        let judgement = Judgement::of_queue(&history.events, queue, self.served_within);
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&judgement)?))?;
        } else {
            print(&judgement.to_string())?;
        }
        if self.html.is_some() || self.svg.is_some() {
            self.draw(&history.events, &judgement)?;
        }
        if !judgement.has_judged() {
            let events = judgement.events;
            return Err(format!(
                "nothing was judged: none of the {events} events is a grant, a critical section, a task or \
                 an access to the resource"
            )
            .into());
        }
        for file in &torn {
            eprintln!(
                "real: {}: its last line is incomplete: its process was killed, or the file was cut, and what \
                 came after is missing",
                file.display()
            );
        }
        Ok(judgement.is_clean(self.strict) && torn.is_empty())
    }

    /// Draws the history with the same code as that of a simulated run. A live history has no messages.
    fn draw(&self, events: &[Event], judgement: &Judgement) -> Result<(), files::Error> {
        let findings = findings(judgement);
        let files: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        let drawn = [Picture::of(&Run {
            title: "live run",
            about: &files.join(", "),
            events,
            names: &Names::default(),
            findings: &findings,
            messages: &[],
            roles: &BTreeMap::new(),
        })];
        if let Some(file) = &self.html {
            write(file, &picture::page(&drawn, None))?;
        }
        if let Some(file) = &self.svg {
            write(file, &picture::svg(&drawn))?;
        }
        Ok(())
    }
}

/// Returns the verdicts with what explains them: violations first, overlaps last.
fn findings(judgement: &Judgement) -> Vec<Finding> {
    let finding = |(verdict, explanation): (&history::Verdict, Option<&str>)| Finding {
        sentence: match explanation {
            Some(explanation) => format!("{} ({explanation})", verdict.detail),
            None => verdict.detail.clone(),
        },
        is_excused: explanation.is_some() || verdict.kind == VerdictKind::Overlap,
        verdict: verdict.clone(),
    };
    let mut findings: Vec<Finding> = judgement.explained().map(finding).collect();
    findings.sort_by_key(|finding| (finding.is_excused, finding.verdict.kind == VerdictKind::Overlap));
    findings
}

fn write(file: &Path, text: &str) -> Result<(), files::Error> {
    files::write(file, text)?;
    written(file);
    Ok(())
}
