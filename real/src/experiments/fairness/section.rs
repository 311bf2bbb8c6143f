//! The section of the report.

use super::{Arm, Configuration, Findings, Waits};
use crate::lab::load::failures;
use crate::report::{Axis, Figure, Line, Scale, Section, Table};

/// The load is below the capacity if at most this share of the attempts was not served by its end.
const UNSERVED: f64 = 0.01;

/// Makes the section.
pub(super) fn section(configuration: &Configuration, findings: &Findings) -> Section {
    let arms = &findings.arms;
    let mut section = Section {
        tables: vec![table(configuration, arms)],
        figures: order_figures(findings).collect(),
        ..Section::default()
    };
    let is_served = |arm: &Arm| arm.unserved as f64 <= UNSERVED * arm.all.offered as f64 && arm.failed == 0;
    let are_served = !arms.is_empty() && arms.iter().all(is_served);
    section.expect(
        "every system served the load: of a hundred attempts at most one was not served by its end",
        are_served,
    );
    // tokio's timer counts whole milliseconds: attempts of the same one are sent together.
    let together = configuration.rate;
    let per_thousand = |polls: bool| {
        let arms = arms.iter().filter(move |arm| if polls { arm.polls() } else { arm.has_queue() });
        arms.map(Arm::overtakings_per_thousand)
    };
    section.expect(
        format!(
            "etcd and ZooKeeper served in the order of arrival: at most {together:.0} overtakings in a \
             thousand grants, as many as there are attempts due in the same millisecond as the one before"
        ),
        per_thousand(false).all(|overtakings| overtakings <= together),
    );
    section.expect(
        "polling waiters were served out of order: they overtook more often",
        per_thousand(true).all(|overtakings| overtakings > together),
    );
    if are_served {
        section.remarks.push(format!(
            "{} attempts a second at random times, and work of {}: the lock is free for a part of the time, \
             and the queue does not grow. So the waits are a property of the lock under this load, and not \
             of the duration of the run.",
            configuration.rate, configuration.work
        ));
    }
    section.remarks.extend(arms.iter().map(remark));
    section.remarks.extend(failed(findings));
    section
}

fn remark(arm: &Arm) -> String {
    let all = &arm.all;
    let rarest =
        all.rarest().map_or_else(String::new, |ms| format!(", one in a thousand {ms:.0} ms or more"));
    format!(
        "{}: {:.0} overtakings in a thousand grants, and one waiter saw {} later ones served before it. Half \
         of the attempts waited {:.1} ms or more, one in a hundred {:.0} ms or more{rarest}; the longest \
         wait was {:.0} ms.",
        arm.name(),
        arm.overtakings_per_thousand(),
        arm.overtaken_max,
        all.p50_ms,
        all.p99_ms,
        arm.wait_all_max_ms,
    )
}

impl Waits {
    /// Returns the wait that one attempt in a thousand exceeds, if there were as many.
    fn rarest(&self) -> Option<f64> {
        (self.offered >= 1000).then_some(self.p999_ms)
    }
}

fn table(configuration: &Configuration, arms: &[Arm]) -> Table {
    let caption = format!(
        "{} attempts a second for {}: overtakings in a thousand grants, the most of one waiter, and the \
         waits of all attempts in ms, from the time at which each was due. Those not served by the end count \
         with the time until then.",
        configuration.rate, configuration.lasts
    );
    let headings = ["system", "offered", "unserved", "per 1000", "of one", "p50", "p99", "p99.9", "max"];
    let mut table = Table::new(caption, &headings);
    for arm in arms {
        let all = &arm.all;
        table.row([
            arm.name(),
            all.offered.to_string(),
            (arm.unserved + arm.failed).to_string(),
            format!("{:.0}", arm.overtakings_per_thousand()),
            arm.overtaken_max.to_string(),
            format!("{:.1}", all.p50_ms),
            format!("{:.0}", all.p99_ms),
            all.rarest().map_or_else(|| "–".to_owned(), |ms| format!("{ms:.0}")),
            format!("{:.0}", arm.wait_all_max_ms),
        ]);
    }
    table
}

/// Describes the failed attempts of each arm.
fn failed(findings: &Findings) -> impl Iterator<Item = String> {
    findings.arms.iter().filter_map(|arm| failures(&arm.name(), &arm.failures))
}

/// Returns a figure for each arm: in one frame their points would lie on each other.
fn order_figures(findings: &Findings) -> impl Iterator<Item = Figure> {
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    findings.arms.iter().map(move |arm| {
        let points =
            arm.order.iter().zip(1_u32..).map(|(arrival, grant)| (f64::from(grant), *arrival as f64 + 1.0));
        Figure {
            name: format!("experiment-5-order-{}", arm.name().replace(", ", "-")),
            caption: format!(
                "{}: order of arrival by order of grant. A queue is a straight line; a point above it has \
                 overtaken those below.",
                arm.name()
            ),
            x: axis("order of grant"),
            y: axis("order of arrival"),
            lines: vec![Line { name: arm.name(), points: points.collect() }],
        }
    })
}
