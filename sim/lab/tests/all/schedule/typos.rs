//! A schedule file with a mistake is refused; the error has the file, the line, the wrong name and the known
//! names.

use history::VerdictKind;
use lab::{System, WorkerMode};
use sim::faults::FAULTS;

/// A schedule of which each check below changes a part.
const GOOD: &str = r#"about  = "every section of a file"
system = "redis"
ttl    = "2s"
keys   = ["orders:42", "orders:43"]

[redis]
replica = true

[resource]
store = "redb"

[[worker]]
name = "a"
rounds = 2
check = false

[[worker]]
name = "b"
starts = "100ms"
read = "plain"

[[fault]]
when = { process = "a", after = "granted", nth = 1 }
what = { pause = "a", for = "5s" }

[[fault]]
when = { at = "2s" }
what = { promote = "replica-1" }

[expect.unfenced]
verdicts = ["overlap", "stale_write"]
accepted = ["b:2", "a:1"]
"#;

const WHEN: &str = r#"when = { process = "a", after = "granted", nth = 1 }"#;
const WHAT: &str = r#"what = { pause = "a", for = "5s" }"#;

/// Asserts that `GOOD` with `bad` in place of `good` is refused with `expected`, which begins with the line.
#[track_caller]
fn refused(good: &str, bad: &str, expected: &str) {
    assert_eq!(GOOD.matches(good).count(), 1, "`{good}` must be in the file once");
    let said = match lab::parse("seeds/x.toml", &GOOD.replace(good, bad)) {
        Ok(_) => format!("nothing: `{bad}` was accepted"),
        Err(error) => error.to_string(),
    };
    assert_eq!(said, format!("seeds/x.toml:{expected}"), "for {bad}");
}

#[test]
fn the_file_without_a_mistake_is_accepted() {
    lab::parse("seeds/x.toml", GOOD).unwrap();
}

#[test]
fn unknown_fields_are_refused() {
    let known = "expected one of `at`, `process`, `after`, `nth`, `plus`";
    refused(WHEN, r#"when = { proces = "a" }"#, &format!("23: unknown field `proces`, {known}"));
    refused("check = false", "chek = false", &format!("15: unknown field `chek`, {WORKER_FIELDS}"));
    refused("replica = true", "replicas = 1", &format!("7: unknown field `replicas`, {REDIS_FIELDS}"));
    refused("[resource]", "[resorce]", &format!("9: unknown field `resorce`, {TOP_FIELDS}"));
    refused(WHAT, r#"what = { pasue = "a" }"#, &format!("24: unknown field `pasue`, {}", what_fields()));
    let arms = "known are fenced, unfenced";
    refused("[expect.unfenced]", "[expect.unfence]", &format!("30: unknown arm `unfence`: {arms}"));
}

#[test]
fn unknown_names_are_refused() {
    let known = System::all().map(System::name).collect::<Vec<_>>().join(", ");
    let unknown = format!("2: unknown system `rediss`: known are {known}");
    refused(r#"system = "redis""#, r#"system = "rediss""#, &unknown);
    let known = "known are none, plain, fenced";
    refused(r#"read = "plain""#, r#"read = "plian""#, &format!("20: unknown read mode `plian`: {known}"));
    refused(r#"store = "redb""#, r#"store = "redbb""#, "10: unknown store `redbb`: known are memory, redb");
    let known = VerdictKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    let unknown = format!("31: unknown verdict `stale-write`: known are {known}");
    refused(r#""stale_write""#, r#""stale-write""#, &unknown);
}

#[test]
fn unknown_processes_and_keys_are_refused() {
    let known = "the schedule has a, b, redis-1, replica-1, resource";
    refused(WHAT, r#"what = { pause = "c" }"#, &format!("24: unknown process `c` in `pause`: {known}"));
    let cut = r#"what = { cut = ["a", "redis-2"] }"#;
    refused(WHAT, cut, &format!("24: unknown process `redis-2` in `cut`: {known}"));
    let partition = r#"what = { partition = [["a"], ["redis-3"]] }"#;
    refused(WHAT, partition, &format!("24: unknown process `redis-3` in `partition`: {known}"));
    let when = r#"when = { process = "c", after = "granted" }"#;
    refused(WHEN, when, &format!("23: unknown process `c` in `when`: {known}"));
    refused(r#""b:2""#, r#""d:2""#, "32: unknown worker `d` in `accepted`: the schedule has a, b");
    let known = "the schedule has orders:42, orders:43";
    refused("rounds = 2", r#"key = "orders:44""#, &format!("14: unknown key `orders:44` of `a`: {known}"));
    let evict = r#"what = { evict = "orders:44" }"#;
    refused(WHAT, evict, &format!("24: unknown key `orders:44` in `evict`: {known}"));
}

#[test]
fn points_that_are_never_passed_are_refused() {
    let when =
        |process: &str, point: &str| format!(r#"when = {{ process = "{process}", after = "{point}" }}"#);
    let worker = "requested, granted, not-granted, entered, read, worked, checked, sent, answered, \
                  release-requested, released, renewed, lost";
    let others = "extended, expired, deleted, accepted, repeated, rejected, claimed, GET, SET, DEL, \
                  EXISTS, EXPIRE, PEXPIRE, TTL, PTTL, INCR, INCRBY, TIME, PING, INFO, HELLO, CLIENT, \
                  EVAL, EVALSHA, SCRIPT";
    let unknown = format!("23: unknown point `grnated`: known are {worker}, {others}");
    refused(WHEN, &when("a", "grnated"), &unknown);
    let known = "the resource has read, accepted, repeated, rejected, claimed";
    refused(WHEN, &when("resource", "GET"), &format!("23: `resource` has no point `GET`: {known}"));
    refused(WHEN, &when("a", "expired"), &format!("23: `a` has no point `expired`: a worker has {worker}"));
    refused(WHEN, &when("a", "checked"), "23: `a` never passes `checked`: its `check` is false");
    refused(WHEN, &when("a", "renewed"), "23: `a` never passes `renewed`: its `renew` is false");
    refused(WHEN, &when("a", "read"), "23: `a` never passes `read`: its `read` is none");
    let why = "no worker has `read = \"fenced\"`";
    refused(WHEN, &when("resource", "claimed"), &format!("23: `resource` never passes `claimed`: {why}"));
}

#[test]
fn impossible_triggers_are_refused() {
    let nth = |nth: &str| format!(r#"when = {{ process = "a", after = "granted", nth = {nth} }}"#);
    refused(WHEN, &nth("0"), "23: `nth` is 0: passings of a point are counted from 1");
    refused(WHEN, &nth("3"), "23: `nth` = 3: `a` passes `granted` once a round and has `rounds` = 2");
    refused(WHEN, &nth("-1"), "23: invalid value: integer `-1`, expected u32");
    let needs = "23: `process` needs `after`: the point that it must have passed";
    refused(WHEN, r#"when = { process = "a" }"#, needs);
    let needs = "23: `after` needs `process`: the process that must have passed it";
    refused(WHEN, r#"when = { after = "granted" }"#, needs);
    refused(WHEN, "when = {}", "23: `when` needs either `at`, or `process` and `after`");
    let excludes = "23: `at` excludes `process`, `after`, `nth` and `plus`";
    refused(WHEN, r#"when = { at = "1s", nth = 2 }"#, excludes);
    refused(WHEN, r#"when = { at = "60s" }"#, "23: `at` = 1m is when the run is over (`limit` = 1m)");
}

#[test]
fn malformed_spans_are_refused() {
    let help = "write a number and a unit, such as 500ms, 1.5s or 1m";
    let span = |text: &str| format!(r#"starts = "{text}""#);
    let good = span("100ms");
    let number = "expected number at 0";
    let unit = "time unit needed, for example 1sec or 1ms";
    let limits = "number is too large or cannot be represented without a lack of precision (values below 1ns \
                  are not supported)";
    let cases = [
        ("1", unit),
        ("s", number),
        ("1.s", "invalid character at 1"),
        (".5s", number),
        ("1_000ms", "invalid character at 1"),
        ("+1s", number),
        ("-1s", number),
        ("", "value was empty"),
        ("0.5ns", limits),
        ("18446744073709551616ns", limits),
        ("18446744074s", "it ends at 584 years"),
    ];
    for (bad, problem) in cases {
        refused(&good, &span(bad), &format!("19: `{bad}` is no span of time ({problem}): {help}"));
    }
    let expected = "expected a span of time, such as \"500ms\", \"1.5s\" or \"1m\"";
    refused(&good, "starts = 100", &format!("19: invalid type: integer `100`, {expected}"));
    refused(r#"ttl    = "2s""#, r#"ttl = "0s""#, "3: `ttl` = 0s: it must be from 10ms to 60m");
    refused(WHAT, r#"what = { pause = "a", for = "0s" }"#, "24: `for` is 0s: the fault would do nothing");
}

#[test]
fn a_fault_has_one_action_with_its_own_fields() {
    let two = r#"what = { pause = "a", crash = "redis-1" }"#;
    refused(WHAT, two, "24: `pause` and `crash` in one fault: write a fault for each");
    refused(WHAT, r#"what = { pause = "a", by = "1s" }"#, "24: `by` does not apply to `pause`");
    let lasts = r#"what = { reset = ["a", "resource"], for = "1s" }"#;
    refused(WHAT, lasts, "24: `for` does not apply to `reset`");
    let both = r#"what = { reset = ["a", "resource"], both = true }"#;
    refused(WHAT, both, "24: `both` does not apply to `reset`");
    let verbs = FAULTS.iter().map(|kind| kind.verb).collect::<Vec<_>>().join(", ");
    refused(WHAT, r#"what = { for = "1s" }"#, &format!("24: `what` needs one of {verbs}"));
    refused(WHAT, r#"what = { delay = ["a", "resource"] }"#, "24: `delay` needs `by`: by how much");
    refused(WHAT, r#"what = { slew = "a", by = "+1s" }"#, "24: `slew` needs `over`: in how much time");
    let rate = "24: `rate` needs `factor`: clock seconds in a second of true time";
    refused(WHAT, r#"what = { rate = "a" }"#, rate);
    let unsigned = "`1s` has no sign: write +1s to move the clock forwards, -1s to move it back";
    refused(WHAT, r#"what = { step = "a", by = "1s" }"#, &format!("24: {unsigned}"));
}

#[test]
fn faults_on_unsuitable_processes_are_refused() {
    let no_replica = "28: `promote` of `replica-1`: the schedule has no replica (redis.replica)";
    refused("replica = true", "replica = false", no_replica);
    refused(WHAT, r#"what = { promote = "redis-1" }"#, "24: `promote` of `redis-1`: it is no replica");
    refused(WHAT, r#"what = { promote = "replica-1" }"#, "28: `replica-1` is promoted twice");
    refused(WHAT, r#"what = { resume = "b" }"#, "24: `resume` of `b`: no fault pauses it");
    refused(
        WHAT,
        r#"what = { stop = "a" }"#,
        "24: `stop` does not apply to the worker `a`: crash or pause it",
    );
    refused(WHAT, r#"what = { cancel = "redis-1" }"#, "24: `cancel` of `redis-1`: only workers acquire");
    let renews = "24: `call` = renew of `a`: its `renew` is false";
    refused(WHAT, r#"what = { cancel = "a", call = "renew" }"#, renews);
    let calls = "24: unknown call `renwe`: known are acquire, renew, release";
    refused(WHAT, r#"what = { cancel = "a", call = "renwe" }"#, calls);
    let leaderless = "24: `lead` of `redis-1`: only members of etcd and ZooKeeper have a leader";
    refused(WHAT, r#"what = { lead = "redis-1" }"#, leaderless);
    let power_loss = |name: &str| format!(r#"what = {{ crash = "{name}", power_loss = true }}"#);
    let diskless = |name: &str, why: &str| {
        format!("24: `power_loss` does not apply to `{name}`: it keeps nothing on a disk ({why})")
    };
    refused(WHAT, &power_loss("redis-1"), &diskless("redis-1", "redis.persistence = \"none\""));
    refused(WHAT, &power_loss("a"), &diskless("a", "a worker"));
}

#[test]
fn a_process_can_end_for_good_only_once() {
    let twice =
        format!("what = {{ stop = \"redis-1\" }}\n\n[[fault]]\n{WHEN}\nwhat = {{ crash = \"redis-1\" }}");
    refused(WHAT, &twice, "28: two faults end `redis-1` for good: give one of them a `restart_after`");
}

#[test]
fn faults_on_impossible_links_are_refused() {
    let links = "workers talk to lock servers, to PostgreSQL and to the resource, and lock servers of a \
                 cluster to each other";
    let link = |link: &str| format!("what = {{ cut = {link} }}");
    refused(WHAT, &link(r#"["a", "b"]"#), &format!("24: there is no link from `a` to `b`: {links}"));
    let none = format!("24: there is no link from `redis-1` to `resource`: {links}");
    refused(WHAT, &link(r#"["redis-1", "resource"]"#), &none);
    refused(WHAT, &link(r#"["a", "a"]"#), "24: `a` has no link to itself");
    refused(WHAT, &link(r#"["a"]"#), "24: a link has two ends: [\"from\", \"to\"]");
    let partition = |groups: &str| format!("what = {{ partition = {groups} }}");
    let few = "24: `partition` needs two groups at least, none of them empty";
    refused(WHAT, &partition(r#"[["a"]]"#), few);
    refused(WHAT, &partition(r#"[["a"], []]"#), few);
    refused(WHAT, &partition(r#"[["a"], ["a"]]"#), "24: `a` is in `partition` twice: name it once");
}

#[test]
fn clock_faults_without_effect_are_refused() {
    let rate = |factor: &str| format!(r#"what = {{ rate = "a", factor = {factor} }}"#);
    refused(WHAT, &rate("1.0"), "24: `factor` is 1: the fault would do nothing");
    refused(WHAT, &rate("0.0"), "24: `factor` = 0: it must be from 0.001 to 1000");
    refused(WHAT, &rate("nan"), "24: `factor` = NaN: it must be from 0.001 to 1000");
    refused(WHAT, r#"what = { step = "a", by = "+0s" }"#, "24: `by` is 0s: the fault would do nothing");
    let slew = r#"what = { slew = "a", by = "+1s", over = "0s" }"#;
    refused(WHAT, slew, "24: `over` is 0s: the fault would do nothing");
}

#[test]
fn impossible_workers_are_refused() {
    let b = r#"name = "b""#;
    refused(b, r#"name = "a""#, "18: two workers are called `a`");
    refused(b, "", "17: a worker has no name: write name = \"a\"");
    let letters = "take lower-case letters, digits and dashes";
    refused(b, r#"name = "B""#, &format!("18: `B` is no name for a worker: {letters}"));
    let server = "18: `redis-2` is no name for a worker: a Redis server is called so";
    refused(b, r#"name = "redis-2""#, server);
    let resource = "18: `resource` is no name for a worker: the resource is called so";
    refused(b, r#"name = "resource""#, resource);
    for (name, owner) in
        [("redis", "a Redis server"), ("network", "the network"), ("harness", "the simulator itself")]
    {
        let problem = format!("18: `{name}` is no name for a worker: {owner} is called so");
        refused(b, &format!("name = \"{name}\""), &problem);
    }
    refused("rounds = 2", "rounds = 0", "14: `rounds` of `a` is 0: it must be 1 at least");
    refused("rounds = 2", "writes = 0", "14: `writes` of `a` is 0: it must be 1 at least");
    let late = "19: `b` starts at 2m, when the run is over (`limit` = 1m)";
    refused(r#"starts = "100ms""#, r#"starts = "2m""#, late);
    let never = "14: `retry_every` of `a` is 0s: give it some time";
    refused("rounds = 2", r#"retry_every = "0s""#, never);
    let cap = "14: `renew_cap` needs `renew = true`: `a` does not renew";
    refused("rounds = 2", r#"renew_cap = "1s""#, cap);
    let zero = "14: `cancel_at` of `a` holds a 0: pendings are counted from 1";
    refused("rounds = 2", "cancel_at = [0]", zero);
    refused("rounds = 2", "cancel_at = [1, 2]", "14: `cancel_at` of `a` has 2 entries for 1 rounds");
}

/// Options of locks do not apply to a worker without the lock.
#[test]
fn options_of_another_worker_mode_are_refused() {
    let starts = r#"starts = "100ms""#;
    let known = WorkerMode::names().collect::<Vec<_>>().join(", ");
    let unknown = format!("19: unknown worker mode `csa`: known are {known}");
    refused(starts, r#"mode = "csa""#, &unknown);
    let needs = "14: `attempts` needs `mode = \"cas\"`: `a` waits for the lock until its `deadline`";
    refused("rounds = 2", "attempts = 3", needs);
    let idle = |field: &str, line: u32| {
        format!(
            "{line}: `{field}` does not apply to `mode = \"cas\"`: `%` takes no lock, and always reads \
             and writes once an attempt"
        )
    };
    refused(starts, r#"mode = "cas""#, &idle("read", 20).replace('%', "b"));
    for (field, value) in [
        ("retry_every", "\"1ms\""),
        ("ttl", "\"1s\""),
        ("renew", "true"),
        ("renew_cap", "\"1s\""),
        ("release", "\"none\""),
        ("writes", "2"),
        ("cancel_at", "[1]"),
    ] {
        let bad = format!("mode = \"cas\"\n{field} = {value}");
        refused("rounds = 2\ncheck = false", &bad, &idle(field, 15).replace('%', "a"));
    }
    refused("rounds = 2", r#"mode = "cas""#, &idle("check", 15).replace('%', "a"));
    let none = "15: `attempts` of `a` is 0: it must be 1 at least";
    refused("rounds = 2\ncheck = false", "mode = \"cas\"\nattempts = 0", none);
    let never = "24: `a` never passes `granted`: its `mode` is cas, it takes no lock";
    refused("rounds = 2\ncheck = false", "mode = \"cas\"\n", &never.replace("24", "23"));
}

#[test]
fn impossible_clusters_are_refused() {
    let keys = r#"keys   = ["orders:42", "orders:43"]"#;
    refused(keys, "keys = []", "4: `keys` is empty: workers need a key to lock");
    refused(keys, r#"keys = ["orders"]"#, "4: `orders` is no key: write type:id, such as orders:42");
    let empty = "the resource id of the lock key is empty: name the resource that the lock guards";
    refused(keys, r#"keys = ["orders:"]"#, &format!("4: `orders:` is no key: {empty}"));
    refused(keys, r#"keys = ["a:1", "a:1"]"#, "4: two keys are called `a:1`");
    refused("replica = true", "nodes = 5", "7: `nodes` = 5: `redis` has one, `redlock` several");
    let redlock = "6: `nodes` = 1: `redlock` needs at least 3";
    refused(r#"system = "redis""#, r#"system = "redlock""#, redlock);
    refused(r#"system = "redis""#, r#"system = "etcd""#, "6: `redis` does not apply to `etcd`");
    refused("[redis]", "[etcd]\nrecipe = \"service\"\n[redis]", "6: `etcd` does not apply to `redis`");
    let margin = "4: `drift_margin` = 3s leaves nothing of the TTL of `a`, 2s";
    refused(keys, r#"drift_margin = "3s""#, margin);
    let latency = "4: `latency` is empty: min = 2ms is above max = 1ms";
    refused(keys, r#"network.latency = { min = "2ms", max = "1ms" }"#, latency);
}

#[test]
fn impossible_expectations_are_refused() {
    let refuses = "33: `refused` holds a:1: a resource without fencing refuses nothing";
    refused(r#"accepted = ["b:2", "a:1"]"#, "accepted = []\nrefused = [\"a:1\"]", refuses);
    let no_write = "names no write: give the worker and its token, as in `b:2`";
    refused(r#""b:2""#, r#""b""#, &format!("32: `b` {no_write}"));
    refused(r#""b:2""#, r#""b:0""#, &format!("32: `b:0` {no_write}"));
    refused(r#"verdicts = ["overlap", "stale_write"]"#, "", "30: missing field `verdicts`");
}

#[test]
fn the_error_names_the_fields_line_within_a_table() {
    let spread = "\n[fault.when]\nprocess = \"a\"\nafter = \"granted\"\nnth = 9\n";
    let text = GOOD.replace(WHEN, "").replace(WHAT, &format!("{WHAT}\n{spread}"));
    let error = lab::parse("x", &text).unwrap_err().to_string();
    assert_eq!(error, "x:29: `nth` = 9: `a` passes `granted` once a round and has `rounds` = 2");
}

#[test]
fn an_error_in_a_schedule_from_code_names_the_field() {
    let mut schedule = lab::parse("x", GOOD).unwrap();
    schedule.options.redis.replica = false;
    assert_eq!(lab::validate(&schedule).unwrap_err().path.to_string(), "fault[1].what.promote");
}

#[test]
fn files_that_are_missing_or_not_toml_are_refused() {
    refused("rounds = 2", "rounds = = 2", "14: extra `=`, expected nothing");
    refused("rounds = 2", "rounds = 2\nrounds = 3", "15: duplicate key");
    let error = lab::load(std::path::Path::new("seeds/none.toml")).unwrap_err().to_string();
    assert_eq!(error, "seeds/none.toml: No such file or directory (os error 2)");
}

const TOP_FIELDS: &str = "expected one of `system`, `ttl`, `drift_margin`, `permits`, `readers`, `waiters_max`, \
                          `keys`, `within`, `mutant`, `tls`, `redis`, `etcd`, `resource`, `cron`, `worker`; every \
                          schedule has `about`, `seed`, `rekey`, `limit`, `network`, `core`, `expect`, `fault`";
const WORKER_FIELDS: &str = "expected one of `name`, `mode`, `attempts`, `starts`, `rounds`, `key`, \
                             `keys`, `depth`, `fails`, `jobs`, `think`, `shared`, `deadline`, `retry_every`, `work`, \
                             `ttl`, `check`, `read`, `renew`, `renew_cap`, `release`, `writes`, `retry_put`, `cancel_at`";
const REDIS_FIELDS: &str = "expected one of `nodes`, `persistence`, `replica`, `fence_start`, `tokens`, \
                            `waiting`, `version`, `upgrade`";

/// Returns the text that lists the fields of all faults.
fn what_fields() -> String {
    let mut known: Vec<_> = FAULTS.iter().map(|kind| kind.verb).collect();
    for field in FAULTS.iter().flat_map(|kind| kind.fields) {
        if !known.contains(field) {
            known.push(field);
        }
    }
    format!("expected one of `{}`", known.join("`, `"))
}
