//! Every mistake is found: each mutant is convicted, and the correct lock and resource are not, on the very
//! same schedules.
//!
//! A mutant is convicted by the explorer's own rule on a schedule drawn at random ([`Hunt::Drawn`]), by an
//! overlap on a drawn schedule in which nothing excuses one ([`Hunt::CutOff`]), or by a schedule aimed at it
//! ([`Hunt::Aimed`]), which demands of the correct one what the mutant does not give.

use std::collections::BTreeSet;

use resource::audit::VerdictKind as Verdict;
use sim::explore::violation;
use sim::lab::{Arm, Lab, Options, System, draw_for, run, run_with};
use sim::mutants::Mutant;
use sim::{Report, Schedule};

/// How a mutant is found.
enum Hunt {
    /// By this verdict, which nothing explains, on drawn schedules: in so many seeds at most.
    Drawn { shows: Verdict, seeds: u64 },
    /// By an overlap in drawn schedules without anything that would excuse one, and in which a holder is cut
    /// off: in so many seeds at most.
    CutOff { seeds: u64 },
    /// By this schedule, in one of so many seeds: the run of the arm has the verdict that the correct one
    /// does not have.
    Aimed { schedule: Box<Schedule<Options>>, arm: Arm, shows: Verdict, seeds: u64 },
}

fn hunts(mutant: Mutant) -> Vec<Hunt> {
    let aimed_at =
        |schedule, arm, shows, seeds| Hunt::Aimed { schedule: Box::new(schedule), arm, shows, seeds };
    let aimed =
        |text: &str, arm, shows| aimed_at(Schedule::parse(mutant.name(), text).unwrap(), arm, shows, 20);
    let drawn = |shows, seeds| Hunt::Drawn { shows, seeds };
    let known = |name: &str, shows| aimed_at(corpus(name), Arm::Fenced, shows, 1);
    match mutant {
        Mutant::SetnxThenPexpire => vec![drawn(Verdict::Stuck, 200)],
        Mutant::BlindDel => vec![drawn(Verdict::ForeignRelease, 200)],
        Mutant::CounterDeleted => vec![drawn(Verdict::TokenRegressed, 20)],
        Mutant::ForgetsOnRestart => {
            vec![drawn(Verdict::StaleWrite, 400), known("resource-restart", Verdict::StaleWrite)]
        }
        Mutant::AcceptsEqual => vec![
            drawn(Verdict::StaleWrite, 200),
            known("failover-lost-lock", Verdict::StaleWrite),
            known("ambiguous-put", Verdict::StaleWrite),
        ],
        Mutant::IgnoresVersion => vec![known("cas-high-contention", Verdict::LostUpdate)],
        Mutant::NoCleanup => vec![
            drawn(Verdict::Leaked, 1000),
            known("ambiguous-acquire-given-up", Verdict::Leaked),
            known("cancelled-acquire", Verdict::Leaked),
        ],
        Mutant::SilentReacquire => vec![aimed(EVICTED_BEFORE_RENEWAL, Arm::Unfenced, Verdict::StaleWrite)],
        Mutant::ValidityFromReply => {
            vec![
                aimed(SLOW_REPLY, Arm::Fenced, Verdict::Overlap),
                Hunt::CutOff { seeds: 1000 },
                drawn(Verdict::Unheld, 1000),
            ]
        }
        Mutant::MarginAdded => {
            vec![
                aimed(WIDE_MARGIN, Arm::Fenced, Verdict::Overlap),
                Hunt::CutOff { seeds: 1000 },
                drawn(Verdict::Unheld, 1000),
            ]
        }
        Mutant::WallClock => {
            vec![aimed(CLOCK_STEPS_BACK, Arm::Fenced, Verdict::Overlap)]
        }
        Mutant::LateLoss | Mutant::RenewalLogged | Mutant::ValidityUnchecked => {
            vec![drawn(Verdict::Unheld, 1000)]
        }
        Mutant::LargestCount => vec![known("redlock-token", Verdict::TokenRegressed)],
        Mutant::TokenByGet => vec![aimed(EVICTED_BEFORE_ANSWER, Arm::Unfenced, Verdict::StaleWrite)],
        Mutant::CheckThenWrite => {
            vec![aimed(WRITES_MEET, Arm::Fenced, Verdict::StaleWrite), drawn(Verdict::StaleWrite, 400)]
        }
    }
}

/// The reply to the grant is slow, then the renewals fail: the lease is older than it looks to one who counts
/// from the reply.
const SLOW_REPLY: &str = r#"
about  = "The grant's reply takes 350 ms; then the holder is cut off"
system = "redis"
ttl    = "2s"

[[worker]]
name  = "a"
work  = "5s"
renew = true

[[worker]]
name   = "b"
starts = "300ms"

[[fault]]
when = { process = "redis-1", after = "granted" }
what = { delay = ["redis-1", "a"], by = "350ms", both = false, for = "50ms" }

[[fault]]
when = { process = "a", after = "entered" }
what = { cut = ["a", "redis-1"], for = "4s" }

[expect.fenced]
verdicts = []
accepted = ["b:2"]
"#;

/// A wide margin, and renewals that fail.
const WIDE_MARGIN: &str = r#"
about  = "The margin is 300 ms; the holder is cut off"
system = "redis"
ttl    = "2s"
drift_margin = "300ms"

[[worker]]
name  = "a"
work  = "5s"
renew = true

[[worker]]
name   = "b"
starts = "300ms"

[[fault]]
when = { process = "a", after = "entered" }
what = { cut = ["a", "redis-1"], for = "4s" }

[expect.fenced]
verdicts = []
accepted = ["b:2"]
"#;

/// The wall clock steps back while the acquire is under way.
const CLOCK_STEPS_BACK: &str = r#"
about  = "The holder's wall clock steps back while its acquire is under way; then the holder is cut off"
system = "redis"
ttl    = "2s"

[[worker]]
name  = "a"
work  = "5s"
renew = true

[[worker]]
name   = "b"
starts = "300ms"

[[fault]]
when = { process = "redis-1", after = "granted" }
what = { step = "a", by = "-350ms" }

[[fault]]
when = { process = "a", after = "entered" }
what = { cut = ["a", "redis-1"], for = "4s" }

[expect.fenced]
verdicts = []
accepted = ["b:2"]
"#;

/// The lease is gone before its first renewal, and another one has had the lock and written.
const EVICTED_BEFORE_RENEWAL: &str = r#"
about  = "The holder's key is evicted; another one acquires, writes and releases before the holder renews"
system = "redis"
ttl    = "3s"

[[worker]]
name  = "a"
work  = "2s"
renew = true
check = false

[[worker]]
name   = "b"
starts = "150ms"

[[fault]]
when = { process = "a", after = "entered", plus = "50ms" }
what = { evict = "orders:42", part = "owner" }

[expect.unfenced]
verdicts = ["overlap", "two_valid", "unheld"]
accepted = ["b:2"]
"#;

/// The lease is gone before its holder has read the answer, and another one has been granted the next token.
const EVICTED_BEFORE_ANSWER: &str = r#"
about  = "The holder stops before it has its answer; its key is evicted and another one acquires"
system = "redis"
ttl    = "4s"

[[worker]]
name = "a"

[[worker]]
name   = "b"
starts = "50ms"
work   = "2s"

[[fault]]
when = { process = "redis-1", after = "granted" }
what = { evict = "orders:42", part = "owner" }

[[fault]]
when = { process = "redis-1", after = "granted" }
what = { pause = "a", for = "300ms" }

[expect.unfenced]
verdicts = ["overlap", "two_valid", "unheld"]
accepted = ["a:1", "b:2"]
"#;

/// Two writes reach the resource at the same time.
const WRITES_MEET: &str = r#"
about  = "The old holder's write and the new one's reach the resource at the same time"
system = "redis"
ttl    = "2s"

[[worker]]
name  = "a"
check = false

[[worker]]
name   = "b"
starts = "100ms"

[[fault]]
when = { process = "a", after = "worked" }
what = { pause = "a" }

[[fault]]
when = { process = "b", after = "sent" }
what = { resume = "a" }

[expect.fenced]
verdicts = ["overlap"]
"#;

/// The schedule `seeds/{name}.toml`.
fn corpus(name: &str) -> Schedule<Options> {
    crate::support::case(name).schedule.clone()
}

/// Convicts `mutant` in each way that it must be found, or panics.
fn convict(mutant: Mutant) {
    for hunt in hunts(mutant) {
        match hunt {
            Hunt::Drawn { shows, seeds } => convict_drawn(mutant, shows, seeds),
            Hunt::CutOff { seeds } => convict_cut_off(mutant, seeds),
            Hunt::Aimed { schedule, arm, shows, seeds } => {
                convict_aimed(mutant, &schedule, arm, shows, seeds);
            }
        }
    }
}

fn convict_drawn(mutant: Mutant, shows: Verdict, seeds: u64) {
    for seed in crate::support::search(seeds) {
        let schedule = draw_for(System::Redis, seed);
        for arm in [Arm::Unfenced, Arm::Fenced] {
            let report = run_with(&schedule, arm, seed, Some(mutant)).unwrap();
            let Some(violation) = violation(&Lab::new(arm), &schedule, &report) else { continue };
            if !violation.broken.contains(&shows) {
                continue;
            }
            acquit(&schedule, arm, seed);
            return tell(mutant, &violation.broken, arm, seed, &report);
        }
    }
    panic!("{mutant} went through {seeds} schedules unseen");
}

fn convict_cut_off(mutant: Mutant, seeds: u64) {
    for seed in crate::support::search(seeds) {
        let schedule = crate::support::cut_off_while_working(draw_for(System::Redis, seed));
        let report = run_with(&schedule, Arm::Fenced, seed, Some(mutant)).unwrap();
        if report.kinds().contains(&Verdict::Overlap) {
            let correct = run(&schedule, Arm::Fenced, seed).unwrap();
            assert!(!correct.kinds().contains(&Verdict::Overlap), "the correct one:\n{}", correct.trace());
            return tell(mutant, &BTreeSet::from([Verdict::Overlap]), Arm::Fenced, seed, &report);
        }
    }
    panic!("{mutant} went through {seeds} schedules unseen");
}

/// The correct lock and resource break no promise on the same schedule.
fn acquit(schedule: &Schedule<Options>, arm: Arm, seed: u64) {
    let correct = run(schedule, arm, seed).unwrap();
    let broken = violation(&Lab::new(arm), schedule, &correct).map(|violation| violation.broken);
    assert_eq!(broken, None, "the correct one, on seed {seed}, {arm}:\n{}", correct.trace());
}

fn convict_aimed(mutant: Mutant, schedule: &Schedule<Options>, arm: Arm, shows: Verdict, seeds: u64) {
    let demanded = schedule.expect.of(arm.name()).unwrap();
    assert!(!demanded.verdicts.contains(&shows));
    let mut found = None;
    // Aimed, it needs no luck.
    for seed in 0..seeds {
        let correct = run(schedule, arm, seed).unwrap();
        assert_eq!(
            correct.faults_struck(),
            schedule.faults.len(),
            "{mutant}, seed {seed}:\n{}",
            correct.trace()
        );
        assert_eq!(
            demanded.mismatches(&correct),
            [],
            "the correct one, {mutant}, seed {seed}:\n{}",
            correct.trace()
        );
        let report = run_with(schedule, arm, seed, Some(mutant)).unwrap();
        if found.is_none() && report.kinds().contains(&shows) {
            found = Some(seed);
            tell(mutant, &BTreeSet::from([shows]), arm, seed, &report);
        }
    }
    assert!(found.is_some(), "{mutant} was not seen in {seeds} seeds of: {}", schedule.about);
}

fn tell(mutant: Mutant, broken: &BTreeSet<Verdict>, arm: Arm, seed: u64, report: &Report) {
    let broken: Vec<String> = broken.iter().map(ToString::to_string).collect();
    println!("{mutant}: {} on seed {seed}, {arm}", broken.join(", "));
    if let Some(verdict) = report.verdicts.iter().find(|verdict| broken.contains(&verdict.kind.to_string())) {
        println!("  {}", verdict.detail);
    }
    // The harness names the thread after the test.
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    println!("  {}", crate::support::replay_line(&format!("all {test} -- --nocapture"), seed));
}

#[test]
fn setnx_then_pexpire_leaves_a_key_for_ever() {
    convict(Mutant::SetnxThenPexpire);
}

#[test]
fn a_blind_del_releases_another_owners_lock() {
    convict(Mutant::BlindDel);
}

#[test]
fn an_acquire_that_is_not_cleaned_up_blocks_the_others() {
    convict(Mutant::NoCleanup);
}

#[test]
fn a_renewal_that_acquires_anew_lets_a_stale_holder_go_on() {
    convict(Mutant::SilentReacquire);
}

#[test]
fn validity_from_the_reply_overlaps() {
    convict(Mutant::ValidityFromReply);
}

#[test]
fn a_margin_that_is_added_overlaps() {
    convict(Mutant::MarginAdded);
}

#[test]
fn validity_on_the_wall_clock_overlaps() {
    convict(Mutant::WallClock);
}

#[test]
fn a_token_that_is_read_afterwards_is_anothers() {
    convict(Mutant::TokenByGet);
}

#[test]
fn a_counter_that_is_deleted_regresses() {
    convict(Mutant::CounterDeleted);
}

#[test]
fn a_resource_that_forgets_takes_a_stale_write() {
    convict(Mutant::ForgetsOnRestart);
}

#[test]
fn a_resource_that_checks_and_then_writes_takes_a_stale_write() {
    convict(Mutant::CheckThenWrite);
}

#[test]
fn a_resource_that_takes_an_equal_token_takes_a_write_twice() {
    convict(Mutant::AcceptsEqual);
}

#[test]
fn redlock_that_takes_the_largest_count_of_the_majority_gives_tokens_that_regress() {
    convict(Mutant::LargestCount);
}

#[test]
fn a_resource_that_ignores_versions_loses_an_update() {
    convict(Mutant::IgnoresVersion);
}

#[test]
fn a_loss_declared_after_two_ttls_is_no_lease() {
    convict(Mutant::LateLoss);
}

#[test]
fn a_failed_renewal_that_is_only_logged_is_no_lease() {
    convict(Mutant::RenewalLogged);
}

#[test]
fn a_grant_whose_validity_nobody_checks_is_no_lease() {
    convict(Mutant::ValidityUnchecked);
}
