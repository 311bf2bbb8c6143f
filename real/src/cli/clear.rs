//! `clear`: deletes the lease of a holder that no longer renews.

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::time::Duration;

use clap::Args;
use real::operate::{AuditLog, Deleted, Deletion, Holder, Inspection, Stage, Watch, Watched, watch_time};
use serde_json::{Value, json};

use super::target::{AuditArgs, Lock, TargetArgs, executor};
use super::{Outcome, print, span};

/// Said after a lease was cleared.
const AFTER: &str = "\
The old holder is not stopped: it may still write. The resource refuses its writes
once it has seen a newer token; until then it accepts them. The counter is as it
was. Watch for duplicate work and for refused writes.
";

/// The flags of `clear`.
#[derive(Args)]
pub(crate) struct Clear {
    #[command(flatten)]
    target: TargetArgs,
    /// The owner to clear, or the beginning of its token; by default the holder. Needed if servers have
    /// voted for different owners.
    #[arg(long, value_name = "PREFIX")]
    owner: Option<String>,
    /// The time for which the holder is watched; by default longer than the interval of its renewals.
    #[arg(long, value_parser = span::parse, value_name = "TIME")]
    watch: Option<Duration>,
    /// Clears the lease even of a holder that renews, or of which no server tells.
    #[arg(long)]
    force: bool,
    /// Does not ask.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    audit: AuditArgs,
}

impl Clear {
    pub(crate) fn run(self) -> Outcome {
        executor()?.block_on(async {
            let mut lock = self.target.connect().await?;
            let done = self.clear(&mut lock).await;
            lock.servers.close().await;
            done
        })
    }

    async fn clear(&self, lock: &mut Lock) -> Outcome {
        let inspection = lock.inspect().await?;
        print(&format!("{inspection}\n"))?;
        let Some(holder) = self.choose(&inspection)? else {
            print("Nothing to clear: nobody holds the lock.\n")?;
            return Ok(true);
        };
        let time = self.watch.unwrap_or_else(|| watch_time(&holder));
        let mut watch = Watch::begin(&lock.servers, holder);
        let owner = watch.holder().owner.clone();
        print(&format!("watching {} for {:.1} s\n", owner.prefix(), time.as_secs_f64()))?;
        let mut watched = watch.run(&mut lock.servers, time).await?;
        if let Some(ended) = self.ends(owner.prefix(), watched)? {
            return Ok(ended);
        }
        if !self.yes {
            if !asked(&inspection.key, owner.prefix(), watched)? {
                print("Nothing is cleared.\n")?;
                return Ok(false);
            }
            // The answer may have taken long.
            watched = watch.look(&mut lock.servers).await?;
            if let Some(ended) = self.ends(owner.prefix(), watched)? {
                return Ok(ended);
            }
        }
        self.delete(lock, &inspection, watch.holder(), watched).await
    }

    /// Returns the outcome of the command if nothing is to be cleared, and says why.
    fn ends(&self, owner: &str, watched: Watched) -> io::Result<Option<bool>> {
        match watched {
            Watched::Ended => {
                print("Nothing to clear: the lease has ended by itself.\n")?;
                Ok(Some(true))
            }
            Watched::Renewed(_) | Watched::Unknown if !self.force => {
                eprintln!("real: {}", refusal(owner, watched));
                Ok(Some(false))
            }
            Watched::Renewed(_) | Watched::Unknown | Watched::Silent => Ok(None),
        }
    }

    /// Returns the owner to clear; `None` if the lock is free.
    fn choose(&self, inspection: &Inspection) -> Result<Option<Holder>, Box<dyn Error>> {
        let holders = match &self.owner {
            Some(prefix) => inspection.claimants(prefix),
            None => inspection.holders(),
        };
        if holders.windows(2).any(|pair| pair[0].owner != pair[1].owner) {
            let owners: Vec<_> = holders.iter().map(|holder| holder.owner.prefix()).collect();
            let owners = owners.join(", ");
            return Err(
                format!("several owners have leases or claims: give one of {owners} to --owner").into()
            );
        }
        match (&self.owner, holders.into_iter().next()) {
            (Some(prefix), None) => {
                Err(format!("--owner {prefix}: no owner of a lease or claim begins so").into())
            }
            (_, holder) => Ok(holder),
        }
    }

    async fn delete(
        &self,
        lock: &mut Lock,
        inspection: &Inspection,
        holder: &Holder,
        watched: Watched,
    ) -> Outcome {
        let mut log = AuditLog::open(&self.audit.audit)?;
        let before = json!({
            "found": inspection,
            "owner": holder.owner.prefix(),
            "watched": words(watched),
            "forced": self.force,
            "reason": self.audit.reason,
        });
        log.append(&lock.entry("clear", Stage::Before, inspection, before))?;
        let deletions = lock.servers.clear(holder).await;
        let after = json!({ "owner": holder.owner.prefix(), "outcome": deletions });
        log.append(&lock.entry("clear", Stage::After, inspection, after))?;
        print(&report(&deletions))?;
        let is_cleared = deletions.iter().all(|deletion| deletion.outcome == Deleted::Done);
        if is_cleared {
            print(AFTER)?;
        }
        print(&format!("recorded in {}\n", log.path().display()))?;
        Ok(is_cleared)
    }
}

fn report(deletions: &[Deletion]) -> String {
    let line = |Deletion { at, outcome }: &Deletion| match outcome {
        Deleted::Done => format!("cleared: {at}\n"),
        Deleted::Changed => format!("unchanged: {at}: the lease has ended, or is another one by now\n"),
        Deleted::Failed(reason) => format!("failed: {at}: {reason}; inspect it again\n"),
    };
    deletions.iter().map(line).collect()
}

fn refusal(owner: &str, watched: Watched) -> String {
    match watched {
        Watched::Renewed(after) => format!(
            "{owner} has renewed after {:.1} s: its process lives, and nothing is cleared. Stop the process, \
             so that the lease ends by itself; or repeat with --force",
            after.as_secs_f64()
        ),
        _ => format!(
            "no server tells if {owner} renews, and nothing is cleared. Allow the command `cons` \
             (4lw.commands.whitelist) on all servers of --servers; or make sure that its process has ended, \
             and repeat with --force"
        ),
    }
}

fn words(watched: Watched) -> Value {
    match watched {
        Watched::Renewed(after) => json!({ "renewed_after_ms": after.as_millis() }),
        Watched::Ended => json!("ended"),
        Watched::Silent => json!("silent"),
        Watched::Unknown => json!("unknown"),
    }
}

/// Asks on standard error, and returns true if the answer is `yes`.
fn asked(key: &str, owner: &str, watched: Watched) -> io::Result<bool> {
    let state = match watched {
        Watched::Renewed(_) => "IT STILL RENEWS",
        Watched::Silent => "it does not renew",
        Watched::Ended | Watched::Unknown => "it may still renew",
    };
    let mut stderr = io::stderr();
    write!(stderr, "Clear the lease of {owner} on {key} ({state})? Type yes: ")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}
