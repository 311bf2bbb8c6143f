//! Experiments 4, 5, 7, 10, 11 and 13, at a size too small for meaningful figures.

use serde_json::Value;

use crate::support::{Ran, experiment};

/// Returns the printed text without its line breaks.
fn words(ran: &Ran) -> String {
    ran.printed.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn contention_measures_each_system_and_number_of_contenders() {
    let loads = "loads=[{work=\"20ms\", rate=2.5, contenders=[4, 8, 60], lasts=\"2s\", \
         longer=[{contenders=8, lasts=\"4s\"}]}, \
         {work=\"50ms\", rate=0.5, contenders=[10, 200], lasts=\"2s\", at_once=true}, \
         {work=\"10ms\", rate=2.5, contenders=[4, 80], lasts=\"1s\", systems=[\"etcd\"]}]";
    let ran = experiment(4, &["--set", loads, "--set", "patience=20"]);
    // Throughput and waits mean little on a machine that is busy with other tests: assert only what holds on
    // any machine.
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.printed);
    let record: Value = serde_json::from_str(&ran.record).unwrap();
    let findings = &record["findings"];
    let points = findings["points"].as_array().unwrap();
    assert_eq!(points.len(), 4 * (3 + 2) + 2, "{findings}");
    let mut changes = 0;
    for point in points {
        let of = |field: &str| point[field].as_f64().unwrap();
        let reasons: u64 =
            point["failures"].as_object().unwrap().values().filter_map(|count| count.as_u64()).sum();
        assert_eq!(point["failed"], reasons, "{point}");
        assert!(of("p50_ms") <= of("p99_ms") && of("p99_ms") <= of("p999_ms"), "{point}");
        // At most one section more than fits into the load.
        let (work_s, lasts_s) = match point["work"].as_str().unwrap() {
            "20ms" => (0.02, if point["contenders"] == 8 { 4.0 } else { 2.0 }),
            "50ms" => (0.05, 2.0),
            _ => (0.01, 1.0),
        };
        assert!(of("served_per_second") <= 1.0 / work_s + 1.0 / lasts_s, "{point}");
        let attempts = of("attempts");
        assert!((of("offered_per_second") * lasts_s - attempts).abs() < 1e-6, "{point}");
        // A change is one to a holder that had waited: the first grant is none.
        for third in point["changes"].as_array().unwrap() {
            let of = |field: &str| third[field].as_f64().unwrap();
            assert!(of("late_young") <= of("late").min(of("young")) && of("late") <= of("count"), "{third}");
            assert!(of("count") == 0.0 || of("waits") >= 1.0, "{third}");
            changes += third["count"].as_u64().unwrap();
        }
        // Attempts come at random: as many as the seed draws, whatever the system.
        let same = points
            .iter()
            .find(|other| other["work"] == point["work"] && other["contenders"] == point["contenders"]);
        assert_eq!(point["attempts"], same.unwrap()["attempts"], "{point}");
    }
    assert!(changes > 50, "beyond the capacity nearly each holder has waited: {changes}");
    assert!(words(&ran).contains("No load with work of 50ms and below the capacity has 1,000 attempts"));
    // Set the figures of a quiet machine: a section every 12, 22 or 52 ms, and the waits of a queue with one
    // server.
    let quiet = |findings: &mut Value| {
        for point in findings["points"].as_array_mut().unwrap() {
            let cycle = match point["work"].as_str().unwrap() {
                "20ms" => 0.022,
                "50ms" => 0.052,
                _ => 0.012,
            };
            let offered = point["offered_per_second"].as_f64().unwrap();
            let busy = offered * cycle;
            let is_full = busy > 0.98;
            // Enough for a mean.
            point["attempts"] = 200.into();
            point["served_per_second"] = offered.min(1.0 / cycle).into();
            point["mean_ms"] = if is_full { 900.0 } else { 1e3 * busy * cycle / 2.0 / (1.0 - busy) }.into();
            point["abandoned"] = if is_full { point["attempts"].clone() } else { 0.into() };
            point["failed"] = 0.into();
        }
    };
    assert!(ran.is_expected_after(4, quiet));
    let is_expected_if = |number: usize, field: &str, value: f64| {
        ran.is_expected_after(4, |findings| {
            quiet(findings);
            let point = &mut findings["points"][number];
            point[field] = if field == "abandoned" { 0.into() } else { value.into() };
        })
    };
    // A lock can't serve more because more contenders ask; a wait may not be ten times that of the model; and
    // without a load beyond the capacity there is no model.
    assert!(!is_expected_if(2, "served_per_second", 400.0));
    assert!(!is_expected_if(1, "mean_ms", 200.0));
    assert!(!is_expected_if(2, "abandoned", 0.0));
}

#[test]
fn fairness_distinguishes_queues_from_unordered_locks() {
    let small = ["contenders=300", "rate=30.0", "lasts=\"4s\"", "work=\"20ms\""];
    let arguments: Vec<_> = small.iter().flat_map(|change| ["--set", change]).collect();
    let ran = experiment(5, &arguments);
    // On a machine that is busy with other tests, some may not be served in time.
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.printed);
    let record: Value = serde_json::from_str(&ran.record).unwrap();
    let arms = record["findings"]["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 5, "Redis with wake-ups and polling alone, Redlock, etcd, ZooKeeper: {record}");
    for arm in arms {
        // Attempts come at random: as many as the seed draws, whatever the system.
        assert_eq!(arm["all"]["offered"], arms[0]["all"]["offered"], "{arm}");
        let of = |field: &str| arm["all"][field].as_f64().unwrap();
        assert!(of("p50_ms") <= of("p99_ms") && of("p99_ms") <= of("p999_ms"), "{arm}");
    }
    // Set the figures of a quiet machine: 100 grants.
    let quiet = |findings: &mut Value| {
        for (number, arm) in findings["arms"].as_array_mut().unwrap().iter_mut().enumerate() {
            (arm["served"], arm["unserved"], arm["failed"]) = (100.into(), 1.into(), 0.into());
            arm["all"]["offered"] = 101.into();
            // 500 in a thousand where waiters poll or are called, 20 where a server keeps their order.
            arm["inversions"] = if number < 3 { 50 } else { 2 }.into();
        }
    };
    assert!(ran.is_expected_after(5, quiet));
    let is_expected_with = |arm: usize, field: &str, value: u64| {
        ran.is_expected_after(5, |findings| {
            quiet(findings);
            findings["arms"][arm][field] = value.into();
        })
    };
    assert!(!is_expected_with(3, "inversions", 4), "40 in a thousand are more than meet in a millisecond");
    assert!(!is_expected_with(0, "inversions", 0), "who polls is not served in order");
    assert!(!is_expected_with(4, "unserved", 2), "the load must be served");
}

#[test]
fn a_load_whose_queue_grows_is_refused() {
    let ran = experiment(5, &["--set", "rate=100.0"]);
    assert_eq!(ran.code, Some(2), "{}", ran.printed);
    assert!(ran.printed.contains("a rate below 1 / work"), "{}", ran.printed);
}

#[test]
fn many_locks_show_memory_and_expiry_for_each_layout() {
    let small = ["keys=80000", "shards=10", "expiry_ttl=\"3s\"", "every=\"200ms\"", "expiry_timeout=\"60s\""];
    let etcd = ["etcd_keys=2000", "etcd_every=500", "etcd_rounds=300"];
    // So few are granted long before their leases end, on a busy machine, too.
    let expiry = ["etcd_expiry_keys=300", "etcd_expiry_ttl=\"10s\""];
    let arguments: Vec<_> =
        small.iter().chain(&etcd).chain(&expiry).flat_map(|change| ["--set", change]).collect();
    let ran = experiment(7, &arguments);
    let findings = ran.findings();
    let memory = findings["memory"].as_array().unwrap();
    let keys: Vec<_> = memory.iter().map(|memory| memory["keys"].as_u64().unwrap()).collect();
    assert_eq!(
        keys[..4],
        [80_000, 160_000, 80_010, 160_000],
        "no counters, one for each lock, ten; by the lock"
    );
    // So many locks meet nearly all of the 16,384 hash slots: a counter serves five of them.
    assert!((94_000..=96_384).contains(&keys[4]), "{keys:?}");
    for curve in findings["expiry"].as_array().unwrap() {
        let last = curve["samples"].as_array().unwrap().last().unwrap();
        assert_eq!((&last["live"], &last["dbsize"]), (&0.into(), &0.into()), "{curve}");
    }
    assert_eq!(findings["expiry"][1]["idle"]["dbsize"], 80_000);
    assert!(!ran.is_expected_after(7, |findings| findings["expiry"][1]["idle"]["dbsize"] = 5.into()));
    for held in findings["etcd"].as_array().unwrap() {
        let reached = held["reached"].as_array().unwrap();
        let locks: Vec<_> = reached.iter().map(|reached| reached["locks"].as_u64().unwrap()).collect();
        // A transaction makes 32.
        let rounded: Vec<_> = locks.iter().map(|locks| locks - locks % 500).collect();
        assert_eq!(rounded, [500, 1000, 1500, 2000], "{held}");
        assert!(locks.iter().zip(rounded).all(|(locks, rounded)| locks - rounded < 32), "{held}");
        assert_eq!(held["end"], "made", "{held}");
    }
    assert!(ran.printed.contains("etcd at a quarter, half and the whole of the fill: "), "{}", ran.printed);
    // As if it had been filled with many, at a constant price of a lock or at a price that grows.
    let priced = |bytes: [u64; 4]| {
        ran.is_expected_after(7, |findings| {
            let each = &mut findings["etcd"][0];
            each["locks"] = 400_000.into();
            let samples = each["reached"].as_array_mut().unwrap().iter_mut();
            for (reached, (share, bytes)) in samples.zip((1..).zip(bytes)) {
                reached["locks"] = (share * 100_000).into();
                reached["memory_bytes"] = (share * 100_000 * bytes).into();
            }
        })
    };
    // It rises and falls with Go's collector, the same in each doubling.
    assert!(priced([9000, 3500, 3000, 4000]));
    assert!(!priced([3000, 3000, 3600, 3700]));
    assert!(!priced([3000, 3700, 3000, 3000]));
    let left = findings["etcd_expiry"]["samples"].as_array().unwrap();
    assert_eq!(left.last().unwrap()["keys"], 0, "{left:?}");
    assert!(!ran.is_expected_after(7, |findings| findings["etcd_expiry"]["filled"] = 299.into()));
    assert!(!ran.is_expected_after(7, |findings| findings["etcd_expiry"]["reclaimed_after_s"] = Value::Null));
    assert!(!ran.is_expected_after(7, |findings| {
        findings["growth"]["defragmented"] = findings["growth"]["after"].clone();
    }));
}

#[test]
fn the_price_of_safety_is_measured_for_each_kind_of_servers() {
    let sizes = ["operations=20", "tasks=4", "lasts=\"200ms\"", "writes=20", "rounds=2"];
    let ran = experiment(10, &sizes.map(|size| ["--set", size]).concat());
    // On a machine that is busy with other tests, a disk may be as fast as none.
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.printed);
    let wide = ran.printed.lines().find(|line| line.chars().count() > 80 && !line.starts_with("raw results"));
    assert_eq!(wide, None, "a line of more than 80 columns");
    let record: Value = serde_json::from_str(&ran.record).unwrap();
    let (locks, writes) = (&record["findings"]["locks"], &record["findings"]["writes"]);
    let locks = locks.as_array().unwrap();
    let settings: Vec<_> = locks.iter().map(|lock| lock["setting"].as_str().unwrap()).collect();
    let redis = ["no-disk", "every-second", "each-write", "replica", "wait"];
    assert_eq!(settings, [&redis[..], &["one", "three"], &["one", "three", "five"]].concat());
    for lock in locks {
        let of = |field: &str| lock[field].as_f64().unwrap();
        assert!(0.0 < of("p50_ms") && of("p50_ms") <= of("p99_ms"), "{lock}");
        assert!(0.0 < of("alone_per_second") && 0.0 < of("together_per_second"), "{lock}");
    }
    for write in writes.as_array().unwrap() {
        assert_eq!(write["writes"], 40, "{write}");
    }
    let updates = record["findings"]["updates"].as_array().unwrap();
    assert_eq!(updates.len(), 4, "by one statement and by a transaction, without the check and with it");
    for update in updates {
        let is_checked = update["by"] == "transaction" && update["fence"] == "on";
        assert_eq!(
            (&update["updates"], &update["audited"]),
            (&40.into(), &(if is_checked { 40 } else { 0 }).into())
        );
        let of = |field: &str| update[field].as_f64().unwrap();
        assert!(0.0 < of("p50_ms") && of("p50_ms") <= of("p99_ms"), "{update}");
    }

    // Set the figures of a quiet machine.
    let quiet = |findings: &mut Value| {
        for lock in findings["locks"].as_array_mut().unwrap() {
            let is_slow = lock["setting"] == "each-write" || lock["setting"] == "wait";
            lock["p50_ms"] = if is_slow { 2.0 } else { 1.0 }.into();
        }
    };
    assert!(ran.is_expected_after(10, quiet));
    let waits_for_nothing = |findings: &mut Value| {
        quiet(findings);
        findings["locks"][4]["p50_ms"] = 1.0.into();
    };
    assert!(!ran.is_expected_after(10, waits_for_nothing));
    let needs_no_disk = |findings: &mut Value| {
        quiet(findings);
        findings["locks"][2]["p50_ms"] = 1.0.into();
    };
    assert!(!ran.is_expected_after(10, needs_no_disk));
    let does_not_check = |findings: &mut Value| {
        quiet(findings);
        findings["updates"][3]["audited"] = 0.into();
    };
    assert!(!ran.is_expected_after(10, does_not_check));
}

#[test]
fn conditional_updates_and_a_lock_serve_the_same_contenders() {
    let works = "works=[{takes=\"5ms\", computes=false}, {takes=\"5ms\", computes=true}]";
    let sizes = [works, "contenders=[1, 8]", "waiting_contenders=[]", "lasts=\"1s\"", "runs=2"];
    let ran = experiment(11, &sizes.map(|size| ["--set", size]).concat());
    // The throughput means little on a machine that is busy with other tests.
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.printed);
    let record: Value = serde_json::from_str(&ran.record).unwrap();
    let points = record["findings"]["points"].as_array().unwrap();
    let ways: Vec<_> = points.iter().map(|point| point["way"].as_str().unwrap()).collect();
    assert_eq!(ways, ["conditional", "lock"].repeat(4));
    // A contender without others tries once, and no contender with the lock works in vain.
    for (point, in_vain) in points.iter().zip([false, false, true, false].repeat(2)) {
        assert_eq!(point["in_vain"].as_f64().unwrap() > 0.0, in_vain, "{point}");
        // The row changes at most once in the time of the work.
        let rate = point["updates_per_second"].as_f64().unwrap();
        assert!(rate > 0.0 && rate <= 205.0, "{point}");
        // An update takes at least its work.
        assert!(point["p50_ms"].as_f64().unwrap() >= 5.0, "{point}");
        let runs = point["runs"].as_array().unwrap();
        assert_eq!(runs.len(), 2, "{point}");
        let rates: Vec<_> = runs.iter().map(|run| run["updates_per_second"].as_f64().unwrap()).collect();
        assert!((rates.iter().sum::<f64>() / 2.0 - rate).abs() < 1e-9, "{point}");
        if point["contenders"] == 1 {
            assert!(runs.iter().all(|run| run["unserved"] == 0 && run["p99_ms"].is_number()), "{point}");
        }
    }
    // Eight contenders that compute under the lock serve most, in each run.
    let set_rate = |point: &mut Value, rate: f64| {
        point["updates_per_second"] = rate.into();
        for run in point["runs"].as_array_mut().unwrap() {
            run["updates_per_second"] = rate.into();
        }
    };
    let quiet = |findings: &mut Value| set_rate(&mut findings["points"][7], 1e6);
    assert!(ran.is_expected_after(11, quiet));
    let is_expected_with = |number: usize, field: &str, value: f64| {
        ran.is_expected_after(11, |findings| {
            quiet(findings);
            findings["points"][number][field] = value.into();
        })
    };
    assert!(!is_expected_with(2, "in_vain", 0.0), "conditional updates can't always win");
    assert!(!is_expected_with(3, "in_vain", 0.1), "a lock lets nobody work in vain");
    assert!(!is_expected_with(3, "updates_per_second", 0.0), "all are served");
    let serves_as_much = |findings: &mut Value| {
        quiet(findings);
        set_rate(&mut findings["points"][6], 1e6);
    };
    assert!(!ran.is_expected_after(11, serves_as_much), "the lock serves more");
    let overlaps = |findings: &mut Value| {
        quiet(findings);
        findings["points"][7]["runs"][0]["updates_per_second"] = 0.1.into();
    };
    assert!(!ran.is_expected_after(11, overlaps), "a run in which it serves less is a reason to doubt");
}

#[test]
fn holders_that_renew_keep_their_leases_beyond_the_ttl() {
    let sizes = ["work=\"1500ms\"", "ttls=[\"1s\"]", "holders=[2, 20]", "rounds=1", "repeats=2"];
    let ran = experiment(13, &sizes.map(|size| ["--set", size]).concat());
    let findings = ran.findings();
    let cells = findings["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4 * 2 * 2, "{findings}");
    // A lease of 1 s is renewed every third of a second of the work, on each system.
    for cell in cells {
        let (holders, renewals) = (cell["holders"].as_u64().unwrap(), cell["renewals"].as_u64().unwrap());
        assert!((2 * holders..=6 * holders).contains(&renewals), "{cell}");
    }
    assert!(words(&ran).contains("tasks of one process with one thread"), "{}", ran.printed);
    let loses = |findings: &mut Value| {
        (findings["cells"][0]["done"], findings["cells"][0]["lost"]) = (1.into(), 1.into());
    };
    assert!(!ran.is_expected_after(13, loses));
    let refuses = |findings: &mut Value| findings["cells"][0]["failed"] = 1.into();
    assert!(!ran.is_expected_after(13, refuses));
}
