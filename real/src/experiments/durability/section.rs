//! The section of experiment 10.

use resource::Fencing;

use super::check::Checked;
use super::updates::{By, Updated};
use super::{Configuration, Findings, Measured, Setting};
use crate::report::{Section, Table};
use crate::systems::System;

pub(super) fn section(configuration: &Configuration, findings: &Findings) -> Section {
    let mut section = Section {
        tables: vec![
            locks_table(configuration, findings),
            writes_table(configuration, findings),
            updates_table(configuration, findings),
        ],
        ..Section::default()
    };
    let slower = |than, setting| {
        let both = findings.of(System::Redis, than).zip(findings.of(System::Redis, setting));
        both.is_some_and(|(than, of)| of.p50_ms > than.p50_ms)
    };
    section.expect(
        "a Redis that syncs each write to its disk takes longer for an acquire than one without a disk",
        slower(Setting::NoDisk, Setting::EachWrite),
    );
    section.expect("a WAIT for one replica makes an acquire longer", slower(Setting::Replica, Setting::Wait));
    section.expect(
        "every write with a new token was accepted, with the check and without it",
        findings.writes.len() == 4 && findings.writes.iter().all(|checked| checked.writes > 0),
    );
    expect_of_updates(&mut section, findings);
    section.remarks.extend(disk(findings));
    section.remarks.extend(wait(findings));
    section.remarks.extend(members(findings, System::Etcd, Setting::Three));
    section.remarks.extend(members(findings, System::Zookeeper, Setting::Five));
    section.remarks.extend(["memory", "redb"].into_iter().filter_map(|store| check(findings, store)));
    section.remarks.extend(statement(findings));
    section.remarks.extend(transaction(findings));
    section
}

/// Adds the expectation of the updates in PostgreSQL.
fn expect_of_updates(section: &mut Section, findings: &Findings) {
    let has_all = |updated: &Updated| {
        let is_checked = (updated.by, updated.fence) == (By::Transaction, Fencing::On);
        updated.updates > 0 && updated.audited == if is_checked { updated.updates } else { 0 }
    };
    section.expect(
        "every update of a row with a new token was committed, and `fence::check` left an audit row for each",
        findings.updates.len() == 4 && findings.updates.iter().all(has_all),
    );
}

impl Findings {
    fn of(&self, system: System, setting: Setting) -> Option<&Measured> {
        self.locks.iter().find(|measured| (measured.system, measured.setting) == (system, setting))
    }

    fn write(&self, store: &str, fence: Fencing) -> Option<&Checked> {
        self.writes.iter().find(|checked| checked.store == store && checked.fence == fence)
    }

    fn update(&self, by: By, fence: Fencing) -> Option<&Updated> {
        self.updates.iter().find(|updated| (updated.by, updated.fence) == (by, fence))
    }
}

fn disk(findings: &Findings) -> Option<String> {
    let of = |setting| findings.of(System::Redis, setting);
    let (none, second, each) = (of(Setting::NoDisk)?, of(Setting::EverySecond)?, of(Setting::EachWrite)?);
    Some(format!(
        "An acquire on Redis takes {:.2} ms without a disk, {:.2} ms with an fsync each second, and {:.2} ms \
         with one before each answer; of the acquires of many tasks it serves {:.0} %, and {:.0} %.",
        none.p50_ms,
        second.p50_ms,
        each.p50_ms,
        100.0 * second.together_per_second / none.together_per_second,
        100.0 * each.together_per_second / none.together_per_second,
    ))
}

fn wait(findings: &Findings) -> Option<String> {
    let of = |setting| findings.of(System::Redis, setting);
    let (replica, wait) = (of(Setting::Replica)?, of(Setting::Wait)?);
    Some(format!(
        "A plain SET on a Redis with a replica takes {:.2} ms, and {:.2} ms with a WAIT for it; alone, a client \
         makes {:.0} % as many a second.",
        replica.p50_ms,
        wait.p50_ms,
        100.0 * wait.alone_per_second / replica.alone_per_second,
    ))
}

fn members(findings: &Findings, system: System, most: Setting) -> Option<String> {
    let (one, most) = (findings.of(system, Setting::One)?, findings.of(system, most)?);
    let members: &str = most.setting.into();
    Some(format!(
        "On {} {members} answer an acquire after {:.2} times as long as one, and serve {:.0} % of what one \
         serves to many tasks. All are on this machine and its disk: between machines the network comes \
         on top, and the disks are not shared.",
        system.as_str(),
        most.p50_ms / one.p50_ms,
        100.0 * most.together_per_second / one.together_per_second,
    ))
}

fn check(findings: &Findings, store: &str) -> Option<String> {
    let (off, on) = (findings.write(store, Fencing::Off)?, findings.write(store, Fencing::On)?);
    let where_to = if store == "memory" { "in memory" } else { "in a file on the disk" };
    Some(format!(
        "A resource that keeps its values {where_to} took {:.3} ms for a write without the check of the \
         token, and {:.3} ms with it: {:.2} times as long.",
        off.p50_ms,
        on.p50_ms,
        on.p50_ms / off.p50_ms
    ))
}

fn statement(findings: &Findings) -> Option<String> {
    let of = |fence| findings.update(By::Statement, fence);
    let (off, on) = (of(Fencing::Off)?, of(Fencing::On)?);
    Some(format!(
        "An update of a row in PostgreSQL by one statement took {:.3} ms, and {:.3} ms with a condition that \
         compares the token with a column of the row: {:.2} times as long.",
        off.p50_ms,
        on.p50_ms,
        on.p50_ms / off.p50_ms,
    ))
}

fn transaction(findings: &Findings) -> Option<String> {
    let of = |fence| findings.update(By::Transaction, fence);
    let (off, on) = (of(Fencing::Off)?, of(Fencing::On)?);
    Some(format!(
        "A transaction of this update took {:.3} ms, and {:.3} ms with `fence::check` before it, which takes \
         one round trip more and writes the row of the fence and an audit row: {:.2} times as long.",
        off.p50_ms,
        on.p50_ms,
        on.p50_ms / off.p50_ms,
    ))
}

fn locks_table(configuration: &Configuration, findings: &Findings) -> Table {
    let caption = format!(
        "Acquires of free locks: latency of one task, and how many a second, each with its release, one task \
         makes and {} tasks of one client make together, each with a key of its own. In the two rows with a \
         replica each task has a connection of its own.",
        configuration.tasks
    );
    let mut table =
        Table::new(caption, &["system", "before they answer", "p50 ms", "p99 ms", "alone/s", "together/s"]);
    for measured in &findings.locks {
        let setting: &str = measured.setting.into();
        table.row([
            measured.system.as_str().to_owned(),
            setting.to_owned(),
            format!("{:.2}", measured.p50_ms),
            format!("{:.2}", measured.p99_ms),
            format!("{:.0}", measured.alone_per_second),
            format!("{:.0}", measured.together_per_second),
        ]);
    }
    table
}

fn writes_table(configuration: &Configuration, findings: &Findings) -> Table {
    let caption = format!(
        "Writes of one client to a resource, {} times {} in turns.",
        configuration.rounds, configuration.writes
    );
    let mut table = Table::new(caption, &["store", "token check", "writes", "p50 ms", "p99 ms"]);
    for checked in &findings.writes {
        table.row([
            checked.store.clone(),
            checked.fence.as_str().to_owned(),
            checked.writes.to_string(),
            format!("{:.3}", checked.p50_ms),
            format!("{:.3}", checked.p99_ms),
        ]);
    }
    table
}

fn updates_table(configuration: &Configuration, findings: &Findings) -> Table {
    let caption = format!(
        "Updates of a row in PostgreSQL on one connection, each with its commit, {} times {} in turns; and how \
         many times as long they took as those without the check.",
        configuration.rounds, configuration.writes
    );
    let headings = ["by", "token check", "updates", "p50 ms", "p99 ms", "p50 ratio", "p99 ratio"];
    let mut table = Table::new(caption, &headings);
    for updated in &findings.updates {
        let off = findings.update(updated.by, Fencing::Off).filter(|_| updated.fence == Fencing::On);
        let ratio = |of: fn(&Updated) -> f64| {
            off.map_or_else(|| "–".to_owned(), |off| format!("{:.2}", of(updated) / of(off)))
        };
        let by: &str = updated.by.into();
        table.row([
            by.to_owned(),
            updated.fence.as_str().to_owned(),
            updated.updates.to_string(),
            format!("{:.3}", updated.p50_ms),
            format!("{:.3}", updated.p99_ms),
            ratio(|updated| updated.p50_ms),
            ratio(|updated| updated.p99_ms),
        ]);
    }
    table
}
