//! The section of experiment 7.

use super::etcd::{Expiry, Held, Reached};
use super::redis::Sample;
use super::{Configuration, Findings};
use crate::fill::{Counters, Way};
use crate::report::{Axis, Figure, Line, Scale, Section, Table};

/// The default limit of etcd's database (`--quota-backend-bytes`).
const ETCD_QUOTA_BYTES: f64 = 2.0 * 1024.0 * 1024.0 * 1024.0;
/// The fewest locks whose memory can be told from that of an etcd that has just started.
const ETCD_LOCKS_MIN: u64 = 100_000;

pub(super) fn section(configuration: &Configuration, findings: &Findings) -> Section {
    let mut section = Section {
        tables: vec![memory_table(findings), expiry_table(findings), etcd_table(findings)],
        figures: vec![expiry_figure(findings)],
        ..Section::default()
    };
    expect_of_memory(&mut section, findings);
    expect_of_expiry(&mut section, configuration, findings);
    expect_of_etcd(&mut section, findings);
    if findings.etcd.iter().any(|held| !held.reached.is_empty()) {
        section.tables.push(reached_table(findings));
    }
    section
}

fn expect_of_memory(section: &mut Section, findings: &Findings) {
    let by = |way| findings.memory.iter().filter(move |memory| memory.way == way);
    let of = |counters| by(Way::Commands).find(|memory| memory.counters == counters);
    let per_lock = |counters| of(counters).map_or(f64::NAN, |memory| memory.bytes_per_lock);
    let sharded = findings.memory.iter().find(|memory| matches!(memory.counters, Counters::Shards(_)));
    let (none, each) = (per_lock(Counters::None), per_lock(Counters::Key));
    let shared = sharded.map_or(f64::NAN, |memory| memory.bytes_per_lock);
    section.expect(
        "shared counters save most of what a counter for each lock costs",
        none < each && shared - none < (each - none) / 2.0,
    );
    section.remarks.push(format!(
        "A lock takes {none:.0} bytes without a counter and {each:.0} with one of its own, which never \
         expires: ten million take {:.2} GB. With shared counters it takes {shared:.0}, and tokens of unlike \
         locks come from one counter: they still grow for each lock, with gaps.",
        each * 1e7 / 1e9,
    ));
    let by_lock = |counters| by(Way::Lock).find(|memory| memory.counters == counters);
    if let (Some(own), Some(slots)) = (by_lock(Counters::Key), by_lock(Counters::Slots)) {
        section.expect(
            "locks made by the lock's own script take the memory of those made by its commands, within 5 %",
            (own.bytes_per_lock - each).abs() <= each / 20.0,
        );
        section.expect(
            "a counter for each hash slot saves most of what a counter for each lock costs, too",
            slots.bytes_per_lock - none < (own.bytes_per_lock - none) / 2.0,
        );
        section.remarks.push(format!(
            "With `TokenSource::Shared` a lock takes {:.0} bytes, its token is kept beside its owner, and \
             one client was granted {:.0} a second; with a counter of its own {:.0} bytes and {:.0} a second.",
            slots.bytes_per_lock, slots.per_second, own.bytes_per_lock, own.per_second,
        ));
    }
    if let Some(memory) = of(Counters::None) {
        section.remarks.push(format!(
            "`MEMORY USAGE` says {} bytes for a lock's key, {:.0} less than `used_memory` grew by: it leaves \
             out the key's share of the hash tables.",
            memory.memory_usage_bytes,
            none - memory.memory_usage_bytes as f64,
        ));
    }
}

fn expect_of_expiry(section: &mut Section, configuration: &Configuration, findings: &Findings) {
    let keys = configuration.keys;
    let of = |active| findings.expiry.iter().find(|curve| curve.active == active);
    section.expect(
        "without active expiry all locks that had expired still counted in dbsize and used_memory",
        of(false).is_some_and(|curve| {
            curve.idle.as_ref().is_some_and(|idle| idle.live == 0 && idle.dbsize == keys)
        }),
    );
    section.expect(
        "reading an expired lock removes it",
        of(false).is_some_and(|curve| curve.asked > 0 && curve.removed_by_asking == curve.asked),
    );
    section.expect(
        "active expiry reclaims all of them eventually",
        findings.expiry.len() == 2 && findings.expiry.iter().all(|curve| curve.reclaimed_after_s.is_some()),
    );
    for curve in &findings.expiry {
        let after =
            curve.reclaimed_after_s.map_or("not in time".to_owned(), |after| format!("{after:.0} s after"));
        let most = curve.overstated_max();
        section.remarks.push(format!(
            "{}: the last memory was reclaimed {after} the last lock had expired{}. At worst dbsize counted \
             {most} locks that had expired, {:.0} % of all.",
            curve.name(),
            if curve.active { "" } else { " and active expiry was allowed" },
            100.0 * most as f64 / keys as f64,
        ));
    }
}

fn expect_of_etcd(section: &mut Section, findings: &Findings) {
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
    section.remarks.extend(of(false).and_then(limit));
    if let Some(each) = of(false) {
        expect_of_growth(section, each);
        section.remarks.extend(findings.etcd_expiry.as_ref().and_then(|expiry| beyond(each, expiry)));
    }
    if let Some(expiry) = &findings.etcd_expiry {
        section.expect(
            "etcd removes all locks whose leases have ended eventually",
            expiry.filled > 0 && expiry.reclaimed_after_s.is_some(),
        );
        section.remarks.extend(removal(expiry));
    }
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

/// Adds the expectation that the memory of a lock stays the same as the fill goes on: the limit is computed
/// from it. Earlier results have the end alone.
fn expect_of_growth(section: &mut Section, each: &Held) {
    if each.locks < ETCD_LOCKS_MIN || each.reached.is_empty() {
        return;
    }
    let bytes = || each.reached.iter().map(Reached::bytes_per_lock);
    let (least, most) = (bytes().fold(f64::INFINITY, f64::min), bytes().fold(0.0, f64::max));
    section.expect(
        "the bytes of memory for each lock of etcd at a quarter, half and the whole of the fill differ by less \
         than 20 %",
        each.reached.len() == 3 && most < 1.2 * least,
    );
}

/// Says why the etcd is not filled as far as its memory allows, and on what the limit rests.
fn beyond(each: &Held, expiry: &Expiry) -> Option<String> {
    let (limit, here) = (by_memory(each)?, by_memory(each)? / each.members.max(1) as f64);
    if each.reached.is_empty() {
        return None;
    }
    let minutes = |locks: f64, per_second: f64| format!("{:.0} minutes", locks / per_second / 60.0);
    let times = |locks: f64| {
        let removed = expiry.per_second().filter(|rate| *rate > 0.0);
        let expire = removed.map(|rate| format!(" and {} to expire", minutes(locks, rate)));
        format!("{} to fill{}", minutes(locks, each.per_second), expire.unwrap_or_default())
    };
    let bytes = each
        .reached
        .iter()
        .map(|reached| format!("{:.0} after {} locks", reached.bytes_per_lock(), reached.locks));
    Some(format!(
        "The fill ends there because a larger one takes too long: at the rates measured, {:.1} million locks \
         would take {}. On this machine {} members share the memory, so that {:.1} million fit: {}. The bytes of \
         memory for each lock, from which the limit is computed, were {}.",
        limit / 1e6,
        times(limit),
        each.members,
        here / 1e6,
        times(here),
        bytes.collect::<Vec<_>>().join(", "),
    ))
}

/// Returns the number of locks that fit into the memory of a member with this machine's; `None` if unknown.
fn by_memory(each: &Held) -> Option<f64> {
    let locks = each.machine_bytes as f64 / each.memory_bytes_per_lock;
    (locks.is_finite() && each.machine_bytes > 0).then_some(locks)
}

/// Says how many leases fit: into the memory of each member, and into the quota of its database.
fn limit(each: &Held) -> Option<String> {
    let (by_memory, by_quota) = (by_memory(each)?, ETCD_QUOTA_BYTES / each.database_bytes_per_lock);
    if !by_quota.is_finite() {
        return None;
    }
    Some(format!(
        "etcd of {} members held {} leases with a lock each. A lock takes {:.0} bytes of memory of each member \
         and {:.0} of its database: a member with {:.0} GB of memory, as this machine has, holds {:.1} million, \
         and the usual quota of 2 GiB would allow {:.1} million. {} comes first.",
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
        "Of {} leases of etcd, {} still had their locks when the last one had ended, and the last lock went \
         {after:.0} s later{rate}.",
        expiry.locks, first.keys,
    ))
}

fn memory_table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "Redis: growth of used_memory of an empty server.",
        &["counters", "made by", "locks", "keys", "bytes a lock", "MEMORY USAGE", "filled/s"],
    );
    for memory in &findings.memory {
        let counters = match memory.counters {
            Counters::None => "none".to_owned(),
            Counters::Key => "one each".to_owned(),
            Counters::Shards(shards) => format!("{shards} shared"),
            Counters::Slots => "one a hash slot".to_owned(),
        };
        table.row([
            counters,
            if memory.way == Way::Lock { "the lock" } else { "commands" }.to_owned(),
            memory.locks.to_string(),
            memory.keys.to_string(),
            format!("{:.1}", memory.bytes_per_lock),
            memory.memory_usage_bytes.to_string(),
            format!("{:.0}", memory.per_second),
        ]);
    }
    table
}

fn expiry_table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "Redis: the largest number of expired locks in dbsize, its time, and used_memory then; and the time \
         from the last expiry until all were reclaimed.",
        &["expiry", "locks", "expired", "at s", "MB then", "reclaimed s"],
    );
    for curve in &findings.expiry {
        let worst = curve.samples.iter().max_by_key(|sample| sample.dbsize.saturating_sub(sample.live));
        table.row([
            curve.name().to_owned(),
            curve.locks.to_string(),
            curve.overstated_max().to_string(),
            worst.map_or(String::new(), |sample| format!("{:.0}", sample.at_s)),
            worst.map_or(String::new(), |sample| format!("{:.1}", sample.used_memory as f64 / 1e6)),
            curve.reclaimed_after_s.map_or("–".to_owned(), |after| format!("{after:.1}")),
        ]);
    }
    table
}

fn etcd_table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "etcd, filled with locks: the growth of one member's database, and of the memory of the member that \
         takes most.",
        &["leases", "members", "locks", "filled/s", "database B a lock", "memory B a lock"],
    );
    for held in &findings.etcd {
        table.row([
            if held.is_shared { "one for all" } else { "one each" }.to_owned(),
            held.members.to_string(),
            held.locks.to_string(),
            format!("{:.0}", held.per_second),
            format!("{:.0}", held.database_bytes_per_lock),
            format!("{:.0}", held.memory_bytes_per_lock),
        ]);
    }
    table
}

fn reached_table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "etcd while it is filled: the growth of the memory of the member that takes most, for each lock made \
         until then, and for each made since the row before.",
        &["leases", "locks", "filled/s", "memory MB", "B a lock", "B a new one"],
    );
    for held in &findings.etcd {
        let mut before = Reached::default();
        for reached in &held.reached {
            let locks = reached.locks.saturating_sub(before.locks).max(1) as f64;
            let bytes = reached.memory_bytes as f64 - before.memory_bytes as f64;
            table.row([
                if held.is_shared { "one for all" } else { "one each" }.to_owned(),
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

fn expiry_figure(findings: &Findings) -> Figure {
    let lines = findings.expiry.iter().flat_map(|curve| {
        let line = |what: &str, of: fn(&Sample) -> u64| Line {
            name: format!("{}: {what}", curve.name()),
            points: curve.samples.iter().map(|sample| (sample.at_s, of(sample) as f64)).collect(),
        };
        [line("alive", |sample| sample.live), line("counted", |sample| sample.dbsize)]
    });
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    Figure {
        name: "experiment-7-expiry".to_owned(),
        caption: "Live locks and locks counted in dbsize, from the time at which the last was set."
            .to_owned(),
        x: axis("s"),
        y: axis("locks"),
        lines: lines.collect(),
    }
}
