//! `token_regressed`: a grant that came after another one got no larger fencing token.
//!
//! A grant came first if it had returned (`lease_acquired`) before the other acquire began
//! (`lease_requested`): real-time order. Acquires that ran at the same time may get their tokens in any
//! order. An equal token is no growth. An acquire whose beginning is not in the history is not judged.
//!
//! Source: real-time order of Herlihy and Wing, "Linearizability" (1990), applied to a counter.

use std::collections::BTreeMap;

use super::Rules;
use super::judge::{Judge, State};
use super::verdict::{VerdictKind, Verdicts};
use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

#[derive(Default)]
pub(super) struct Tokens<'h> {
    highest: BTreeMap<&'h Name, Grant<'h>>,
    /// For each acquire that runs: the highest grant of its key that had returned when it began.
    running: BTreeMap<(&'h Name, &'h Name, &'h Name), Option<Grant<'h>>>,
}

#[derive(Clone, Copy)]
struct Grant<'h> {
    token: u64,
    process: &'h Name,
    at: Nanos,
}

impl<'h> Judge<'h> for Tokens<'h> {
    fn of(_: &Rules) -> Option<Self> {
        Some(Self::default())
    }

    fn observe(&mut self, event: &'h Event, _: &State<'h>, verdicts: &mut Verdicts) {
        let process = &event.process;
        match &event.kind {
            // A retry under another owner is a new request.
            Kind::LeaseRequested { key, owner, .. } | Kind::LeaseRetried { key, owner, .. } => {
                self.running.insert((key, owner, process), self.highest.get(key).copied());
            }
            Kind::LeaseNotAcquired { key, owner, .. } => {
                self.running.remove(&(key, owner, process));
            }
            // A request that demanded no token: its grant has no place in the order.
            Kind::LeaseAcquired { key, owner, token: 0, .. } => {
                self.running.remove(&(key, owner, process));
            }
            Kind::LeaseAcquired { key, owner, token, .. } => {
                let grant = Grant { token: *token, process, at: event.at };
                if let Some(Some(earlier)) = self.running.remove(&(key, owner, process)) {
                    judge(key, earlier, grant, verdicts);
                }
                let highest = self.highest.entry(key).or_insert(grant);
                if grant.token > highest.token {
                    *highest = grant;
                }
            }
            _ => {}
        }
    }
}

fn judge(key: &Name, earlier: Grant<'_>, grant: Grant<'_>, verdicts: &mut Verdicts) {
    if grant.token > earlier.token {
        return;
    }
    let detail = format!(
        "{} got token {} at {}, although {} had been given token {} at {}, before {0} asked",
        grant.process, grant.token, grant.at, earlier.process, earlier.token, earlier.at,
    );
    let processes = [grant.process, earlier.process];
    verdicts.convict(VerdictKind::TokenRegressed, grant.at, key, &processes, detail);
}
