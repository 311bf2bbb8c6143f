//! Any schedule that is written as TOML and read again is the same schedule.

use std::sync::Arc;

use history::{VerdictKind as Verdict, WriteBy as Write};
use lab::{
    Cron, Etcd, MissedMode, Options, Persistence, Point, ProcessKind, ReadMode, Recipe, Redis, ReleaseMode,
    Resource, Store, System, TickStore, Tokens, Version, Waiting, Worker, WorkerMode,
};
use proptest::collection::{btree_set, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::Union;
use sim::faults::{
    Action, Call, Cancel, ClockStep, Crash, Cut, Delay, Dns, Evict, FAULTS, Fault, Faults, Lead, Link, Part,
    Partition, Pause, Promote, Rate, Repeat, Reset, Resume, Signal, Slew, Stop, Terminate, Trigger,
};
use sim::sim::{CorePhase, Expect, Latency, Network, Outcome, Rekey};
use sim::{LookUpFault, Schedule, Shift, Span};

proptest! {
    #[test]
    fn a_schedule_survives_a_round_trip_through_toml(schedule in schedule()) {
        let text = schedule.to_toml();
        let read = Schedule::<Options>::read("written", &text, &Faults::default());
        let read = read.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(read, schedule, "{}", text);
    }

    #[test]
    fn a_span_survives_a_round_trip_through_text(span in span()) {
        prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
    }

    #[test]
    fn a_shift_survives_a_round_trip_through_text(shift in shift()) {
        prop_assert_eq!(shift.to_string().parse::<Shift>().unwrap(), shift);
    }

    #[test]
    fn any_text_is_read_or_refused_without_a_panic(
        text in "\\PC*",
        number in "[0-9]{1,22}[.]?[0-9]{0,22}(m|s|ms|us|ns)",
    ) {
        let _ = lab::parse("any", &text);
        let _ = text.parse::<Span>();
        let _ = text.parse::<Shift>();
        // A span that is read prints as the same span, though its text may differ.
        if let Ok(span) = number.parse::<Span>() {
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
    }
}

#[test]
fn every_point_belongs_to_a_kind_of_process() {
    for point in Point::ALL {
        assert!(ProcessKind::ALL.iter().any(|kind| point.applies_to(*kind)), "{point}");
        assert_eq!(point.name().parse::<Point>().unwrap(), *point);
    }
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![any::<u64>().prop_map(Span::from_nanos), (0..200_000_u64).prop_map(Span::from_millis)]
}

fn shift() -> impl Strategy<Value = Shift> {
    (-i64::MAX..=i64::MAX).prop_map(Shift::from_nanos)
}

fn name() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9-]{0,8}"
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~]{0,30}", "\\PC{0,10}", "[\"'\\\\\n\r\t a=\\[]{0,8}"]
}

fn link() -> impl Strategy<Value = Link> {
    (name(), name()).prop_map(|(from, to)| Link { from, to })
}

fn trigger() -> impl Strategy<Value = Trigger> {
    let after = (name(), select(Point::ALL), any::<u32>(), span());
    prop_oneof![
        span().prop_map(Trigger::At),
        after.prop_map(|(process, point, nth, plus)| Trigger::After {
            process,
            point: point.to_string(),
            nth,
            plus
        }),
    ]
}

/// Wraps an action as one of any type.
fn action<A: Action>(action: A) -> Arc<dyn Action> {
    Arc::new(action)
}

/// Generates the actions of a kind of fault, by its verb.
fn action_of(verb: &str) -> BoxedStrategy<Arc<dyn Action>> {
    let (process, lasts, names) = (name(), of(span()), vec(vec(name(), 0..3), 0..3));
    match verb {
        "pause" => (process, lasts).prop_map(|(process, lasts)| action(Pause { process, lasts })).boxed(),
        "resume" => process.prop_map(|process| action(Resume { process })).boxed(),
        "crash" => (process, any::<bool>(), lasts)
            .prop_map(|(process, power_loss, restart_after)| {
                action(Crash { process, power_loss, restart_after })
            })
            .boxed(),
        "stop" => (process, lasts)
            .prop_map(|(process, restart_after)| action(Stop { process, restart_after }))
            .boxed(),
        "terminate" => (process, select(Signal::ALL), span(), lasts)
            .prop_map(|(process, signal, grace, restart_after)| {
                action(Terminate { process, signal, grace, restart_after })
            })
            .boxed(),
        "promote" => process.prop_map(|replica| action(Promote { replica })).boxed(),
        "lead" => process.prop_map(|member| action(Lead { member })).boxed(),
        "evict" => {
            (text(), of(select(Part::ALL))).prop_map(|(key, part)| action(Evict { key, part })).boxed()
        }
        "cancel" => {
            (process, select(Call::ALL)).prop_map(|(worker, call)| action(Cancel { worker, call })).boxed()
        }
        "cut" => (link(), any::<bool>(), lasts)
            .prop_map(|(link, both, lasts)| action(Cut { link, both, lasts }))
            .boxed(),
        "delay" => (link(), span(), any::<bool>(), lasts)
            .prop_map(|(link, by, both, lasts)| action(Delay { link, by, both, lasts }))
            .boxed(),
        "partition" => (names, lasts).prop_map(|(groups, lasts)| action(Partition { groups, lasts })).boxed(),
        "reset" => link().prop_map(|link| action(Reset { link })).boxed(),
        "repeat" => (link(), of(span()), lasts)
            .prop_map(|(link, by, lasts)| action(Repeat { link, by, lasts }))
            .boxed(),
        "dns" => (of(process), select(LookUpFault::ALL), of(span()), lasts)
            .prop_map(|(process, how, by, lasts)| action(Dns { process, how, by, lasts }))
            .boxed(),
        "step" => (process, shift()).prop_map(|(process, by)| action(ClockStep { process, by })).boxed(),
        "slew" => (process, shift(), span())
            .prop_map(|(process, by, over)| action(Slew { process, by, over }))
            .boxed(),
        "rate" => (process, 0.001..1000.0, lasts)
            .prop_map(|(process, factor, lasts)| action(Rate { process, factor, lasts }))
            .boxed(),
        new => panic!("say here how to generate a fault `{new}`"),
    }
}

fn fault() -> impl Strategy<Value = Fault> {
    let what = Union::new(FAULTS.iter().map(|kind| action_of(kind.verb)));
    (trigger(), what).prop_map(|(when, what)| Fault { when, what })
}

fn worker() -> impl Strategy<Value = Worker> {
    let times = (span(), span(), span(), of(span()), span(), of(span()), of(span()));
    let modes = (select(ReadMode::ALL), select(ReleaseMode::ALL), any::<[bool; 4]>());
    let mode = select(WorkerMode::names().map(WorkerMode::new).collect::<Vec<_>>());
    let mode = (mode, of(any::<u32>()), vec(text(), 0..3), any::<[Option<u32>; 3]>());
    let counts = (any::<u32>(), any::<u32>(), vec(any::<u32>(), 0..4));
    (name(), of(text()), times, modes, counts, mode).prop_map(|(name, key, times, modes, counts, mode)| {
        let (mode, attempts, keys, [depth, fails, jobs]) = mode;
        let (starts, think, deadline, retry_every, work, ttl, renew_cap) = times;
        let (read, release, [check, renew, retry_put, shared]) = modes;
        let (rounds, writes, cancel_at) = counts;
        let base = Worker { name, key, starts, think, deadline, work, ttl, renew_cap, ..Worker::default() };
        let base = Worker { mode, attempts, keys, depth, fails, jobs, shared, retry_every, ..base };
        Worker { read, release, check, renew, retry_put, rounds, writes, cancel_at, ..base }
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let writes = || {
        of(vec(
            (name(), 1..=u64::MAX)
                .prop_map(|(worker, token)| Write { worker: worker.as_str().into(), token }),
            0..3,
        ))
    };
    let lists = (writes(), writes(), writes(), writes());
    let kinds = (btree_set(select(Verdict::ALL.to_vec()), 0..8), btree_set(text(), 0..3));
    (kinds, lists, of(any::<u32>()), of(any::<u32>())).prop_map(
        |((verdicts, findings), lists, grants, updates)| {
            let (accepted, refused, refused_reads, repeated) = lists;
            Outcome { verdicts, findings, accepted, refused, refused_reads, repeated, grants, updates }
        },
    )
}

fn cluster() -> impl Strategy<Value = (Network, Redis, Etcd, Resource)> {
    let network = (span(), span()).prop_map(|(min, max)| Network { latency: Latency { min, max } });
    let servers = (any::<u32>(), select(Persistence::ALL), any::<bool>());
    let versions = (select(Version::ALL), of(select(Version::ALL)));
    let redis = (servers, any::<u64>(), select(Tokens::ALL), select(Waiting::ALL), versions);
    let redis = redis.prop_map(|(servers, fence_start, tokens, waiting, (version, upgrade))| {
        let (nodes, persistence, replica) = servers;
        Redis { nodes, persistence, replica, fence_start, tokens, waiting, version, upgrade }
    });
    let etcd = (select(Recipe::ALL), any::<bool>());
    let etcd = etcd.prop_map(|(recipe, trusts_waiters)| Etcd { recipe, trusts_waiters });
    (network, redis, etcd, select(Store::ALL).prop_map(|store| Resource { store }))
}

/// Generates expectations of the arms, in any order.
fn expect() -> impl Strategy<Value = Expect> {
    let arms = vec((select(vec!["unfenced", "fenced"]), outcome()), 0..3);
    arms.prop_map(|arms| {
        let mut expect = Expect::default();
        for (arm, outcome) in arms {
            expect.demand(arm, outcome);
        }
        expect
    })
}

fn core() -> impl Strategy<Value = CorePhase> {
    let names = || vec(text(), 0..3);
    (span(), names(), names()).prop_map(|(at, crashed, cut)| CorePhase { at, crashed, cut })
}

fn cron() -> impl Strategy<Value = Cron> {
    let fields = (select(TickStore::ALL), span(), of(span()), select(MissedMode::ALL), of(any::<u32>()));
    fields.prop_map(|(record, every, late_max, missed, limit)| Cron {
        record,
        every,
        late_max,
        missed,
        limit,
    })
}

fn schedule() -> impl Strategy<Value = Schedule<Options>> {
    let head = (
        text(),
        select(System::all().collect::<Vec<_>>()),
        any::<u64>(),
        span(),
        of(span()),
        (of(2..10u32), any::<bool>(), of(1..100u32)),
        vec(text(), 0..3),
        span(),
        of(span()),
    );
    let body = (cluster(), of(text()), vec(worker(), 1..4), vec(fault(), 0..4), of(core()), expect(), cron());
    (head, body, vec(any::<u64>(), 0..3)).prop_map(|(head, body, rekey)| {
        let (about, system, seed, ttl, drift_margin, (permits, readers, waiters_max), keys, limit, within) =
            head;
        let ((network, redis, etcd, resource), mutant, workers, faults, core, expect, cron) = body;
        let options = Options::new(system, ttl, workers);
        let options = Options {
            drift_margin,
            permits,
            readers,
            waiters_max,
            keys,
            within,
            mutant,
            redis,
            etcd,
            resource,
            cron,
            ..options
        };
        let rekey = rekey.into_iter().enumerate();
        let rekey = rekey.map(|(at, seed)| Rekey { at: Span::from_secs(at as u64), seed }).collect();
        Schedule { about, seed, rekey, limit, network, faults, core, expect, options }
    })
}
