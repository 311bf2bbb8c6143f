//! The section of earlier results, of one run a point.

use super::section::figure;
use super::{Configuration, Findings, Point, Way, Work};
use crate::report::{Section, Table};

/// By what factor a figure must differ to count as better: runs of the same load differ by some hundredths.
const CLEARLY: f64 = 1.05;

/// Makes the section.
pub(super) fn section(configuration: &Configuration, findings: &Findings) -> Section {
    let works = &configuration.works;
    let mut section = Section {
        tables: works.iter().map(|work| table(configuration, findings, *work)).collect(),
        figures: [false, true].into_iter().filter_map(|kind| figure(configuration, findings, kind)).collect(),
        ..Section::default()
    };
    let [fewest, most] = [configuration.fewest(), configuration.most()];
    let all = |way, holds: &dyn Fn(&Point) -> bool| {
        works.iter().all(|work| {
            let mut points = configuration.contenders.iter().map(|count| findings.of(way, *work, *count));
            points.all(|point| point.is_some_and(holds))
        })
    };
    let is_served = |point: &Point| point.updates_per_second > 0.0;
    section.expect(
        "every number of contenders was served in both ways",
        all(Way::Conditional, &is_served) && all(Way::Lock, &is_served),
    );
    section.expect(
        format!("with {most} contenders conditional updates did more work in vain than with {fewest}"),
        works.iter().all(|work| {
            let in_vain = |count| findings.of(Way::Conditional, *work, count).map(|point| point.in_vain);
            in_vain(most).zip(in_vain(fewest)).is_some_and(|(most, fewest)| most > fewest)
        }),
    );
    section.expect("no work under the lock was in vain", all(Way::Lock, &|point| point.in_vain == 0.0));
    if works.iter().any(|work| work.computes) {
        section.expect(
            format!("where the work computes, the lock serves more with {most} contenders"),
            works.iter().filter(|work| work.computes).all(|work| {
                let points = findings.both(*work, most);
                points.is_some_and(|(update, lock)| serves_more(lock, update))
            }),
        );
    }
    for &work in works {
        section.remarks.push(crossing(configuration, findings, work));
    }
    section.remarks.extend(unserved(configuration, findings));
    section
}

impl Configuration {
    fn most(&self) -> u64 {
        self.contenders.iter().max().copied().unwrap_or_default()
    }
}

fn serves_more(one: &Point, other: &Point) -> bool {
    one.updates_per_second > CLEARLY * other.updates_per_second
}

fn serves_sooner(one: &Point, other: &Point) -> bool {
    one.p99_ms * CLEARLY < other.p99_ms
}

/// Says from which number of contenders on the lock serves more, and serves the slowest sooner.
fn crossing(configuration: &Configuration, findings: &Findings, work: Work) -> String {
    let mut counts = configuration.contenders.clone();
    counts.sort_unstable();
    // The lowest number from which on it is so with every higher one.
    let from = |is_better: &dyn Fn(&Point, &Point) -> bool| {
        let is_so =
            |count: &&u64| findings.both(work, **count).is_some_and(|(update, lock)| is_better(lock, update));
        match counts.iter().rev().take_while(is_so).last() {
            Some(count) if *count == configuration.fewest() => "with any number of contenders".to_owned(),
            Some(count) => format!("from {count} contenders on"),
            None => format!("with no number of contenders up to {}", configuration.most()),
        }
    };
    let mut text = format!(
        "With {work}, an update under the lock serves more {}, and its slowest hundredth sooner {}.",
        from(&serves_more),
        from(&serves_sooner),
    );
    if let Some((update, lock)) = findings.both(work, configuration.fewest()) {
        text += &format!(
            " Alone, an update takes {:.2} ms with the lock, and {:.2} ms without.",
            lock.p50_ms, update.p50_ms
        );
    }
    if let Some((update, _)) = findings.both(work, configuration.most()) {
        let (in_vain, tries) = (update.in_vain, update.in_vain + 1.0);
        text += &format!(
            " With {} contenders, {in_vain:.1} of {tries:.1} conditional tries were in vain.",
            configuration.most()
        );
    }
    text
}

/// Explains the updates that took as long as the run, if there are any.
fn unserved(configuration: &Configuration, findings: &Findings) -> Option<String> {
    let all_ms = configuration.lasts.0.as_secs_f64() * 1e3;
    findings.points.iter().any(|point| point.p99_ms > 0.9 * all_ms).then(|| {
        format!(
            "A p99 of {} is that of contenders that were not served at all: in both ways the one that has just \
             succeeded is the first to try again, and neither keeps an order of arrival.",
            configuration.lasts
        )
    })
}

fn table(configuration: &Configuration, findings: &Findings, work: Work) -> Table {
    let caption = format!(
        "Updates of one row that need {work}, by conditional updates and under a lock: how many succeeded a \
         second, from their begin to their success (p50 and p99, in ms), and works in vain for each success of \
         a conditional update."
    );
    let mut table =
        Table::new(caption, &["contenders", "cond./s", "p50", "p99", "in vain", "lock/s", "p50", "p99"]);
    for &contenders in &configuration.contenders {
        let Some((update, lock)) = findings.both(work, contenders) else { continue };
        table.row([
            contenders.to_string(),
            format!("{:.1}", update.updates_per_second),
            format!("{:.1}", update.p50_ms),
            format!("{:.1}", update.p99_ms),
            format!("{:.1}", update.in_vain),
            format!("{:.1}", lock.updates_per_second),
            format!("{:.1}", lock.p50_ms),
            format!("{:.1}", lock.p99_ms),
        ]);
    }
    table
}
