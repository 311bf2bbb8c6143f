//! The comparison with other locks, at a size too small for meaningful figures.

use std::process::{Command, Output};

use real::servers::Stage;
use serde_json::Value;

/// Peers that are fetched over the network. Left out, so that the test needs nothing but Debian's packages.
const FETCHED: &str = "redis-py,node-redlock,rslock,kazoo,kazoo's Election,redis-semaphore,bullmq,pg-boss";

fn peers(stage: &Stage, arguments: &[&str]) -> (Option<i32>, String, String, Option<Value>) {
    let file = stage.directory().join("peers.json");
    let small = ["--rounds", "1", "--operations", "20", "--contenders", "3", "--work", "5ms"];
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_real"))
        .arg("peers")
        .args(small)
        .args([
            "--hot",
            "500ms",
            "--tasks",
            "5",
            "--takers",
            "5",
            "--permits",
            "2",
            "--space",
            "100ms",
            "--out",
        ])
        .arg(&file)
        .args(arguments)
        .output()
        .unwrap();
    let results = std::fs::read(&file).ok().map(|text| serde_json::from_slice(&text).unwrap());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr), results)
}

#[test]
fn every_peer_has_its_row_in_every_arm() {
    let stage = Stage::new().unwrap();
    let (code, printed, error, results) = peers(&stage, &["--without", FETCHED]);
    assert_eq!(code, Some(0), "{printed}\n{error}");
    let results = results.unwrap();
    let rows = results["rows"].as_array().unwrap();
    let of = |scenario: &str| {
        let rows = rows.iter().filter(|row| row["scenario"] == scenario);
        let worked = rows.clone().all(|row| row["completed"].as_u64().unwrap() > 0);
        assert!(worked, "{scenario}: {printed}");
        rows.map(|row| row["peer"].as_str().unwrap()).collect::<Vec<_>>()
    };
    let secured = "dlock, Redis over TLS";
    let unfenced = "dlock, Redis, without a token";
    let others = ["dlock, etcd", "etcd's Lock service", "dlock, ZooKeeper"];
    let redis = ["dlock, Redis", "dlock, Redis, never polling"];
    assert_eq!(
        of("uncontended"),
        [
            "raw EVALSHA, bare socket",
            "raw EVALSHA, redis crate",
            "raw SET, redis crate",
            "dlock, Redis",
            "dlock, Redis, never polling",
            secured,
            unfenced,
            "raw etcd transaction",
            "dlock, etcd",
            "etcd's Lock service",
            "dlock, etcd, election",
            "etcd's Election service",
            "dlock, ZooKeeper",
            "dlock, ZooKeeper, election"
        ]
    );
    assert_eq!(of("hot"), [&redis[..], &others].concat());
    assert_eq!(of("space"), [&redis[..], &[secured, unfenced], &others].concat());
    assert_eq!(of("take"), [&redis[..], &[secured, unfenced, "redis-benchmark -P 64"]].concat());
    let redisson = ["dlock, Redis", "dlock, Redis, never polling", "Redisson's algorithm, redis crate"];
    let shared = [&redisson[..], &["dlock, etcd", "dlock, ZooKeeper"]].concat();
    // Semaphores, and locks of readers and a writer.
    for scenario in ["permit", "crowd", "read", "mixed"] {
        assert_eq!(of(scenario), shared, "{scenario}");
    }
    assert_eq!(of("nested"), redisson);
    // Their peers are fetched.
    assert_eq!(of("several"), redis);
    for scenario in ["claim", "drain"] {
        assert_eq!(of(scenario), [&redis[..], &["dlock, PostgreSQL"]].concat(), "{scenario}");
    }
    // All 20 operations are timed, and every target is judged.
    let uncontended = rows.iter().filter(|row| row["scenario"] == "uncontended");
    for row in uncontended {
        assert_eq!(row["completed"], 20, "{row}");
        assert!(row["acquire_p50_ns"].as_u64() > Some(0), "{row}");
    }
    assert!(!printed.contains("not measured"), "{printed}");
}

#[test]
fn a_peer_that_does_not_exist_is_named() {
    let stage = Stage::new().unwrap();
    let (code, _, error, results) = peers(&stage, &["--without", "redis-java"]);
    assert_eq!((code, results), (Some(2), None));
    assert!(error.contains("no peer `redis-java`"), "{error}");
}

#[test]
fn a_missing_peer_is_listed_and_fails_the_command() {
    let stage = Stage::new().unwrap();
    // The `PATH` has the servers but no node.
    let output = Command::new(env!("CARGO_BIN_EXE_real"))
        .args([
            "peers",
            "--rounds",
            "1",
            "--operations",
            "1",
            "--contenders",
            "1",
            "--work",
            "1ms",
            "--hot",
            "10ms",
        ])
        .args([
            "--tasks",
            "1",
            "--takers",
            "1",
            "--space",
            "10ms",
            "--without",
            "redis-py,rslock,kazoo,kazoo's Election",
            "--out",
        ])
        .arg(stage.directory().join("peers.json"))
        .env("npm_config_registry", "http://127.0.0.1:9")
        .env("PATH", path_without_node(&stage))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains("\nNot measured: node-redlock: "), "{printed}");
    assert!(printed.contains("| dlock, Redis |"), "{printed}");
}

/// Makes a folder for `PATH` with the programs that the command needs, and without node.
fn path_without_node(stage: &Stage) -> std::path::PathBuf {
    let folder = stage.subdirectory("bin").unwrap();
    for program in [
        "redis-benchmark",
        "redis-server",
        "etcd",
        "java",
        "sh",
        "env",
        // Tells whether there is a user to run PostgreSQL as.
        "getent",
        "cat",
        "rm",
        "kill",
        "mkdir",
        "sleep",
        "ls",
    ] {
        let found = ["/usr/bin", "/bin", "/usr/sbin", "/usr/local/bin"]
            .map(|place| std::path::Path::new(place).join(program))
            .into_iter()
            .find(|path| path.exists());
        if let Some(found) = found {
            std::os::unix::fs::symlink(found, folder.join(program)).unwrap();
        }
    }
    folder
}
