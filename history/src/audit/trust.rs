//! The time at which each holder's trust in its lease ends, by what the holder itself has said.
//!
//! Simpler than [`Beliefs`](super::Beliefs), which needs exact times: the clock of the history is taken for
//! that of the holder.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::events::{Event, Nanos};
use crate::vocabulary::{Kind, Name};

/// The holders that have acquired a lease, by key and owner.
#[derive(Default)]
pub(super) struct Trust<'h> {
    holders: BTreeMap<(&'h Name, &'h Name), Holder<'h>>,
}

struct Holder<'h> {
    process: &'h Name,
    /// The end; `None` if the history does not say it.
    until: Option<Nanos>,
}

impl<'h> Trust<'h> {
    pub(super) fn observe(&mut self, event: &'h Event) {
        let (at, process) = (event.at, &event.process);
        match &event.kind {
            Kind::LeaseRequested { key, owner, .. } | Kind::LeaseRetried { key, owner, .. } => {
                self.holders.insert((key, owner), Holder { process, until: None });
            }
            Kind::LeaseAcquired { key, owner, valid_micros, .. }
            | Kind::LeaseRenewed { key, owner, valid_micros, .. }
            | Kind::LeaseTtlChanged { key, owner, valid_micros, .. } => {
                let valid = valid_micros.map(Duration::from_micros);
                let until = valid.map(|valid| at.after(valid));
                self.holders.insert((key, owner), Holder { process, until });
            }
            Kind::LeaseLost { key, owner, .. }
            | Kind::LeaseNotAcquired { key, owner, .. }
            | Kind::LeaseReleased { key, owner, .. } => self.end(|_, of| of == (key, owner), at),
            Kind::ProcessCrashed { .. } => self.end(|holder, _| holder.process == process, at),
            _ => {}
        }
    }

    /// Returns the time at which the owner's trust in its lease ends; `None` if it is not known to end.
    pub(super) fn ended(&self, key: &Name, owner: &Name) -> Option<Nanos> {
        self.holders.get(&(key, owner)).and_then(|holder| holder.until)
    }

    fn end(&mut self, is_over: impl Fn(&Holder<'_>, (&Name, &Name)) -> bool, at: Nanos) {
        let holders = self.holders.iter_mut();
        for (_, holder) in holders.filter(|(of, holder)| is_over(holder, **of)) {
            holder.until = Some(holder.until.map_or(at, |until| until.min(at)));
        }
    }
}
