//! `raise`: sets a lost fencing counter, or the revision of an etcd that was set back, above what the
//! resource has seen.

use clap::Args;
use real::operate::{AuditLog, Raised, Stage, check_raise, check_writes};
use serde_json::json;

use super::target::{AuditArgs, Lock, TargetArgs, executor};
use super::{Outcome, print};

/// Said after a counter was raised.
const AFTER: &str = "\
The next grant has a token above it. A holder that acquired before keeps its lower
token: its writes are refused until it acquires again.
";

/// The flags of `raise`.
#[derive(Args)]
pub(crate) struct Raise {
    #[command(flatten)]
    target: TargetArgs,
    /// The number to raise the counter to; by default one more than the highest token that --resource has
    /// seen. Choose a higher one if grants were made whose holders have not written yet.
    #[arg(long, value_name = "NUMBER")]
    to: Option<u64>,
    #[command(flatten)]
    audit: AuditArgs,
}

impl Raise {
    pub(crate) fn run(self) -> Outcome {
        // A system without a counter is refused before anything is reached.
        check_raise(self.target.system()?, self.to.or(Some(0)), None)?;
        executor()?.block_on(async {
            let mut lock = self.target.connect().await?;
            self.raise(&mut lock).await
        })
    }

    async fn raise(&self, lock: &mut Lock) -> Outcome {
        let inspection = lock.inspect().await?;
        let seen = inspection.resource.as_ref().and_then(|resource| resource.highest_token);
        let to = check_raise(inspection.system, self.to, seen)?;
        check_writes(&inspection, to)?;
        let mut log = AuditLog::open(&self.audit.audit)?;
        let before = json!({ "found": inspection, "to": to, "reason": self.audit.reason });
        log.append(&lock.entry("raise", Stage::Before, &inspection, before))?;
        let raised = lock.servers.raise(to).await;
        let after = json!({ "to": to, "outcome": raised });
        log.append(&lock.entry("raise", Stage::After, &inspection, after))?;
        let failed = raised.iter().filter(|(_, raised)| matches!(raised, Raised::Failed(_))).count();
        raised.iter().try_for_each(|(server, raised)| print(&line(server, raised, to)))?;
        if failed == 0 {
            print(AFTER)?;
        } else {
            eprintln!("real: {}", incomplete(failed, raised.len()));
        }
        print(&format!("recorded in {}\n", log.path().display()))?;
        Ok(failed == 0)
    }
}

fn line(server: &str, raised: &Raised, to: u64) -> String {
    match raised {
        Raised::Done { from: Some(from) } => format!("raised: {server}: from {from} to {to}\n"),
        Raised::Done { from: None } => format!("raised: {server}: from none to {to}\n"),
        Raised::Already { at } => format!("unchanged: {server}: it is at {at} already\n"),
        Raised::Failed(reason) => format!("failed: {server}: {reason}\n"),
    }
}

fn incomplete(failed: usize, servers: usize) -> String {
    let has_majority = servers - failed > servers / 2;
    let effect = match has_majority {
        true => "a majority has the counter, so that every grant has a token above it",
        false => "the others are no majority, so that grants may still have lower tokens",
    };
    format!("{failed} of {servers} servers failed: {effect}; repeat the command once they run")
}
