//! The section of experiment 8 in the report.

use history::VerdictKind;
use resource::Fencing;

use super::{Cell, Configuration, Findings, LongWork, Paused, UnderWay};
use crate::lab::outcome::cell;
use crate::lab::tally::{Tally, percent_interval};
use crate::report::{Axis, Figure, Line, Scale, Section, Table};
use crate::systems::System;

pub(super) fn section(configuration: &Configuration, findings: &Findings) -> Section {
    let mut section = Section {
        tables: vec![
            pause_table(findings),
            under_way_table(configuration, findings),
            long_table(configuration, findings),
        ],
        figures: vec![figure(configuration, findings)],
        ..Section::default()
    };
    let (again, renewed) = (findings.overlaps(false), findings.overlaps(true));
    section.expect(
        format!(
            "renewing narrows the window: two holders at once in {renewed} of {} runs, and in {again} of {} without it",
            findings.runs(true),
            findings.runs(false)
        ),
        renewed < again,
    );
    let under_way = |fence| findings.under_way.iter().filter(move |run| run.fence == fence);
    section.expect(
        "it does not close it: holders that renewed were overtaken, too, and a write of theirs that was on \
         its way was taken after a newer one, fencing off",
        renewed > 0
            && under_way(Fencing::Off).any(|run| run.renewing)
            && under_way(Fencing::Off).all(|run| run.outcome.has(VerdictKind::StaleWrite)),
    );
    section.remarks.push(after_waking(findings.sum(true, Fencing::Off, |tally| tally.stale_writes), renewed));
    let on = |of| findings.sum(true, Fencing::On, of) + findings.sum(false, Fencing::On, of);
    section.expect(
        "fencing closes it: no stale write was taken, with renewal or without, and nothing else was violated",
        on(|tally| tally.runs) > 0
            && on(|tally| tally.stale_writes + tally.other_violations) == 0
            && under_way(Fencing::On).count() > 0
            && under_way(Fencing::On).all(|run| run.outcome.is_safe() && !run.outcome.refused.is_empty()),
    );
    section.remarks.extend(order(findings));
    expect_of_long_work(&mut section, findings);
    section
}

fn expect_of_long_work(section: &mut Section, findings: &Findings) {
    let work = |renewing| findings.long_work.iter().filter(move |work| work.renewing == renewing);
    section.expect(
        "work longer than the TTL was written at every grant by the holder that renewed",
        work(true).count() > 0 && work(true).all(|work| work.written == work.grants && work.expired == 0),
    );
    section.expect(
        "and at no grant by the holder that acquired again",
        work(false).count() > 0 && work(false).all(|work| work.written == 0 && work.expired == work.grants),
    );
}

impl Findings {
    /// Sums a count over all pauses, for one kind of holder in one arm.
    fn sum(&self, renewing: bool, fence: Fencing, of: fn(&Tally) -> u32) -> u32 {
        let is_one = |paused: &&Paused| paused.cell.renewing == renewing && paused.cell.fence == fence;
        self.pauses.iter().filter(is_one).map(|paused| of(&paused.tally)).sum()
    }

    /// Returns the number of runs, for one kind of holder.
    fn runs(&self, renewing: bool) -> u32 {
        Fencing::BOTH.map(|fence| self.sum(renewing, fence, |tally| tally.runs)).iter().sum()
    }

    /// Returns the number of runs with two holders at once, for one kind of holder.
    fn overlaps(&self, renewing: bool) -> u32 {
        Fencing::BOTH.map(|fence| self.sum(renewing, fence, |tally| tally.overlaps)).iter().sum()
    }
}

/// Describes the writes of holders that renewed and paused for too long.
fn after_waking(stale: u32, overtaken: u32) -> String {
    match (stale, overtaken) {
        (_, 0) => "No holder that renewed was overtaken.".to_owned(),
        (0, _) => "None of the holders that renewed and overslept wrote after it woke: the watchdog reads \
             the clock before the work goes on, and drops the work. It can't stop a write that has already \
             been sent."
            .to_owned(),
        (stale, _) => format!(
            "Of the holders that renewed and paused for too long, {stale} wrote after the \
             pause, with fencing off."
        ),
    }
}

/// Shows the order of the writes in the first run in which the late one was taken.
fn order(findings: &Findings) -> Option<String> {
    let run = findings.under_way.iter().find(|run| run.outcome.has(VerdictKind::StaleWrite))?;
    Some(format!(
        "A write that is in transit for so long arrives after the next holder's: without fencing, the resource \
         took {} in the first such run on {}, each write with its worker and its token.",
        cell(&run.outcome.accepted),
        run.system.as_str(),
    ))
}

fn name(renewing: bool) -> &'static str {
    if renewing { "renewing" } else { "acquiring again" }
}

fn pause_table(findings: &Findings) -> Table {
    let mut table = Table::new(
        "A holder pauses (in TTLs) after a part of a lease's work and then writes; each row has one run for each \
         phase. Runs with two holders at once (and the share of all possible runs in %: the 95 % interval, as if the \
         phases were drawn at random), with a stale write taken, and with one refused.",
        &["system", "holder", "pause", "fence", "runs", "two", "95 %", "stale", "refused"],
    );
    for Paused { cell, tally } in &findings.pauses {
        let Tally { runs, overlaps, stale_writes, refused, .. } = *tally;
        table.row([
            cell.system.as_str().to_owned(),
            name(cell.renewing).to_owned(),
            cell.pause.to_string(),
            cell.fence.as_str().to_owned(),
            runs.to_string(),
            overlaps.to_string(),
            percent_interval(overlaps, runs),
            stale_writes.to_string(),
            refused.to_string(),
        ]);
    }
    table
}

fn under_way_table(configuration: &Configuration, findings: &Findings) -> Table {
    let mut table = Table::new(
        "A write is in transit when its holder's host is cut off, and arrives after the next holder is done. \
         Runs in which the resource took it (and the share of all possible runs in %: the 95 % interval), and \
         in which it refused it.",
        &["system", "holder", "fence", "runs", "taken", "95 %", "refused"],
    );
    for &system in &configuration.systems {
        for (renewing, fence) in
            [false, true].into_iter().flat_map(|renewing| Fencing::BOTH.map(|fence| (renewing, fence)))
        {
            let is_one = |run: &&UnderWay| (run.system, run.renewing, run.fence) == (system, renewing, fence);
            let runs = findings.under_way.iter().filter(is_one);
            let Tally { runs, stale_writes, refused, .. } = Tally::of(runs.map(|run| &run.outcome));
            table.row([
                system.as_str().to_owned(),
                name(renewing).to_owned(),
                fence.as_str().to_owned(),
                runs.to_string(),
                stale_writes.to_string(),
                percent_interval(stale_writes, runs),
                refused.to_string(),
            ]);
        }
    }
    table
}

fn long_table(configuration: &Configuration, findings: &Findings) -> Table {
    let Configuration { long_work, attempts, holders, .. } = configuration;
    let mut table = Table::new(
        format!(
            "Work of {long_work} TTLs, begun {attempts} times by each of {holders} holders, each with its own \
             lock. Grants at which it was written (and the share of all possible grants in %: the 95 % \
             interval), and at which it was done for nothing."
        ),
        &["system", "holder", "grants", "written", "95 %", "for nothing"],
    );
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    for LongWork { system, renewing, grants, written, expired } in &findings.long_work {
        table.row([
            system.as_str().to_owned(),
            name(*renewing).to_owned(),
            grants.to_string(),
            written.to_string(),
            percent_interval(count(*written), count(*grants)),
            expired.to_string(),
        ]);
    }
    table
}

fn figure(configuration: &Configuration, findings: &Findings) -> Figure {
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    let share = |system, renewing, pause: f64| {
        let cells = findings.pauses.iter().filter(|paused| {
            let Cell { system: of, renewing: is, pause: after, .. } = paused.cell;
            (of, is) == (system, renewing) && after.total_cmp(&pause).is_eq()
        });
        let (overlaps, runs) = cells.fold((0, 0), |(overlaps, runs), paused| {
            (overlaps + paused.tally.overlaps, runs + paused.tally.runs)
        });
        f64::from(overlaps) / f64::from(runs.max(1))
    };
    let line = |system: System, renewing| Line {
        name: format!("{}, {}", system.as_str(), name(renewing)),
        points: configuration.pauses.iter().map(|&pause| (pause, share(system, renewing, pause))).collect(),
    };
    Figure {
        name: "experiment-8-window".to_owned(),
        caption: "Share of runs with two holders at once, by the length of the pause: the window narrows."
            .to_owned(),
        x: axis("pause in TTLs"),
        y: axis("share of runs with two holders"),
        lines: configuration
            .systems
            .iter()
            .flat_map(|&system| [false, true].map(|renewing| line(system, renewing)))
            .collect(),
    }
}
