//! The section of experiment 6 in the report.

use std::time::Duration;

use history::{Span, VerdictKind};
use resource::Fencing;

use super::{Configuration, Findings, Pause};
use crate::lab::statistics::{median, median_interval, most};
use crate::lab::tally::{Tally, percent_interval};
use crate::report::{Axis, Figure, Line, Scale, Section, Table};
use crate::systems::System;

pub(super) fn section(configuration: &Configuration, findings: &Findings) -> Section {
    let mut section = Section {
        tables: vec![blocked_table(configuration, findings), pause_table(configuration, findings)],
        figures: vec![figure(configuration, findings)],
        ..Section::default()
    };
    let kills = &findings.kills;
    section.expect(
        "every waiter was served after the holder's death",
        !kills.is_empty() && kills.iter().all(|kill| kill.blocked_ms.is_some()),
    );
    let (shortest, longest) = ends(configuration);
    section.expect(
        format!(
            "on every system the lock stayed taken for longer with a TTL of {longest} than with \
             {shortest}"
        ),
        configuration.systems.iter().all(|&system| {
            let blocked = |ttl| median(&findings.blocked(system, ttl));
            blocked(longest).zip(blocked(shortest)).is_some_and(|(long, short)| long > short)
        }),
    );
    section.expect(
        "killed holders left no violation and no overlap",
        kills.iter().all(|kill| kill.outcome.verdicts.is_empty()),
    );
    expect_of_pauses(&mut section, configuration, findings);
    section.remarks.extend(whole_seconds(configuration, findings));
    section
}

fn expect_of_pauses(section: &mut Section, configuration: &Configuration, findings: &Findings) {
    let pauses = &findings.pauses;
    let stale = |fence| {
        let of = pauses.iter().filter(move |pause| pause.fence == fence);
        of.map(|pause| pause.outcome.count(VerdictKind::StaleWrite)).sum::<usize>()
    };
    let safe = pauses.iter().filter(|pause| pause.fence == Fencing::On).all(|pause| pause.outcome.is_safe());
    let pause = configuration.pause;
    section.expect(
        format!(
            "with fencing, whatever the TTL, no holder that had paused for {pause} overwrote its \
             successor's value"
        ),
        !pauses.is_empty() && safe && stale(Fencing::On) == 0,
    );
    let short = configuration.ttls.iter().any(|ttl| *ttl < pause);
    section.expect(
        "without fencing it did where the TTL was shorter than the pause: safety then depends on the TTL",
        !short || stale(Fencing::Off) > 0,
    );
    section.remarks.push(overtaken(configuration, findings));
}

/// Says how many of the holders that paused were overtaken, and what became of their writes.
fn overtaken(configuration: &Configuration, findings: &Findings) -> String {
    let (pause, all) = (configuration.pause, findings.tally(|_| true));
    let of = |fence| findings.tally(|pause| pause.fence == fence);
    let (off, on) = (of(Fencing::Off), of(Fencing::On));
    let by_ttl = configuration.ttls.iter().map(|&ttl| {
        let Tally { runs, overlaps, .. } = findings.tally(|pause| pause.ttl == ttl);
        format!("with a TTL of {ttl} {overlaps} of {runs}")
    });
    format!(
        "Of {} holders that paused for {pause}, {} were overtaken by the next one: {}. Of the {} with fencing, \
         {} had their late write refused and {} had it taken; of the {} without it, {} had it taken.",
        all.runs,
        all.overlaps,
        by_ttl.collect::<Vec<_>>().join(", "),
        on.overlaps,
        on.refused,
        on.stale_writes,
        off.overlaps,
        off.stale_writes,
    )
}

/// Returns the shortest and the longest TTL.
fn ends(configuration: &Configuration) -> (Span, Span) {
    let ttls = || configuration.ttls.iter().copied();
    let none = Span(Duration::ZERO);
    (ttls().min().unwrap_or(none), ttls().max().unwrap_or(none))
}

impl Findings {
    fn blocked(&self, system: System, ttl: Span) -> Vec<f64> {
        let of = self.kills.iter().filter(|kill| kill.system == system && kill.ttl == ttl);
        of.filter_map(|kill| kill.blocked_ms).collect()
    }

    /// Counts the runs with a pause that `is` accepts.
    fn tally(&self, is: impl Fn(&Pause) -> bool) -> Tally {
        Tally::of(self.pauses.iter().filter(|pause| is(pause)).map(|pause| &pause.outcome))
    }
}

/// Explains that etcd's sessions last whole seconds: a shorter TTL does not free the lock earlier.
fn whole_seconds(configuration: &Configuration, findings: &Findings) -> Option<String> {
    let (ttl, _) = ends(configuration);
    let session_ms = ttl.0.as_secs_f64().ceil() * 1e3;
    let blocked_ms = median(&findings.blocked(System::Etcd, ttl))?;
    (session_ms > ttl.0.as_secs_f64() * 1e3 && blocked_ms > 0.9 * session_ms).then(|| {
        format!(
            "On etcd a TTL of {ttl} blocked the lock for {blocked_ms:.0} ms: a lock is tied to a session \
             there, and a session lasts whole seconds."
        )
    })
}

fn blocked_table(configuration: &Configuration, findings: &Findings) -> Table {
    let mut table = Table::new(
        "Milliseconds from the death of the holder, killed right after its grant, to the waiter's grant, with \
         fencing on. The median of all possible runs is between the two times with a confidence of 95 %.",
        &["system", "TTL", "killed", "served", "median", "95 % between", "longest", "violations"],
    );
    for &system in &configuration.systems {
        for &ttl in &configuration.ttls {
            let blocked = findings.blocked(system, ttl);
            let kills = findings.kills.iter().filter(|kill| kill.system == system && kill.ttl == ttl);
            let (killed, violations) = kills.fold((0, 0), |(killed, violations), kill| {
                (killed + 1, violations + usize::from(!kill.outcome.is_safe()))
            });
            let millis = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.0}"));
            table.row([
                system.as_str().to_owned(),
                ttl.to_string(),
                killed.to_string(),
                blocked.len().to_string(),
                millis(median(&blocked)),
                median_interval(&blocked)
                    .map_or_else(|| "–".to_owned(), |(low, high)| format!("{low:.0} to {high:.0}")),
                millis(most(&blocked)),
                violations.to_string(),
            ]);
        }
    }
    table
}

fn pause_table(configuration: &Configuration, findings: &Findings) -> Table {
    let caption = format!(
        "The price of a short TTL: a holder that pauses for {} and then writes. Runs with two holders at once \
         (and the share of all possible runs in %: the 95 % interval), with a stale write taken, and with one \
         refused.",
        configuration.pause
    );
    let headings = ["system", "TTL", "fence", "runs", "two", "95 %", "stale", "refused"];
    let mut table = Table::new(caption, &headings);
    for &system in &configuration.systems {
        for (ttl, fence) in configuration.ttls.iter().flat_map(|&ttl| Fencing::BOTH.map(|fence| (ttl, fence)))
        {
            let Tally { runs, overlaps, stale_writes, refused, .. } =
                findings.tally(|pause| pause.system == system && pause.ttl == ttl && pause.fence == fence);
            table.row([
                system.as_str().to_owned(),
                ttl.to_string(),
                fence.as_str().to_owned(),
                runs.to_string(),
                overlaps.to_string(),
                percent_interval(overlaps, runs),
                stale_writes.to_string(),
                refused.to_string(),
            ]);
        }
    }
    table
}

fn figure(configuration: &Configuration, findings: &Findings) -> Figure {
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Log };
    let line = |&system: &System| {
        let point = |&ttl: &Span| Some((ttl.0.as_secs_f64(), median(&findings.blocked(system, ttl))? / 1e3));
        let points = configuration.ttls.iter().filter_map(point).collect();
        Line { name: system.as_str().to_owned(), points }
    };
    Figure {
        name: "experiment-6-blocked".to_owned(),
        caption: "Time blocked after the death of the holder, median, by TTL.".to_owned(),
        x: axis("TTL in s"),
        y: axis("blocked for, in s"),
        lines: configuration.systems.iter().map(line).collect(),
    }
}
