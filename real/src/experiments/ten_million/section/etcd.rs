//! etcd in the section of experiment 7.

use super::super::etcd::{End, Expiry, Held};
use super::super::gauge::Reached;
use super::super::{Configuration, Findings};
use crate::fill::etcd::ATTEMPTS;
use crate::report::{Axis, Figure, Line, Scale, Section, Table};

/// The default limit of etcd's database (`--quota-backend-bytes`).
const QUOTA_BYTES: f64 = 2.0 * 1024.0 * 1024.0 * 1024.0;
/// The fewest locks whose memory can be told from that of an etcd that has just started.
const LOCKS_MIN: u64 = 100_000;

pub(super) fn expect(section: &mut Section, configuration: &Configuration, findings: &Findings) {
    let of = |shared| findings.etcd.iter().find(|held| held.is_shared == shared);
    section.expect(
        "a lease for each lock costs more of the database than one lease for all",
        of(false)
            .zip(of(true))
            .is_some_and(|(each, shared)| each.database_bytes_per_lock > shared.database_bytes_per_lock),
    );
    let growth = &findings.growth;
    section.expect(
        "the database grows with every acquire and release, and shrinks when it is compacted and \
         defragmented",
        growth.after > growth.before && growth.defragmented < growth.after,
    );
    if let Some(each) = of(false) {
        expect_of_growth(section, each);
        section.remarks.extend(limit(each));
        section.remarks.extend(filled(configuration, each));
    }
    let expiry = &findings.etcd_expiry;
    section.expect(
        "no lease of etcd that was to end with the others ended before the last was granted",
        expiry.filled == expiry.locks,
    );
    section.expect(
        "etcd removes all locks whose leases have ended eventually",
        expiry.filled > 0 && expiry.reclaimed_after_s.is_some(),
    );
    section.remarks.extend(removal(expiry));
    section.remarks.push(format!(
        "{} acquires and releases of one lock made {} revisions and {:.0} bytes of database each, although \
         no lock was left; compaction alone returns none of it to the disk ({} bytes after it), \
         defragmentation does ({} bytes).",
        growth.rounds,
        growth.revisions,
        growth.after.saturating_sub(growth.before) as f64 / growth.rounds.max(1) as f64,
        growth.compacted,
        growth.defragmented,
    ));
}

impl Held {
    /// Returns the samples after `above` of the fill and up to `to`, as shares of its locks.
    fn between(&self, above: f64, to: f64) -> impl Iterator<Item = &Reached> {
        let share = |reached: &Reached| reached.locks as f64 / self.locks.max(1) as f64;
        self.reached.iter().filter(move |reached| share(reached) > above && share(reached) <= to)
    }

    /// Returns the mean of the memory for each lock over a part of the fill, in bytes; NaN without a sample.
    fn mean_bytes(&self, above: f64, to: f64) -> f64 {
        let (sum, count) = self
            .between(above, to)
            .fold((0.0, 0.0), |(sum, count), reached| (sum + reached.bytes_per_lock(), count + 1.0));
        sum / count
    }
}

/// Adds the expectation that a lock's memory stays the same as the fill goes on: the limit is computed from
/// it. Go's collector runs again when the heap has grown to twice of what was alive, so that the memory of a
/// lock rises and falls while the number of locks doubles. The means of two doublings are compared.
fn expect_of_growth(section: &mut Section, each: &Held) {
    if each.locks < LOCKS_MIN {
        return;
    }
    let (before, last) = (each.mean_bytes(0.25, 0.5), each.mean_bytes(0.5, 1.0));
    section.expect(
        format!(
            "a lock of etcd takes as much memory in the second quarter of the fill ({before:.0} bytes in the \
             mean) as in its second half ({last:.0} bytes), within 20 %"
        ),
        before / last < 1.2 && last / before < 1.2,
    );
}

/// Says how far the etcd was filled, and how its memory changed meanwhile.
fn filled(configuration: &Configuration, each: &Held) -> Option<String> {
    let bytes = || each.between(0.25, 1.0).map(Reached::bytes_per_lock);
    let (least, most) = (bytes().reduce(f64::min)?, bytes().reduce(f64::max)?);
    let end = match &each.end {
        End::Made => "the number to be made was reached".to_owned(),
        End::Memory => {
            let bytes = configuration.etcd_member_bytes as f64;
            format!("a member took {:.1} GB of memory, as much as each was to have", bytes / 1e9)
        }
        End::Etcd(error) => format!("the etcd refused a request {ATTEMPTS} times in a row ({error})"),
    };
    Some(format!(
        "The fill with a lease for each lock ended after {} locks and {:.0} minutes, when {end}. From a quarter \
         of it on, a lock took between {least:.0} and {most:.0} bytes of memory: Go's collector lets the heap \
         grow to twice of what is alive before it runs again.",
        each.locks,
        each.locks as f64 / each.per_second / 60.0,
    ))
}

/// Says how many leases fit: into the memory of each member, and into the quota of its database.
fn limit(each: &Held) -> Option<String> {
    let by_memory = each.machine_bytes as f64 / each.memory_bytes_per_lock;
    let by_quota = QUOTA_BYTES / each.database_bytes_per_lock;
    if !by_memory.is_finite() || !by_quota.is_finite() || each.machine_bytes == 0 {
        return None;
    }
    Some(format!(
        "etcd of {} members held {} leases with a lock each. A lock takes {:.0} bytes of memory of each \
         member and {:.0} of its database: a member with {:.0} GB of memory, as this machine has, holds {:.1} \
         million, and the usual quota of 2 GiB would allow {:.1} million. {} comes first.",
        each.members,
        each.locks,
        each.memory_bytes_per_lock,
        each.database_bytes_per_lock,
        each.machine_bytes as f64 / 1e9,
        by_memory / 1e6,
        by_quota / 1e6,
        if by_memory < by_quota { "Memory" } else { "The quota" },
    ))
}

/// Says how long ended leases stayed, and how fast they went.
fn removal(expiry: &Expiry) -> Option<String> {
    let (after, first) = (expiry.reclaimed_after_s?, expiry.samples.first()?);
    let rate = expiry.per_second().map_or_else(
        || ": here etcd removes locks as fast as their leases end".to_owned(),
        |rate| format!(", {rate:.0} a second: waiters wait for so long"),
    );
    Some(format!(
        "Of {} leases of etcd that ended together, {} still had their locks when the last one had ended, \
         and the last lock went {after:.0} s later{rate}.",
        expiry.locks, first.keys,
    ))
}

fn leases(held: &Held) -> &'static str {
    if held.is_shared { "one for all" } else { "one each" }
}

pub(super) fn table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "etcd, filled with locks: the growth of one member's database, and of the memory of the member that \
         takes most.",
        &["leases", "members", "locks", "filled/s", "database B a lock", "memory B a lock"],
    );
    for held in &findings.etcd {
        table.row([
            leases(held).to_owned(),
            held.members.to_string(),
            held.locks.to_string(),
            format!("{:.0}", held.per_second),
            format!("{:.0}", held.database_bytes_per_lock),
            format!("{:.0}", held.memory_bytes_per_lock),
        ]);
    }
    table
}

pub(super) fn reached_table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "etcd at a quarter, half and the whole of the fill: the growth of the memory of the member that \
         takes most, for each lock made until then, and for each made since the row before.",
        &["leases", "locks", "filled/s", "memory MB", "B a lock", "B a new one"],
    );
    for held in &findings.etcd {
        let mut before = Reached::default();
        let first_from = |share: f64| {
            held.reached.iter().find(|reached| reached.locks as f64 >= share * held.locks as f64)
        };
        for reached in [0.25, 0.5, 1.0].into_iter().filter_map(first_from) {
            let locks = reached.locks.saturating_sub(before.locks).max(1) as f64;
            let bytes = reached.memory_bytes as f64 - before.memory_bytes as f64;
            table.row([
                leases(held).to_owned(),
                reached.locks.to_string(),
                format!("{:.0}", locks / (reached.at_s - before.at_s).max(1e-3)),
                format!("{:.0}", reached.memory_bytes as f64 / 1e6),
                format!("{:.0}", reached.bytes_per_lock()),
                format!("{:.0}", bytes / locks).replace('-', "−"),
            ]);
            before = *reached;
        }
    }
    table
}

pub(super) fn figure(findings: &Findings) -> Figure {
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    let line = |held: &Held| Line {
        name: format!("leases: {}", leases(held)),
        points: held
            .reached
            .iter()
            .map(|reached| (reached.locks as f64 / 1e6, reached.memory_bytes as f64 / 1e9))
            .collect(),
    };
    Figure {
        name: "experiment-7-etcd".to_owned(),
        caption: "Memory of the member of etcd that takes most, while it is filled.".to_owned(),
        x: axis("million locks"),
        y: axis("GB"),
        lines: findings.etcd.iter().map(line).collect(),
    }
}
