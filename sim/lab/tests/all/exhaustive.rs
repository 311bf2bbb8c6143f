//! The kept results of exhaustive searches: they are those of the code, and the page shows them. And for each
//! mistake of the museum: what the search leaves out loses no cause.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use lab::exhaustive::{MISTAKE_FAULTS_MAX, Mistake, ONE, Results, Searched, Workload};
use lab::exhaustive::{mistakes, search, subject, with_mistake, workloads};
use lab::museum::Mutant;
use lab::{LabScene, Options, System};
use resource::Fencing;
use sim::explore::exhaust;
use sim::explore::exhaust::{Needed, Scope, faults_needed};
use sim::faults::{Faults, Form, Link};
use sim::{Schedule, Span};

use crate::support::{Breadth, breadth};

const RESULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/results/exhaustive.json");

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/exhaustive.md");

/// The entry of a mistake that no single fault shows.
const MORE: &str = "more than 1";

/// A mistake on one system, and what shows it.
struct Row {
    mutant: Mutant,
    system: System,
    needed: Needed<Options>,
}

/// Returns the distance between two mistakes of the table that are searched for again. On a cluster, a search
/// takes seconds.
fn step(system: System) -> usize {
    match (breadth(), system == System::REDIS) {
        (Breadth::Short, true) => 24,
        (Breadth::Short, false) => 48,
        (Breadth::Usual, true) => 8,
        (Breadth::Usual, false) => 16,
        (Breadth::Whole, _) => 1,
    }
}

/// The mistakes that are searched for again. On a cluster, a mistake that is kept as one that no fault shows
/// is searched for by faults of one worker.
fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let kept = kept();
        let row = |(mutant, system): (Mutant, System)| {
            let is_row = |kept: &&Mistake| kept.mistake == mutant.name() && kept.system == system;
            let is_hidden = kept.mistakes.iter().find(is_row).is_some_and(|kept| kept.faults == MORE);
            let base = with_mistake(system, mutant);
            let is_slow = base.options.cluster().is_some();
            let befall = (is_hidden && is_slow).then(|| BTreeSet::from(["a".to_owned()]));
            let scope = Scope { befall, threads: 2, ..Scope::of(MISTAKE_FAULTS_MAX) };
            let needed = faults_needed(&subject(Fencing::On), &base, &scope);
            Row { mutant, system, needed: needed.unwrap() }
        };
        let searched = System::of_locks()
            .flat_map(|system| mistakes().filter(move |(_, on)| *on == system).step_by(step(system)));
        searched.map(row).collect()
    })
}

fn kept() -> Results {
    Results::parse(&std::fs::read_to_string(RESULTS).unwrap()).unwrap()
}

/// Runs `exhaust-table --check` on a page; returns its exit code and what it prints.
fn check(page: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
    let output =
        command.args(["exhaust-table", "--check", "--results", RESULTS, "--page"]).arg(page).output();
    let output = output.unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(printed).unwrap())
}

#[test]
fn the_page_shows_the_kept_results() {
    let (code, printed) = check(Path::new(PAGE));
    assert_eq!(code, Some(0), "{printed}");
}

#[test]
fn a_page_with_another_number_fails_the_check() {
    let known = std::fs::read_to_string(PAGE).unwrap();
    let other = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("exhaustive.md");
    std::fs::write(&other, known.replacen("| Redis | ", "| Redis | 1", 1)).unwrap();
    let (code, printed) = check(&other);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("differs from") && printed.contains("--page-only"), "{printed}");
    std::fs::write(&other, "no marks\n").unwrap();
    let (code, printed) = check(&other);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("<!-- claim -->"), "{printed}");
}

#[test]
fn the_kept_searches_for_one_fault_are_those_of_the_code() {
    let kept = kept();
    // Searches on clusters take the longest, of two keys above all.
    let is_searched = |(system, _, keys): &Workload| match breadth() {
        Breadth::Short => *system == System::REDIS && *keys == ONE,
        Breadth::Usual => *system == System::REDIS || *keys == ONE,
        Breadth::Whole => true,
    };
    assert!(workloads().all(|workload| kept.search(workload).is_some()), "run `exhaust-table`");
    for workload in workloads().filter(is_searched) {
        let known = kept.search(workload).cloned();
        let known = known.map(|known| Searched { cost: None, ..known });
        let found = search(workload, 2).unwrap();
        assert_eq!(known, Some(found), "run `exhaust-table`");
    }
}

#[test]
fn the_kept_mistakes_are_those_of_the_code() {
    let kept = kept().mistakes;
    let names = |(mutant, system): (Mutant, System)| (mutant.name().to_owned(), system);
    let listed: Vec<_> = mistakes().map(names).collect();
    let known: Vec<_> = kept.iter().map(|kept| (kept.mistake.clone(), kept.system)).collect();
    assert_eq!(known, listed, "run `exhaust-table`");
    for row in rows() {
        let found = Mistake::of(row.mutant, row.system, &row.needed);
        assert!(kept.contains(&found), "run `exhaust-table`: {found:?}");
    }
}

/// The faults with which pruned and whole search are compared: those of the kind that shows the mistake, on
/// the processes that it befalls and on both workers. If no fault shows it: a kind that differs from row to
/// row, on the workers and on the resource. On Redis, whose runs are the shortest, also steps of wall clocks.
fn scope(row: &Row, number: usize) -> Scope {
    let forms = Faults::default().forms(Span::from_secs(2));
    let (verb, mut befall) = match &row.needed {
        Needed::Faults(1, found) => {
            let what = &found.violation.schedule.faults[0].what;
            (what.verb(), what.processes())
        }
        _ => {
            let verbs = verbs(&forms, &["a", "resource"], &with_mistake(row.system, row.mutant));
            (verbs[number % verbs.len()], vec!["a", "resource"])
        }
    };
    let is_short = row.system == System::REDIS;
    if is_short || befall.contains(&"a") || befall.contains(&"b") {
        befall.extend(["a", "b"]);
    }
    let is_meant = |form: &Form| form.verb() == verb || is_short && form.verb() == "step";
    let forms = forms.into_iter().filter(is_meant).collect();
    let befall = befall.into_iter().map(str::to_owned).collect();
    Scope { forms: Some(forms), befall: Some(befall), threads: 2, ..Scope::of(1) }
}

/// Returns the verbs of the forms that befall the two processes alone, each verb once.
fn verbs(forms: &[Form], two: &[&str; 2], schedule: &Schedule<Options>) -> Vec<&'static str> {
    let links = [Link::new(two[0], two[1])];
    let befalls = |form: &&Form| {
        let faults = form.faults(&LabScene(schedule), &links);
        faults.iter().any(|(_, what)| what.processes().iter().all(|name| two.contains(name)))
    };
    let mut verbs: Vec<_> = forms.iter().filter(befalls).map(Form::verb).collect();
    verbs.dedup();
    verbs
}

#[test]
fn what_is_left_out_loses_no_cause_of_any_mistake() {
    let mut runs = (0, 0);
    for (number, row) in rows().iter().enumerate() {
        let base = with_mistake(row.system, row.mutant);
        let subject = subject(Fencing::On);
        let causes = |scope: &Scope| {
            let found = exhaust(&subject, &base, scope, |_| true).unwrap();
            let causes = found.breaks.iter().map(|found| found.cause.clone()).collect::<BTreeSet<_>>();
            (causes, found.runs)
        };
        let pruned = scope(row, number);
        let (of_pruned, few) = causes(&pruned);
        let (of_all, many) = causes(&Scope { is_pruned: false, ..pruned });
        assert_eq!(of_pruned, of_all, "{} on {}", row.mutant, row.system);
        runs = (runs.0 + few, runs.1 + many);
    }
    assert!(runs.0 * 2 < runs.1, "{runs:?}");
}
