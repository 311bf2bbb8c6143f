//! Draws scripts, shrinks one that shows a difference, and counts the successes of each kind of operation.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use real::fidelity::Comparison;
use real::lab::{Machine, Software};

/// The result of one script on both servers.
pub(crate) enum Verdict {
    /// All answers agree.
    Same,
    /// They differ: the script so far, with the answers of both.
    Different(String),
    /// The machine was too busy for the script's times to mean anything.
    Late,
}

/// Counts the successes of each kind of operation.
#[derive(Debug, Default)]
pub(crate) struct Tally(RefCell<BTreeMap<String, u64>>);

impl Tally {
    pub(crate) fn count(&self, kind: &str) {
        *self.0.borrow_mut().entry(kind.to_owned()).or_default() += 1;
    }

    /// Fails if one of `kinds` never succeeded, since its comparison would then prove nothing.
    pub(crate) fn require(&self, kinds: impl IntoIterator<Item = String>) {
        let kinds = kinds.into_iter().collect();
        let never = self.lacks(&kinds);
        assert!(never.is_empty(), "never succeeded in this run: {never:?}\nsucceeded: {:?}", self.0.borrow());
    }

    /// Returns those of `kinds` that never succeeded.
    fn lacks<'k>(&self, kinds: &'k BTreeSet<String>) -> Vec<&'k String> {
        let counted = self.0.borrow();
        kinds.iter().filter(|kind| !counted.contains_key(*kind)).collect()
    }
}

/// The runs with other seeds that [`compare_all`] adds at most.
const FURTHER_MAX: u64 = 11;

/// Runs scripts as [`compare`] does, and more with other seeds, as long as one of `kinds` never succeeded.
/// Which rare ones do is chance: it changes with each template that is added.
pub(crate) fn compare_all<T: Debug, S: Strategy<Value = T>>(
    system: &str,
    scripts: u32,
    strategy: impl Fn() -> S,
    run: impl Fn(&T) -> Verdict,
    (tally, kinds): (&Tally, impl IntoIterator<Item = String>),
) {
    let kinds: BTreeSet<_> = kinds.into_iter().collect();
    compare(system, scripts, strategy(), &run);
    for further in 1..=FURTHER_MAX {
        let never = tally.lacks(&kinds);
        if never.is_empty() {
            return;
        }
        println!("more scripts on {system}, since these never succeeded: {never:?}");
        compare_from(number("SEED").unwrap_or(0) + further, system, scripts, strategy(), &run);
    }
    tally.require(kinds);
}

/// Runs `scripts` scripts, or as many as `SCRIPTS` says, and fails with the shortest one that shows a
/// difference. The result is kept in the folder that RESULTS names, for the page.
pub(crate) fn compare<T: Debug>(
    system: &str,
    scripts: u32,
    strategy: impl Strategy<Value = T>,
    run: impl Fn(&T) -> Verdict,
) {
    compare_from(number("SEED").unwrap_or(0), system, scripts, strategy, run);
}

fn compare_from<T: Debug>(
    seed: u64,
    system: &str,
    scripts: u32,
    strategy: impl Strategy<Value = T>,
    run: impl Fn(&T) -> Verdict,
) {
    let cases = number("SCRIPTS").and_then(|count| u32::try_from(count).ok()).unwrap_or(scripts);
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 2000,
        max_global_rejects: cases.max(100),
        ..Config::default()
    };
    // Shrinking ends at the last script that failed, whose answers are kept here.
    let shown = RefCell::new(String::new());
    let late = Cell::new(0);
    let outcome = TestRunner::new(config).run(&strategy, |script| match run(&script) {
        Verdict::Same => Ok(()),
        Verdict::Different(answers) => {
            shown.replace(answers);
            Err(TestCaseError::fail("the answers differ"))
        }
        Verdict::Late => {
            late.set(late.get() + 1);
            Err(TestCaseError::reject("the machine was too busy"))
        }
    });
    match outcome {
        Ok(()) => {
            println!("{cases} scripts on {system}, {} more were late", late.get());
            keep(system, cases, late.get(), seed);
        }
        Err(TestError::Fail(..)) => panic!(
            "the simulated {system} differs from the live one:\n\n{}\nreplay it: SEED={seed} SCRIPTS={cases} \
             cargo test --workspace --test fidelity {system}",
            shown.borrow()
        ),
        Err(TestError::Abort(why)) => panic!("{system}: {} scripts were late: {why}", late.get()),
    }
}

fn keep(name: &str, scripts: u32, late: u32, seed: u64) {
    let Some(folder) = std::env::var_os("RESULTS") else { return };
    let (name, machine, software) = (name.to_owned(), Machine::this(), Software::this());
    Comparison { name, scripts, late, seed, machine, software }.keep(folder.as_ref()).unwrap();
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text}: give a whole number")))
}
