//! The section of experiment 7.

mod etcd;

use super::redis::Sample;
use super::{Configuration, Findings};
use crate::fill::{Counters, Way};
use crate::report::{Axis, Figure, Line, Scale, Section, Table};

pub(super) fn section(configuration: &Configuration, findings: &Findings) -> Section {
    let mut section = Section {
        tables: vec![
            memory_table(findings),
            expiry_table(findings),
            etcd::table(findings),
            etcd::reached_table(findings),
        ],
        figures: vec![expiry_figure(findings), etcd::figure(findings)],
        ..Section::default()
    };
    expect_of_memory(&mut section, findings);
    expect_of_expiry(&mut section, configuration, findings);
    etcd::expect(&mut section, configuration, findings);
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
