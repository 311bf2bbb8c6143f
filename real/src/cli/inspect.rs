//! `inspect`: shows the state of one lock, and says what does not fit together.

use std::error::Error;
use std::time::Duration;

use clap::Args;
use dlock::Runtime;
use real::operate::{Finding, Inspection, findings};
use serde_json::json;

use super::target::{Lock, TargetArgs, executor};
use super::{Outcome, print};

/// The wait before a second reading, which confirms what the first one found: an acquire in progress looks
/// like trouble for a moment.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The columns of a terminal.
const WIDTH: usize = 80;

/// The flags of `inspect`.
#[derive(Args)]
pub(crate) struct Inspect {
    #[command(flatten)]
    target: TargetArgs,
    /// Prints one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub(crate) fn run(self) -> Outcome {
        let (inspection, found) = executor()?.block_on(async {
            let mut lock = self.target.connect().await?;
            let judged = judge(&mut lock).await?;
            lock.servers.close().await;
            Ok::<_, Box<dyn Error>>(judged)
        })?;
        if self.json {
            print(&format!("{}\n", as_json(&inspection, &found)?))?;
        } else {
            print(&format!("{inspection}\n{}", text(&found)))?;
        }
        Ok(found.is_empty())
    }
}

/// Reads the lock, and again if something does not fit; keeps what both readings show.
async fn judge(lock: &mut Lock) -> Result<(Inspection, Vec<Finding>), Box<dyn Error>> {
    let inspection = lock.inspect().await?;
    let first = findings(&inspection);
    if first.is_empty() {
        return Ok((inspection, first));
    }
    let runtime = lock.servers.runtime().clone();
    runtime.sleep_until(runtime.now() + AGAIN_AFTER).await;
    let inspection = lock.inspect().await?;
    let mut found = findings(&inspection);
    found.retain(|finding| first.iter().any(|before| before.is_same_problem(finding)));
    Ok((inspection, found))
}

fn as_json(inspection: &Inspection, found: &[Finding]) -> Result<String, serde_json::Error> {
    let mut report = serde_json::to_value(inspection)?;
    let told = |finding: &Finding| {
        let mut finding_json = serde_json::to_value(finding)?;
        finding_json["text"] = json!(finding.to_string());
        Ok(finding_json)
    };
    report["findings"] = found.iter().map(told).collect::<Result<Vec<_>, serde_json::Error>>()?.into();
    serde_json::to_string_pretty(&report)
}

fn text(found: &[Finding]) -> String {
    if found.is_empty() {
        return "Everything fits together.\n".to_owned();
    }
    let mut text = "This does not fit together:\n".to_owned();
    let options = textwrap::Options::new(WIDTH).initial_indent("- ").subsequent_indent("  ");
    // Names with hyphens stay whole.
    let options = options.word_splitter(textwrap::WordSplitter::NoHyphenation);
    for finding in found {
        text.push_str(&textwrap::fill(&finding.to_string(), &options));
        text.push('\n');
    }
    text
}
