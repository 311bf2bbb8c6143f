//! Exhaustive search: what it leaves out loses nothing, and what it claims is what it ran.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use history::VerdictKind as Verdict;
use lab::exhaustive::subject;
use lab::museum::{Museum, Mutant};
use lab::{Arm, Options, System, small};
use resource::Fencing;
use sim::explore::exhaust;
use sim::explore::exhaust::{Demanding, Exhausted, Needed, Progress, Scope, base, faults_needed};
use sim::faults::{Call, FAULTS, FaultKind, Form, cancel, crash, pause};
use sim::{Process, Schedule, Sim, Span, Subject};

/// Returns true: the search always continues.
fn on(_: &Progress) -> bool {
    true
}

fn search<S: Subject>(subject: &S, base: &Schedule<S::Options>, scope: &Scope) -> Exhausted<S::Options> {
    exhaust(subject, base, scope, on).unwrap()
}

fn two(faults: usize) -> Scope {
    Scope { threads: 2, ..Scope::of(faults) }
}

/// The laboratory without fencing, held to what fencing promises.
fn unfenced() -> Demanding<Museum> {
    subject(Fencing::Off)
}

fn causes<O>(found: &Exhausted<O>) -> BTreeSet<(usize, String)> {
    found.breaks.iter().map(|found| (found.faults, found.cause.clone())).collect()
}

/// Two processes that are inside at the same time if the first is paused.
fn sections(sim: &mut Sim) {
    sim.check("one at a time", sim::no(Verdict::Overlap));
    for (name, starts) in [("a", 0), ("b", 200)] {
        sim.process(name, move |process: Process| async move {
            process.point("begins");
            process.sleep(Duration::from_millis(starts)).await;
            process.point("enters");
            let section = process.section("key");
            process.point("inside");
            process.sleep(Duration::from_millis(10)).await;
            drop(section);
            process.point("outside");
        });
    }
}

/// The same, but the second comes so much later that one pause of the first is not enough.
fn patient(sim: &mut Sim) {
    sim.check("one at a time", sim::no(Verdict::Overlap));
    for (name, starts) in [("a", 0), ("b", 2_000)] {
        sim.process(name, move |process: Process| async move {
            process.point("begins");
            process.sleep(Duration::from_millis(starts)).await;
            let section = process.section("key");
            process.point("inside");
            process.sleep(Duration::from_millis(10)).await;
            process.point("works");
            process.sleep(Duration::from_millis(10)).await;
            drop(section);
        });
    }
}

/// A process that panics if its wall clock steps back before its second reading, or before its third one.
fn wall_clock(sim: &mut Sim) {
    sim.process("a", |process: Process| async move {
        let first = process.wall();
        process.point("begins");
        process.sleep(Duration::from_millis(10)).await;
        let second = process.wall();
        assert!(first <= second);
        process.sleep(Duration::from_millis(20)).await;
        assert!(second <= process.wall());
        process.point("ends");
    });
    sim.process("b", |process: Process| async move {
        process.point("begins");
        process.sleep(Duration::from_millis(20)).await;
        process.point("between");
    });
}

/// The faults of a small search.
fn pauses_and_crashes() -> Option<Vec<Form>> {
    let span = Span::from_millis;
    Some(vec![pause::lasting(span(500)), pause::lasting(span(1_500)), crash::restarting(span(500))])
}

#[test]
fn one_fault_pruned_breaks_what_one_fault_anywhere_breaks() {
    let (redis, unfenced) = (small(System::REDIS), unfenced());
    let pruned = search(&unfenced, &redis, &two(1));
    let whole = search(&unfenced, &redis, &Scope { is_pruned: false, ..two(1) });
    assert_eq!(causes(&pruned), causes(&whole));
    assert!(!pruned.breaks.is_empty());
    assert!(pruned.runs * 4 < whole.runs, "{} of {}", pruned.runs, whole.runs);
}

#[test]
fn the_second_of_two_equal_workers_is_searched_too() {
    let base = mutant(Mutant::EarlyNow);
    let search = |befall: &[&str]| {
        let befall = befall.iter().map(|name| (*name).to_owned()).collect();
        let forms = vec![pause::lasting(Span::from_secs(1)), crash::restarting(Span::from_millis(500))];
        let scope = Scope { forms: Some(forms), befall: Some(befall), ..two(1) };
        search(&Museum::new(Arm::Fenced), &base, &scope)
    };
    let (of_a, of_b, of_both) = (search(&["a"]), search(&["b"]), search(&["a", "b"]));
    // The run without a fault is in both.
    assert_eq!(of_a.runs + of_b.runs - 1, of_both.runs);
    // A crash of b shows what none of a's does: each draws random numbers of its own.
    let of_b_alone = (1, "crash client: unheld".to_owned());
    assert!(causes(&of_both).contains(&of_b_alone), "{:?}", causes(&of_both));
    assert!(!causes(&of_a).contains(&of_b_alone), "{:?}", causes(&of_a));
}

#[test]
fn two_faults_pruned_break_the_lock_on_redis_as_two_anywhere_do() {
    // Two pauses outlast the lease of 2 s; one alone does not.
    let forms = Some(vec![pause::lasting(Span::from_millis(1_050))]);
    let scope = Scope { forms, befall: Some(BTreeSet::from(["a".to_owned()])), ..two(2) };
    let (redis, unfenced) = (small(System::REDIS), unfenced());
    let pruned = search(&unfenced, &redis, &scope);
    let whole = search(&unfenced, &redis, &Scope { is_pruned: false, ..scope });
    assert_eq!(causes(&pruned), causes(&whole));
    assert_eq!(causes(&pruned), BTreeSet::from([(2, "pause client, pause client: stale_write".to_owned())]));
    assert!(pruned.runs * 4 < whole.runs, "{} of {}", pruned.runs, whole.runs);
    let claim = pruned.claim();
    assert!(claim.contains("- pause of a process for 1.05s: a\n"), "{claim}");
    assert!(claim.contains("- faults of other processes than a\n"), "{claim}");
}

#[test]
fn two_faults_pruned_break_what_two_faults_anywhere_break() {
    let start = base(&patient, 0).unwrap();
    let scope = Scope { forms: pauses_and_crashes(), ..two(2) };
    let pruned = search(&patient, &start, &scope);
    let whole = search(&patient, &start, &Scope { is_pruned: false, ..scope });
    assert_eq!(causes(&pruned), causes(&whole));
    assert!(pruned.breaks.iter().any(|found| found.faults == 2), "{:?}", causes(&pruned));
    assert!(pruned.runs < whole.runs, "{} of {}", pruned.runs, whole.runs);
}

#[test]
fn dropped_calls_are_placed_at_every_point() {
    let forms = Some([Call::Acquire, Call::Release].map(cancel::dropping).into());
    let (museum, base) = (Museum::new(Arm::Fenced), mutant(Mutant::NoCleanup));
    let scope = Scope { forms, ..two(1) };
    let pruned = search(&museum, &base, &scope);
    let whole = search(&museum, &base, &Scope { is_pruned: false, ..scope });
    assert_eq!(causes(&pruned), causes(&whole));
    assert!(!pruned.breaks.is_empty());
    let claim = pruned.claim();
    assert!(claim.contains("- drop of a client's acquire: a, b\n"), "{claim}");
    assert!(claim.contains("- drop of a client's release: a, b\n"), "{claim}");
}

#[test]
fn a_panic_behind_any_reading_of_a_clock_is_found() {
    let start = base(&wall_clock, 0).unwrap();
    let found = search(&wall_clock, &start, &two(1));
    let whole = search(&wall_clock, &start, &Scope { is_pruned: false, ..two(1) });
    assert_eq!(causes(&found), causes(&whole));
    assert_eq!(found.breaks.len(), 2, "{:?}", causes(&found));
    assert!(found.breaks.iter().all(|found| found.cause.starts_with("step client: panic at ")));
}

/// The small workload on Redis with this mistake.
fn mutant(mutant: Mutant) -> Schedule<Options> {
    let mut base = small(System::REDIS);
    base.options.mutant = Some(mutant.name().to_owned());
    base
}

/// A file that is deleted in the end.
struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn an_interrupted_search_ends_with_the_same_claim() {
    let file = File(std::env::temp_dir().join(format!("sim-exhaust-{}.json", std::process::id())));
    let start = base(&patient, 0).unwrap();
    let scope = Scope { forms: pauses_and_crashes(), ..Scope::of(2) };
    let whole = search(&patient, &start, &scope);
    let scope = Scope { progress: Some(file.0.clone()), ..scope };
    let part = exhaust(&patient, &start, &scope, |progress| progress.done < 3).unwrap();
    assert!(part.remaining > 0 && part.runs < whole.runs);
    assert!(part.claim().contains(&format!("{} first faults with all that follows", part.remaining)));
    let rest = search(&patient, &start, &scope);
    assert_eq!(rest.claim(), whole.claim());
    assert_eq!(causes(&rest), causes(&whole));
    // It is the progress of this search alone.
    let error = exhaust(&patient, &start, &Scope { faults: 1, ..scope }, on).unwrap_err();
    assert!(error.to_string().contains("another search"), "{error}");
}

#[test]
fn a_part_that_ends_at_its_first_violation_is_not_done() {
    let file = File(std::env::temp_dir().join(format!("sim-exhaust-first-{}.json", std::process::id())));
    let start = base(&patient, 0).unwrap();
    let scope = Scope { forms: pauses_and_crashes(), ..Scope::of(2) };
    let whole = search(&patient, &start, &scope);
    let scope = Scope { progress: Some(file.0.clone()), ..scope };
    let first = search(&patient, &start, &Scope { ends_at_first: true, ..scope.clone() });
    // The part of its first fault has placements after this one.
    assert_eq!(first.breaks[0].faults, 2, "{:?}", causes(&first));
    assert!(first.remaining > 0 && first.runs < whole.runs, "{}", first.claim());
    let rest = search(&patient, &start, &scope);
    assert_eq!(rest.claim(), whole.claim());
    assert_eq!(causes(&rest), causes(&whole));
}

#[test]
fn redis_with_fencing_withstands_every_single_fault() {
    let found = search(&Museum::new(Arm::Fenced), &small(System::REDIS), &two(1));
    assert_eq!(causes(&found), BTreeSet::new(), "{}", found.claim());
    let claim = found.claim();
    let first = format!(
        "no violation in all {} placements of at most 1 fault, of these kinds and durations, at these points, \
         for this workload, these versions and this seed; 0 remaining.\n",
        found.runs
    );
    assert!(claim.starts_with(&first), "{claim}");
    // One Redis without a replica: these have forms, and no place here.
    let misplaced = ["partition", "promote", "lead"];
    let is_other =
        |kind: &&&FaultKind| (kind.forms)(Span::from_secs(1)).is_empty() || misplaced.contains(&kind.verb);
    let others: Vec<_> = FAULTS.iter().filter(is_other).map(|kind| kind.verb).collect();
    let others = format!("- other kinds of faults: {};", others.join(", "));
    let parts = [
        "- pause of a process for 1s: a, b, redis-1, resource\n",
        "- cut of a client's link in one direction for 3s: a → redis-1, redis-1 → a",
        "- step of a wall clock by -3s: a, b",
        "- a: ",
        "sends to redis-1 ×",
        "    system = \"redis\"",
        "Seed: 0.",
        "Not covered:\n- more than 1 fault\n",
        others.as_str(),
    ];
    for part in parts {
        assert!(claim.contains(part), "`{part}` is missing in:\n{claim}");
    }
}

#[test]
fn without_fencing_one_pause_is_enough() {
    let found = search(&unfenced(), &small(System::REDIS), &two(1));
    let found = found.breaks.iter().find(|found| found.cause == "pause client: stale_write");
    let found = found.expect("a holder that is paused after its check writes late");
    let report = sim::sim::run(&unfenced(), &found.violation.schedule).unwrap();
    assert_eq!(found.violation.schedule.mismatches("unfenced", &report), Some(Vec::new()));
}

#[test]
fn a_mistake_is_found_with_one_fault() {
    let base = mutant(Mutant::BlindDel);
    let needed = faults_needed(&Museum::new(Arm::Fenced), &base, &two(2)).unwrap();
    assert_eq!(needed.to_string(), "1");
    let Needed::Faults(1, found) = needed else { panic!("not one") };
    assert!(found.violation.broken.contains(&Verdict::ForeignRelease), "{}", found.cause);
}

#[test]
fn a_closure_is_searched_from_outside() {
    let start = base(&sections, 0).unwrap();
    let found = search(&sections, &start, &Scope::of(1));
    assert_eq!(found.remaining, 0);
    let causes = causes(&found);
    assert!(causes.contains(&(1, "pause client: one at a time".to_owned())), "{causes:?}");
    let none = faults_needed(&sections, &start, &Scope::of(0)).unwrap();
    assert_eq!(none.to_string(), "more than 0");
}
