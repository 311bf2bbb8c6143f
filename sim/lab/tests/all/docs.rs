//! `docs/redlock.md` and `docs/decide.md` agree with the schedules' demands and with their runs.
//!
//! These tests read three things in the pages. *Links* to schedules: `](../seeds/NAME.toml)`. *Claims*: code
//! of the form `verdicts; accepted worker:token, …; refused worker:token, …`, in the line of a link to the
//! schedule, first with fencing off, then on. *Traces*: blocks that begin with three backticks and
//! `trace seeds/NAME.toml off` (or `on`).

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;

use lab::Arm;
use sim::Report;
use sim::sim::Outcome;

use crate::support::corpus;

const PAGE: &str = "docs/redlock.md";

/// The pages with claims.
const PAGES: [&str; 2] = [PAGE, "docs/decide.md"];

/// Prefixes of the names of the schedules that the page about Redlock must link to.
const OF_THE_DEBATE: [&str; 5] =
    ["redlock-", "majority-crash", "clock-step-or-slew-", "gc-pause", "failover-lost-lock"];

#[test]
fn every_schedule_of_the_debate_is_linked_and_claimed() {
    let page = Page::load(PAGE);
    let linked: BTreeSet<_> = page.links().filter_map(|target| schedule_of(&target)).collect();
    let claimed: BTreeSet<_> = page.claims().iter().filter_map(|claim| claim.schedule.clone()).collect();
    let mut problems = Vec::new();
    for case in corpus() {
        let name = &case.name;
        let is_meant = OF_THE_DEBATE.iter().any(|prefix| name.starts_with(prefix));
        if is_meant && !linked.contains(name) {
            problems.push(format!("{PAGE}: no link to seeds/{name}.toml"));
        }
        // A schedule that does not name its writes has too many of them for a claim.
        let names_writes =
            case.schedule.expect.of(Arm::Fenced.name()).is_some_and(|outcome| outcome.accepted.is_some());
        if is_meant && names_writes && !claimed.contains(name) {
            problems.push(format!("{PAGE}: no claim about seeds/{name}.toml"));
        }
    }
    none_of(&problems, "schedules are left out");
}

#[test]
fn every_claim_agrees_with_its_schedule_and_its_run() {
    let mut problems = Vec::new();
    for page in PAGES.map(Page::load) {
        let claims = page.claims();
        assert!(!claims.is_empty(), "{} claims nothing", page.path);
        problems.extend(claims.iter().flat_map(|claim| false_claim(page.path, claim)));
    }
    none_of(&problems, "claims are false");
}

#[test]
fn every_trace_is_an_excerpt_of_its_run() {
    let page = Page::load(PAGE);
    let mut problems = Vec::new();
    assert!(!page.traces.is_empty(), "{PAGE} shows no trace");
    for trace in &page.traces {
        problems.extend(untrue_lines(trace));
    }
    none_of(&problems, "traces are not what a replay gives");
}

fn none_of(problems: &[String], what: &str) {
    assert!(problems.is_empty(), "{} {what}:\n{}", problems.len(), problems.join("\n"));
}

/// Returns the differences between the claim and the schedule or its run.
fn false_claim(page: &str, claim: &Claim) -> Vec<String> {
    let at = format!("{page}:{}", claim.line);
    let Some(name) = &claim.schedule else {
        return vec![format!("{at}: no link to a schedule precedes {:?} in its line", claim.text)];
    };
    let Some(arm) = claim.arm else {
        return vec![format!(
            "{at}: seeds/{name}.toml needs two claims: the first with fencing off, the second with it on"
        )];
    };
    let Some((demanded, report)) = run_of(name, arm) else {
        return vec![format!("{at}: seeds/{name}.toml can't be run with fencing {}", said(arm))];
    };
    let mut problems = Vec::new();
    let gave = outcome_of(report);
    if gave != claim.text {
        problems.push(format!("the run gave  {gave}"));
    }
    if let Some(demanded) = demanded.map(|demanded| outcome_demanded(demanded, report))
        && demanded != claim.text
    {
        problems.push(format!("it demands    {demanded}"));
    }
    let head = format!("{at}: seeds/{name}.toml, fencing {}\n  the page says {}", said(arm), claim.text);
    if problems.is_empty() { problems } else { vec![format!("{head}\n  {}", problems.join("\n  "))] }
}

/// Returns the outcome of a run in the format of the page.
fn outcome_of(report: &Report) -> String {
    let summary = report.summary();
    written(&list(report.kinds()), &list(&summary.accepted), &list(&summary.refused))
}

/// Returns the outcome that a schedule demands in the format of the page. Anything that it does not demand is
/// taken from the run.
fn outcome_demanded(demanded: &Outcome, report: &Report) -> String {
    let summary = report.summary();
    let accepted = demanded.accepted.as_ref().unwrap_or(&summary.accepted);
    let refused = demanded.refused.as_ref().unwrap_or(&summary.refused);
    written(&list(&demanded.verdicts), &list(accepted), &list(refused))
}

fn written(verdicts: &str, accepted: &str, refused: &str) -> String {
    format!("{verdicts}; accepted {accepted}; refused {refused}")
}

/// Joins the items with commas; returns `none` if there are none.
fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

/// Returns the problems of a trace: lines that the run did not give, or not in that order.
fn untrue_lines(trace: &Trace) -> Vec<String> {
    let at = format!("{PAGE}:{}", trace.line);
    let Some((name, arm)) = trace.of() else {
        return vec![format!("{at}: {:?}: write trace seeds/NAME.toml off, or on", trace.info)];
    };
    let Some((_, report)) = run_of(&name, arm) else {
        return vec![format!("{at}: seeds/{name}.toml can't be run with fencing {}", said(arm))];
    };
    if trace.lines.is_empty() {
        return vec![format!("{at}: the trace of seeds/{name}.toml is empty")];
    }
    let text = report.trace();
    let given: Vec<_> = text.lines().map(str::trim_end).collect();
    let mut problems = Vec::new();
    let mut from = 0;
    for (number, line) in &trace.lines {
        match given[from..].iter().position(|other| other == line) {
            Some(after) => from += after + 1,
            None => problems.push(format!(
                "{PAGE}:{number}: seeds/{name}.toml, fencing {}, does not give this line here:\n{line}\n{}",
                said(arm),
                instead(&given, line)
            )),
        }
    }
    problems
}

/// Describes the lines that the run gave at the time of `line`.
fn instead(given: &[&str], line: &str) -> String {
    let time = line.split_whitespace().next().unwrap_or_default();
    let then: Vec<_> =
        given.iter().filter(|other| other.split_whitespace().next() == Some(time)).copied().collect();
    if then.is_empty() {
        format!("the run gave nothing at {time}")
    } else {
        format!("at {time} the run gave\n{}", then.join("\n"))
    }
}

/// Returns the name of the arm in the page.
fn said(arm: Arm) -> &'static str {
    match arm {
        Arm::Unfenced => "off",
        Arm::Fenced => "on",
    }
}

/// Returns the demands of the schedule for that arm, and its run; `None` if there is no such schedule.
fn run_of(name: &str, arm: Arm) -> Option<(Option<&'static Outcome>, &'static Report)> {
    let case = corpus().iter().find(|case| case.name == name)?;
    Some((case.schedule.expect.of(arm.name()), case.run(arm)))
}

/// A claim of the page about one arm of a schedule.
struct Claim {
    line: usize,
    /// The schedule of the last link before the claim, in the same line.
    schedule: Option<String>,
    /// Fencing off in the first claim of a schedule in a line, on in the second; `None` unless there are two.
    arm: Option<Arm>,
    text: String,
}

/// Some lines of a run.
struct Trace {
    line: usize,
    info: String,
    lines: Vec<(usize, String)>,
}

impl Trace {
    /// Returns the name of the schedule and the arm of the run.
    fn of(&self) -> Option<(String, Arm)> {
        let (path, arm) = self.info.strip_prefix("trace ")?.split_once(' ')?;
        let arm = Arm::ALL.iter().find(|known| said(**known) == arm)?;
        Some((path.strip_prefix("seeds/")?.strip_suffix(".toml")?.to_owned(), *arm))
    }
}

/// A page: its prose (the tables included) and its traces, each line with its number.
struct Page {
    path: &'static str,
    prose: Vec<(usize, String)>,
    traces: Vec<Trace>,
}

impl Page {
    fn load(path: &'static str) -> Self {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        let mut page = Self { path, prose: Vec::new(), traces: Vec::new() };
        let mut block: Option<Trace> = None;
        for (line, number) in text.lines().zip(1..) {
            match (&mut block, line.strip_prefix("```")) {
                (None, Some(info)) => {
                    block = Some(Trace { line: number, info: info.to_owned(), lines: Vec::new() });
                }
                (Some(_), Some(_)) => page.traces.extend(block.take()),
                (Some(block), None) => block.lines.push((number, line.trim_end().to_owned())),
                (None, None) => {
                    assert!(
                        line.matches('`').count() % 2 == 0,
                        "{path}:{number}: the line opens code and does not close it"
                    );
                    page.prose.push((number, line.to_owned()));
                }
            }
        }
        assert!(block.is_none(), "{path}: a block is not closed");
        page.traces.retain(|block| block.info.starts_with("trace"));
        page
    }

    fn links(&self) -> impl Iterator<Item = String> {
        self.prose.iter().flat_map(|(_, line)| targets(line))
    }

    fn claims(&self) -> Vec<Claim> {
        self.prose.iter().flat_map(|(number, line)| claims_in(*number, line)).collect()
    }
}

/// Returns the claims in one line.
fn claims_in(number: usize, line: &str) -> Vec<Claim> {
    let mut claims: Vec<Claim> = Vec::new();
    let mut schedule = None;
    for (part, is_code) in line.split('`').zip([false, true].into_iter().cycle()) {
        if !is_code {
            schedule = targets(part).filter_map(|target| schedule_of(&target)).last().or(schedule);
        } else if part.contains("; accepted ") {
            claims.push(Claim { line: number, schedule: schedule.clone(), arm: None, text: part.to_owned() });
        }
    }
    let mut left = &mut claims[..];
    while !left.is_empty() {
        let same = left.iter().take_while(|claim| claim.schedule == left[0].schedule).count();
        let (these, others) = left.split_at_mut(same);
        if let [off, on] = these {
            (off.arm, on.arm) = (Some(Arm::Unfenced), Some(Arm::Fenced));
        }
        left = others;
    }
    claims
}

/// Returns the targets of the links in a line.
fn targets(line: &str) -> impl Iterator<Item = String> + '_ {
    line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()))
}

/// Returns the name of the schedule that a link leads to.
fn schedule_of(target: &str) -> Option<String> {
    Some(target.strip_prefix("../seeds/")?.strip_suffix(".toml")?.to_owned())
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
