//! Experiment 3: a release by GET and DEL.
//!
//! Client a finds its own owner token under the key. Before its DEL arrives, its lease expires and b
//! acquires: the DEL deletes b's lock, and c is granted it while b is in its critical section. The script,
//! which compares and deletes in one step, deletes nothing then. `forced` forces the race, `natural` runs it
//! at its natural timing, and `release` is the lock with either release.
//!
//! Source: the lab text, section 10, experiment 3, and section 6; the Redis documentation of SET, "patterns".

mod forced;
mod natural;
mod release;

use history::story;
use history::{Span, VerdictKind};
use resource::Fencing;
use serde::{Deserialize, Serialize};

use self::forced::Forced;
use self::natural::Natural;
use self::release::Release;
use super::{Experiment, ExperimentError};
use crate::lab::outcome::cell;
use crate::lab::parallel::in_parallel;
use crate::report::{Section, Table};

/// Experiment 3.
#[derive(Debug)]
pub struct SafeRelease;

/// The configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    ttl: Span,
    work: Span,
    rounds: u32,
    race_ttl: Span,
}

/// The raw findings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Findings {
    forced: Vec<Forced>,
    natural: Vec<Natural>,
}

impl Experiment for SafeRelease {
    type Configuration = Configuration;
    type Findings = Findings;

    const NUMBER: u32 = 3;
    const TITLE: &'static str = "GET and DEL against the script";
    const QUESTION: &'static str =
        "A holder releases by GET and DEL just as its lease ends: whose lock does it delete?";
    const COMMITTED: &'static str = include_str!("../../../experiments/3.toml");

    fn run(configuration: &Configuration) -> Result<Findings, ExperimentError> {
        let arms = Release::BOTH.map(|release| Fencing::BOTH.map(|fence| (release, fence)));
        let arms = arms.as_flattened();
        let forced =
            in_parallel(arms, arms.len(), |&(release, fence)| forced::play(release, fence, configuration))?;
        // One after the other: the timing of a race must not be disturbed.
        let natural = in_parallel(&Release::BOTH, 1, |&release| natural::play(release, configuration))?;
        Ok(Findings { forced, natural })
    }

    fn section(configuration: &Configuration, findings: &Findings) -> Section {
        let mut section = Section {
            tables: vec![forced_table(&findings.forced), natural_table(configuration, &findings.natural)],
            stories: stories(&findings.forced),
            ..Section::default()
        };
        let of = |release| findings.forced.iter().filter(move |run| run.release == release);
        let (mistaken, safe) = (Release::GetThenDel, Release::Script);
        section.expect(
            "by GET and DEL client a deleted b's lock, its release was confirmed, and c was granted the lock \
             while b was",
            of(mistaken).count() > 0 && of(mistaken).all(Forced::is_foreign),
        );
        let writes = |fence, count| {
            let runs = of(mistaken).filter(move |run| run.fence == fence);
            let stale = |run: &Forced| run.outcome.count(VerdictKind::StaleWrite) == count;
            runs.clone().count() > 0 && runs.clone().all(stale)
        };
        section.expect("b's write was then stale, and was accepted without fencing", writes(Fencing::Off, 1));
        section.expect(
            "and was refused with fencing, which protects the data and not b's lock",
            writes(Fencing::On, 0),
        );
        section.expect(
            "the script deleted nothing of b's, told a that it no longer held the lock, and c had to wait",
            of(safe).count() > 0 && of(safe).all(Forced::is_harmless),
        );
        let struck = |release| {
            let runs = findings.natural.iter().filter(move |run| run.release == release);
            runs.map(|run| (run.struck, run.rounds)).next().unwrap_or_default()
        };
        let (by_script, rounds) = struck(safe);
        section.expect(
            "at natural timing the script deleted no other client's lock",
            rounds > 0 && by_script == 0,
        );
        let (struck, rounds) = struck(mistaken);
        section.remarks.push(format!(
            "At natural timing, with releases within a few milliseconds of the lease's end and another \
             client asking without a break, GET and DEL deleted another's lock in {struck} of {rounds} \
             rounds."
        ));
        section
    }
}

impl Forced {
    fn is_told(&self, how: &str) -> bool {
        self.told.as_deref() == Some(how)
    }

    fn is_foreign(&self) -> bool {
        let found = |kind| self.outcome.has(kind);
        self.is_told("done")
            && self.third_got_in
            && found(VerdictKind::ForeignRelease)
            && found(VerdictKind::Overlap)
    }

    fn is_harmless(&self) -> bool {
        self.is_told("not_owner") && !self.third_got_in && self.outcome.verdicts.is_empty()
    }
}

fn forced_table(runs: &[Forced]) -> Table {
    let mut table = Table::new(
        "The forced race: a's release is held up until b holds the lock.",
        &["release", "fence", "a is told", "c gets in", "verdicts", "taken", "refused"],
    );
    for run in runs {
        let verdicts: Vec<_> = run.outcome.verdicts.iter().map(|kind| kind.name()).collect();
        table.row([
            run.release.as_str().to_owned(),
            run.fence.as_str().to_owned(),
            run.told.clone().unwrap_or_else(|| "–".to_owned()),
            if run.third_got_in { "yes" } else { "no" }.to_owned(),
            verdicts.len().to_string(),
            cell(&run.outcome.accepted),
            cell(&run.outcome.refused),
        ]);
    }
    table
}

fn natural_table(configuration: &Configuration, runs: &[Natural]) -> Table {
    let caption = format!("At natural timing, with a TTL of {}.", configuration.race_ttl);
    let mut table = Table::new(caption, &["release", "rounds", "releases in time", "others' locks deleted"]);
    for run in runs {
        let counts = [run.rounds, run.in_time, run.struck].map(|count| count.to_string());
        table.row([run.release.as_str().to_owned()].into_iter().chain(counts));
    }
    table
}

/// Renders both releases side by side, without fencing.
fn stories(runs: &[Forced]) -> Vec<(String, String)> {
    let story = |release| runs.iter().find(|run| run.release == release && run.fence == Fencing::Off);
    let told = story(Release::GetThenDel).zip(story(Release::Script)).map(|(mistaken, safe)| {
        let columns = [("GET, then DEL", mistaken), ("the script", safe)];
        story::side_by_side(&columns.map(|(title, run)| (title, run.outcome.story.as_slice())))
    });
    told.map(|told| ("fencing off".to_owned(), told)).into_iter().collect()
}

fn failed(error: &impl ToString) -> ExperimentError {
    ExperimentError::Failed(error.to_string())
}
