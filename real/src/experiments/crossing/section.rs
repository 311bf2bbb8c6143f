//! The section of the report.

use super::{Configuration, Findings, Point, Way, Work};
use crate::report::{Axis, Figure, Line, Scale, Section, Table};

/// By what factor a figure must differ to count as better: runs of the same load differ by some hundredths.
const CLEARLY: f64 = 1.05;

/// Why work that waits has no crossing.
const WAITING: &str = "Work that waits takes no processor while it is done in vain. In either way the row \
                       changes once in the time of the work, and the lock adds its own calls to each change: \
                       the two can cross only where the tries in vain, each a read and a write, take the \
                       processors that the calls need.";

/// Makes the section.
pub(super) fn section(configuration: &Configuration, findings: &Findings) -> Section {
    let works = &configuration.works;
    let tables = works.iter().flat_map(|work| {
        [throughput_table(configuration, findings, *work), waits_table(configuration, findings, *work)]
    });
    let mut section = Section {
        tables: tables.collect(),
        figures: [false, true].into_iter().filter_map(|kind| figure(configuration, findings, kind)).collect(),
        ..Section::default()
    };
    expect(&mut section, configuration, findings);
    for &work in works {
        section.remarks.push(crossing(configuration, findings, work));
    }
    section.remarks.extend(why(configuration, findings));
    section.remarks.extend(unserved(configuration, findings));
    section
}

fn expect(section: &mut Section, configuration: &Configuration, findings: &Findings) {
    let works = &configuration.works;
    let all = |way, holds: &dyn Fn(&Point) -> bool| {
        works.iter().all(|work| {
            let counts = configuration.counts(*work);
            counts.into_iter().all(|count| findings.of(way, *work, count).is_some_and(holds))
        })
    };
    let is_served = |point: &Point| point.updates_per_second > 0.0;
    section.expect(
        "every number of contenders was served in both ways",
        all(Way::Conditional, &is_served) && all(Way::Lock, &is_served),
    );
    section.expect(
        "with the most contenders conditional updates did more work in vain than with the fewest",
        works.iter().all(|work| {
            let in_vain = |count| findings.of(Way::Conditional, *work, count).map(|point| point.in_vain);
            let [fewest, most] = [configuration.fewest(), configuration.most_of(*work)];
            in_vain(most).zip(in_vain(fewest)).is_some_and(|(most, fewest)| most > fewest)
        }),
    );
    let wastes_nothing =
        |point: &Point| point.in_vain == 0.0 && point.runs.iter().all(|run| run.in_vain == 0.0);
    section.expect("no work under the lock was in vain", all(Way::Lock, &wastes_nothing));
    if works.iter().any(|work| work.computes) {
        section.expect(
            "where the work computes, the lock serves more with the most contenders",
            works.iter().filter(|work| work.computes).all(|work| {
                let points = findings.both(*work, configuration.most_of(*work));
                points.is_some_and(|(update, lock)| serves_more(lock, update))
            }),
        );
    }
}

impl Configuration {
    fn most_of(&self, work: Work) -> u64 {
        self.counts(work).last().copied().unwrap_or_default()
    }

    /// Returns the lowest number of contenders from which on the lock serves more with every higher one.
    fn crossing(&self, findings: &Findings, work: Work) -> Option<u64> {
        let is_more =
            |count: &u64| findings.both(work, *count).is_some_and(|(update, lock)| serves_more(lock, update));
        self.counts(work).into_iter().rev().take_while(is_more).last()
    }
}

/// Returns whether one serves clearly more than the other, in each of its runs.
fn serves_more(one: &Point, other: &Point) -> bool {
    one.updates_per_second > CLEARLY * other.updates_per_second && one.range().0 > other.range().1
}

/// Says from which number of contenders on the lock serves more, and serves the slowest sooner.
fn crossing(configuration: &Configuration, findings: &Findings, work: Work) -> String {
    let most = configuration.most_of(work);
    let from = match configuration.crossing(findings, work) {
        Some(count) if count == configuration.fewest() => "with any number of contenders".to_owned(),
        Some(count) => format!("from {count} contenders on"),
        None => format!("with no number of contenders up to {most}"),
    };
    let mut text = format!("With {work}, an update under the lock serves more {from}.");
    text += &slowest(configuration, findings, work);
    if let Some((update, lock)) = findings.both(work, configuration.fewest()) {
        text += &format!(
            " Alone, an update takes {:.2} ms with the lock, and {:.2} ms without.",
            lock.p50_ms, update.p50_ms
        );
    }
    if let Some((update, _)) = findings.both(work, most) {
        let (in_vain, tries) = (update.in_vain, update.in_vain + 1.0);
        text += &format!(
            " With {most} contenders, {in_vain:.1} of {tries:.1} conditional tries were in vain, {:.0} a \
             second.",
            in_vain * update.updates_per_second
        );
    }
    text
}

/// Compares the p99 of both ways, where it is known.
fn slowest(configuration: &Configuration, findings: &Findings, work: Work) -> String {
    let known = |count: u64| {
        let (update, lock) = findings.both(work, count)?;
        Some((count, update.p99_of_served_ms()?, lock.p99_of_served_ms()?))
    };
    let known: Vec<_> = configuration.counts(work).into_iter().filter_map(known).collect();
    let Some((highest, ..)) = known.last() else { return String::new() };
    let sooner = known.iter().filter(|(_, update, lock)| lock * CLEARLY < *update);
    let sooner: Vec<_> = sooner.map(|(count, ..)| count.to_string()).collect();
    let with = match sooner.as_slice() {
        [] => "none of the numbers".to_owned(),
        counts => counts.join(", "),
    };
    format!(
        " The p99 of both is known up to {highest} contenders, and that under the lock is the lower one with \
         {with}."
    )
}

/// Says on what the crossings depend.
fn why(configuration: &Configuration, findings: &Findings) -> Vec<String> {
    let any = |computes: bool, crosses: bool| {
        let mut works = configuration.works.iter().filter(move |work| work.computes == computes);
        works.any(|work| configuration.crossing(findings, *work).is_some() == crosses)
    };
    let waiting = any(false, false).then(|| WAITING.to_owned());
    let computing = any(true, true).then(|| {
        format!(
            "Work that computes has a crossing because the contenders outnumber the processors, of which this \
             machine has {}: works in vain take the time of the one that wins. With more processors the \
             crossing comes at more contenders: its number holds for this machine alone.",
            findings.cores
        )
    });
    waiting.into_iter().chain(computing).collect()
}

/// Says which share of the contenders had no success, at most.
fn unserved(configuration: &Configuration, findings: &Findings) -> Option<String> {
    let most = findings.points.iter().max_by(|one, next| one.unserved().total_cmp(&next.unserved()))?;
    let way = match most.way {
        Way::Conditional => "by conditional updates",
        Way::Lock => "under the lock",
    };
    (most.unserved() > 0.0).then(|| {
        format!(
            "Some contenders had no success within {}: of {} with {} {way}, {:.0} %. In both ways the one \
             that has just succeeded is the first to try again, and neither keeps an order of arrival.",
            configuration.lasts,
            most.contenders,
            most.work,
            100.0 * most.unserved(),
        )
    })
}

fn throughput_table(configuration: &Configuration, findings: &Findings, work: Work) -> Table {
    let caption = format!(
        "Updates of one row that need {work}: how many succeeded a second, by conditional updates and under \
         a lock, as the median of {} runs of {} with the lowest and the highest; and works in vain for each \
         success of a conditional update.",
        configuration.runs, configuration.lasts
    );
    let mut table =
        Table::new(caption, &["contenders", "cond./s", "in the runs", "in vain", "lock/s", "in the runs"]);
    let range = |point: &Point| {
        let (low, high) = point.range();
        format!("{low:.1} to {high:.1}")
    };
    for contenders in configuration.counts(work) {
        let Some((update, lock)) = findings.both(work, contenders) else { continue };
        table.row([
            contenders.to_string(),
            format!("{:.1}", update.updates_per_second),
            range(update),
            format!("{:.1}", update.in_vain),
            format!("{:.1}", lock.updates_per_second),
            range(lock),
        ]);
    }
    table
}

fn waits_table(configuration: &Configuration, findings: &Findings, work: Work) -> Table {
    let caption = format!(
        "The same updates with {work}, from their begin to their success, in ms, and the share of the \
         contenders that had no success in a run. No quantile is given that is of an update not done by the \
         end, and no p99 where a contender had no success."
    );
    let headings = ["contenders", "cond. p50", "p99", "not served", "lock p50", "p99", "not served"];
    let mut table = Table::new(caption, &headings);
    let ms = |quantile: Option<f64>| quantile.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.1}"));
    let unserved = |point: &Point| format!("{:.0} %", 100.0 * point.unserved());
    for contenders in configuration.counts(work) {
        let Some((update, lock)) = findings.both(work, contenders) else { continue };
        table.row([
            contenders.to_string(),
            ms(update.known(|run| run.p50_ms)),
            ms(update.p99_of_served_ms()),
            unserved(update),
            ms(lock.known(|run| run.p50_ms)),
            ms(lock.p99_of_served_ms()),
            unserved(lock),
        ]);
    }
    table
}

/// Draws the works that compute, or those that wait; `None` if there are none.
fn figure(configuration: &Configuration, findings: &Findings, computes: bool) -> Option<Figure> {
    let works: Vec<_> = configuration.works.iter().filter(|work| work.computes == computes).collect();
    if works.is_empty() {
        return None;
    }
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Log };
    let line = |way: Way, work: Work| {
        let name: &str = way.into();
        let point = |contenders: u64| {
            Some((contenders as f64, findings.of(way, work, contenders)?.updates_per_second))
        };
        let points = configuration.counts(work).into_iter().filter_map(point).collect();
        Line { name: format!("{name}, {}", work.takes), points }
    };
    let kind = if computes { "computes" } else { "waits" };
    Some(Figure {
        name: format!("experiment-11-{kind}"),
        caption: format!("Updates a second by contenders, where the work {kind}."),
        x: axis("contenders"),
        y: axis("updates a second"),
        lines: works
            .into_iter()
            .flat_map(|work| [Way::Conditional, Way::Lock].map(|way| line(way, *work)))
            .collect(),
    })
}
