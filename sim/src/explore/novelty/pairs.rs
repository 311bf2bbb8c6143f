//! Pairs of events of two processes, in the order in which they came.

use history::Name;

use super::{Features, key, label, mix};
use crate::sim::Report;

/// The last event of a process.
struct Last<'r> {
    process: &'r Name,
    label: u64,
    key: Option<&'r Name>,
}

/// Adds a feature for each event and the last event of each other process before it, and one for each probe.
pub(super) fn describe(report: &Report, features: &mut Features) {
    let mut lasts: Vec<Last<'_>> = Vec::new();
    for event in &report.events {
        let (label, key) = (label(&event.kind), key(&event.kind));
        let mut own = None;
        for (at, last) in lasts.iter().enumerate() {
            if *last.process == event.process {
                own = Some(at);
                continue;
            }
            let relation = match (last.key, key) {
                (Some(one), Some(other)) => 1 + u64::from(one == other),
                _ => 0,
            };
            features.entry(mix(&[last.label, label, relation])).or_insert(event.at.0);
        }
        let last = Last { process: &event.process, label, key };
        match own {
            Some(at) => lasts[at] = last,
            None => lasts.push(last),
        }
    }
    for hit in report.probes.log() {
        features.entry(hit.probe).or_insert(hit.at);
    }
}
