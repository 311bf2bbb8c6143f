//! The strategies of a search: what each draws, and that a seed names a schedule.

use std::collections::BTreeSet;

use lab::{Arm, Lab, Options, Recipe, System, Tokens, Version, Waiting, Worker};
use sim::explore::Portfolio;
use sim::faults::{Call, Cancel, Crash, Fault, Trigger};
use sim::{Draw, Process, Schedule, Sim, Span, Strategy, Subject};

fn drawn(seed: u64, strategy: Strategy) -> Schedule<Options> {
    Lab::new(Arm::Fenced).schedule(&mut Draw::new(seed).by(strategy)).unwrap()
}

fn verbs(schedule: &Schedule<Options>) -> BTreeSet<&'static str> {
    schedule.faults.iter().map(|fault| fault.what.verb()).collect()
}

/// The first faults of 60 schedules that the strategy draws must strike if they are alone: each is aimed at a
/// step of the run without faults, and nothing changes that run before.
fn single_faults_strike(strategy: Strategy) {
    let mut single = 0;
    for seed in 0..60 {
        let mut schedule = drawn(seed, strategy);
        schedule.faults.truncate(1);
        // A fault that strikes later than its point may come after the end of the run.
        if schedule.faults.iter().all(|fault| !fault.when.plus().is_zero()) {
            continue;
        }
        single += 1;
        let report = lab::run(&schedule, Arm::Fenced, seed).unwrap();
        assert_eq!(report.struck, [true], "{strategy}, seed {seed}\n{}", schedule.to_toml());
    }
    assert!(single > 20, "{strategy}: only {single} schedules begin with such a fault");
}

#[test]
fn aimed_faults_strike() {
    single_faults_strike(Strategy::Aimed);
}

#[test]
fn ordered_faults_strike_and_only_delay() {
    single_faults_strike(Strategy::Ordered);
    for seed in 0..60 {
        let others: Vec<_> = verbs(&drawn(seed, Strategy::Ordered)).into_iter().collect();
        assert!(others.iter().all(|verb| ["pause", "delay"].contains(verb)), "seed {seed}: {others:?}");
    }
}

#[test]
fn a_swarm_schedule_has_few_kinds_of_faults() {
    // Of schedules with as many faults, those of a swarm repeat a kind more often.
    let repeats = |strategy| {
        let schedules = (0..400).map(|seed| drawn(seed, strategy)).filter(|drawn| drawn.faults.len() == 4);
        let (mut all, mut repeating) = (0, 0);
        for schedule in schedules {
            all += 1;
            repeating += u32::from(verbs(&schedule).len() <= 2);
        }
        assert!(all > 20, "{strategy}: {all} schedules with four faults");
        f64::from(repeating) / f64::from(all)
    };
    let (swarm, uniform) = (repeats(Strategy::Swarm), repeats(Strategy::Uniform));
    assert!(swarm > 1.5 * uniform, "swarm {swarm:.2}, uniform {uniform:.2}");
}

#[test]
fn some_schedules_have_combined_faults() {
    let (mut back, mut flapping) = (0, 0);
    for seed in 0..300 {
        let faults = drawn(seed, Strategy::Swarm).faults;
        let fields: Vec<_> = faults.iter().map(|fault| format!("{:?}", fault.what)).collect();
        flapping += usize::from((1..fields.len()).any(|at| {
            faults[at].what.verb() == "cut"
                && fields[at] == fields[at - 1]
                && faults[at].when != faults[at - 1].when
        }));
        let steps = faults.iter().filter_map(|fault| fault.what.downcast_ref::<sim::faults::ClockStep>());
        let shifts: Vec<(&str, i64)> = steps.map(|step| (&*step.process, step.by.as_nanos())).collect();
        back += usize::from(shifts.iter().any(|(process, by)| shifts.contains(&(process, -by))));
    }
    assert!(back > 2 && flapping > 2, "{back} clocks set and set back, {flapping} flapping links");
}

/// Returns the moments that the faults of a schedule strike at.
fn moments(schedule: &Schedule<Options>) -> Vec<(&'static str, System)> {
    let system = schedule.options.system;
    let of = |fault: &Fault| {
        let what = &fault.what;
        let Trigger::After { process, point, .. } = &fault.when else { return None };
        let is_worker = schedule.options.workers.iter().any(|worker| worker.name == *process);
        let sends = point.starts_with("sends to ");
        if let Some(cancel) = what.downcast_ref::<Cancel>() {
            return Some(match cancel.call {
                Call::Acquire => "acquire dropped",
                Call::Renew => "renewal dropped",
                Call::Release => "release dropped",
            });
        }
        let crash = what.downcast_ref::<Crash>().and_then(|crash| crash.restart_after);
        match what.verb() {
            "reset" if sends && !is_worker => Some("reply lost"),
            "step" if sends => Some("clock stepped in flight"),
            "crash" if point.starts_with("receives from ") && crash <= Some(Span::from_millis(50)) => {
                Some("vote forgotten")
            }
            "evict" if is_worker => Some("lease evicted"),
            "promote" if is_worker => Some("promotion under a lease"),
            "delay" if is_worker && what.in_flight() >= schedule.options.ttl => Some("slow server"),
            _ => None,
        }
    };
    let mut moments: Vec<_> = schedule.faults.iter().filter_map(of).map(|moment| (moment, system)).collect();
    let resets = schedule.faults.iter().filter(|fault| fault.what.verb() == "reset").count();
    if system == System::REDLOCK && resets >= schedule.options.redis.nodes as usize {
        moments.push(("replies of all members lost", system));
    }
    moments
}

#[test]
fn the_exposed_moments_of_every_system_are_drawn() {
    for (strategy, seeds) in [(Strategy::Uniform, 3_000), (Strategy::Aimed, 2_000)] {
        let anywhere =
            ["reply lost", "clock stepped in flight", "vote forgotten", "slow server", "release dropped"];
        let of_each = System::of_locks().flat_map(|system| anywhere.map(|moment| (moment, system)));
        let of_redis = ["renewal dropped", "acquire dropped", "lease evicted", "promotion under a lease"];
        let mut missed: BTreeSet<_> = of_each.chain(of_redis.map(|moment| (moment, System::REDIS))).collect();
        if strategy == Strategy::Aimed {
            missed.insert(("replies of all members lost", System::REDLOCK));
        }
        for seed in 0..seeds {
            let drawn = moments(&drawn(seed, strategy));
            missed.retain(|moment| !drawn.contains(moment));
            if missed.is_empty() {
                break;
            }
        }
        assert!(missed.is_empty(), "{strategy}: not drawn: {missed:?}");
    }
}

#[test]
fn every_workload_and_mode_is_drawn() {
    let mut seen = BTreeSet::new();
    for seed in 0..1_500 {
        let options = drawn(seed, Strategy::Uniform).options;
        let worker = |is: fn(&Worker) -> bool| options.workers.iter().any(is);
        let has = [
            ("cas", worker(|worker| worker.mode.name() == "cas")),
            ("several keys at once", worker(|worker| worker.locks_several())),
            ("an election", worker(|worker| worker.leads())),
            ("an observer", worker(|worker| worker.observes())),
            ("nested sections", worker(|worker| worker.nests().is_some())),
            ("flights", worker(|worker| worker.flies())),
            ("renewal cap", worker(|worker| worker.renew_cap.is_some())),
            ("time to live of its own", worker(|worker| worker.ttl.is_some())),
            ("one worker", options.workers.len() == 1),
            ("eight workers", options.workers.len() == 8),
            ("four keys", options.keys.len() == 4),
            ("tokens by time", options.redis.tokens == Tokens::Time),
            ("called waiters", options.redis.waiting == Waiting::Called),
            ("Lock service", options.etcd.recipe == Recipe::Service),
            ("replica", options.redis.replica),
            ("long lease", options.ttl >= Span::from_secs(10)),
            ("polled waiters", options.redis.waiting == Waiting::Polled),
            ("Redis 8.4", options.redis.version == Version::Redis84),
            ("Valkey 9", options.redis.version == Version::Valkey9),
            ("an upgrade", options.redis.upgrade.is_some()),
        ];
        seen.extend(has.into_iter().filter(|(_, is)| *is).map(|(name, _)| name));
    }
    assert_eq!(seen.len(), 20, "{seen:?}");
}

#[test]
fn every_strategy_draws_the_same_options_for_a_seed() {
    for seed in 0..20 {
        for strategy in Strategy::ALL {
            assert_eq!(
                drawn(seed, *strategy).options,
                drawn(seed, Strategy::Uniform).options,
                "{strategy}, seed {seed}"
            );
        }
    }
}

#[test]
fn both_arms_take_the_same_schedules() {
    for seed in 0..12 {
        let [unfenced, fenced] = Lab::arms();
        let portfolio = Portfolio::default();
        let schedule = |lab: &Lab| lab.schedule(&mut portfolio.draw(seed)).unwrap().to_toml();
        assert_eq!(schedule(&unfenced), schedule(&fenced), "seed {seed}");
    }
}

#[test]
fn a_quarter_of_the_portfolio_is_uniform() {
    let portfolio = Portfolio::default();
    let uniform = (0..400).filter(|seed| portfolio.of(*seed) == Strategy::Uniform).count();
    assert!(uniform >= 100, "{uniform} of 400");
    let only = Portfolio::only(Strategy::Swarm);
    assert!((0..10).all(|seed| only.of(seed) == Strategy::Swarm));
}

#[test]
fn the_processes_of_a_closure_are_preempted_at_their_steps() {
    let subject = |sim: &mut Sim| {
        for name in ["a", "b"] {
            sim.process(name, |process: Process| async move {
                process.point("begins");
                process.point("ends");
            });
        }
    };
    for seed in 0..20 {
        let schedule = subject.schedule(&mut Draw::new(seed).by(Strategy::Ordered)).unwrap();
        assert!(!schedule.faults.is_empty(), "seed {seed}");
        let report = sim::sim::run(&subject, &schedule).unwrap();
        assert!(report.struck.iter().any(|struck| *struck), "seed {seed}\n{}", schedule.to_toml());
    }
}
