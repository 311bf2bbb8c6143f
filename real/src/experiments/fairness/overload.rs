//! The section of earlier results, of a load that exceeded the capacity of the lock.

use super::section::{failed, order_figures};
use super::{Arm, Findings};
use crate::report::{Section, Table};

/// The accepted overtakings, in a thousand pairs: even with a queue on the server, requests may overtake each
/// other in the network.
const ON_THE_WAY_PER_MILLE: f64 = 10.0;

pub(super) fn section(findings: &Findings) -> Section {
    let mut section = Section {
        tables: vec![table(findings)],
        figures: order_figures(findings).collect(),
        ..Section::default()
    };
    let queues = || findings.arms.iter().filter(|arm| arm.has_queue());
    section.expect(
        "etcd and ZooKeeper served in the order of arrival, except requests that overtook each other on \
         the way to the server",
        queues().all(|arm| inverted_per_mille(arm) <= ON_THE_WAY_PER_MILLE),
    );
    let polled = || findings.arms.iter().filter(|arm| arm.polls());
    section.expect(
        "polling waiters were served out of order",
        polled().all(|arm| inverted_per_mille(arm) > ON_THE_WAY_PER_MILLE),
    );
    section.expect("there was always a queue", {
        !findings.arms.is_empty() && findings.arms.iter().all(|arm| arm.served > 1 && arm.unserved > 0)
    });
    section.remarks.extend(findings.arms.iter().map(remark));
    section.remarks.extend(failed(findings));
    section
}

/// Returns the number of pairs served in the wrong order, in a thousand.
fn inverted_per_mille(arm: &Arm) -> f64 {
    let pairs = arm.served as f64 * (arm.served as f64 - 1.0) / 2.0;
    1e3 * arm.inversions as f64 / pairs.max(1.0)
}

fn remark(arm: &Arm) -> String {
    format!(
        "{}: {:.1} of a thousand pairs were served in the wrong order, and one waiter saw {} later ones \
         served before it. Half of those served waited {:.0} ms, one in a hundred {:.0} ms or more; the \
         longest wait, served or not, was {:.0} ms.",
        arm.name(),
        inverted_per_mille(arm),
        arm.overtaken_max,
        arm.wait_p50_ms,
        arm.wait_p99_ms,
        arm.wait_all_max_ms,
    )
}

fn table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "Waits in ms, from the time at which an attempt was due, over those served.",
        &["system", "served", "failed", "inversions", "overtaken by", "p50", "p99", "max"],
    );
    for arm in &findings.arms {
        table.row([
            arm.name(),
            arm.served.to_string(),
            arm.failed.to_string(),
            arm.inversions.to_string(),
            arm.overtaken_max.to_string(),
            format!("{:.0}", arm.wait_p50_ms),
            format!("{:.0}", arm.wait_p99_ms),
            format!("{:.0}", arm.wait_max_ms),
        ]);
    }
    table
}
