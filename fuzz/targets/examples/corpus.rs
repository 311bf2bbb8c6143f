//! Writes the inputs with which fuzzing begins into `fuzz/corpus/`: the kept schedules, and the histories and
//! bytes that their runs leave behind. Run `cargo run --example corpus`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a developer's tool fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use lab::museum::{self, Museum};
use lab::{Arm, Options};
use sim::explore::fleet::{Capsule, Origin};
use sim::world::capture::{Connection, Side};
use sim::{Report, Schedule};

/// Kept schedules, one for each lock system and kind of work.
const SCHEDULES: [&str; 12] = [
    "gc-pause",
    "gc-pause-redlock",
    "etcd-gc-pause",
    "gc-pause-zookeeper",
    "etcd-fifo",
    "zookeeper-fifo",
    "redis-crowd",
    "majority-crash",
    "failover-lost-lock",
    "cas-beside-lock",
    "clock-step-or-slew-slew",
    "etcd-leader-change",
];

/// The longest stream of a connection that is kept, in bytes, and the longest history, in lines.
const STREAM_BYTES_MAX: usize = 2048;
const LINES_MAX: usize = 40;

/// The cuts of every stream.
const CUTS: u8 = 7;

fn main() {
    for name in SCHEDULES {
        let file = root().join(format!("../seeds/{name}.toml"));
        let schedule = museum::load(&file).expect("a kept schedule");
        let report = run(&schedule);
        save("schedule", name, schedule.to_toml().as_bytes());
        save("capsule", name, &capsule(name, &schedule, &report));
        save("history", name, &history(&report));
        streams(name, &report);
    }
    for (name, text) in dlock::scripts() {
        save(
            "lua_gate",
            name,
            &[text.as_bytes(), b"\0lock:v1:{orders:42}:owner\0a:7f3c9e12\x002000"].concat(),
        );
    }
}

fn run(schedule: &Schedule<Options>) -> Report {
    let mut sim = sim::sim::build(&Museum::new(Arm::Unfenced), schedule).expect("a valid schedule");
    sim.record_messages();
    sim.run().expect("a run")
}

fn capsule(name: &str, schedule: &Schedule<Options>, report: &Report) -> Vec<u8> {
    let capsule = Capsule {
        name: name.to_owned(),
        cause: "a pause".to_owned(),
        arm: "unfenced".to_owned(),
        verdicts: report.kinds().into_iter().collect(),
        findings: vec!["holder accepted: `a` wrote after `b`".to_owned()],
        seed: schedule.seed,
        faults: schedule.faults.len(),
        schedule: schedule.to_toml(),
        drawn: "about = \"\"\n".to_owned(),
        trace_hash: Some(format!("{:016x}", report.hash)),
        search: Origin {
            version: "0.1.0".to_owned(),
            behaviour: "0".to_owned(),
            subject: "redis".to_owned(),
            strategy: "random".to_owned(),
            first: 0,
            shard: "1/4".to_owned(),
        },
    };
    serde_json::to_vec_pretty(&capsule).unwrap()
}

/// Returns the events of the run's end, where its verdicts are.
fn history(report: &Report) -> Vec<u8> {
    // All rules but that of order, on one server.
    let mut log = vec![0b0111_1110];
    for event in &report.events[report.events.len().saturating_sub(LINES_MAX)..] {
        event.write_json(&mut log).unwrap();
    }
    log
}

/// Saves both directions of the first connection to each port.
fn streams(name: &str, report: &Report) {
    let connections = &report.capture.as_ref().unwrap().connections;
    let mut ports = Vec::new();
    for connection in connections {
        if !ports.contains(&connection.port) {
            ports.push(connection.port);
            stream(name, connection);
        }
    }
}

fn stream(name: &str, connection: &Connection) {
    let [asked, answered] = [Side::Opener, Side::Acceptor].map(|side| bytes(connection, side));
    match connection.port {
        6379 => {
            save("resp", &format!("{name}-requests"), &[&[0, CUTS], &asked[..]].concat());
            save("resp", &format!("{name}-replies"), &[&[128, CUTS], &answered[..]].concat());
        }
        2181 => {
            save(
                "zookeeper",
                &format!("{name}-requests"),
                &[&[2, CUTS], &records(&frames(&asked))[..]].concat(),
            );
            save(
                "zookeeper",
                &format!("{name}-replies"),
                &[&[3, CUTS], &records(&frames(&answered))[..]].concat(),
            );
        }
        2379 => {
            let pieces = |bytes: &[u8]| bytes.chunks(200).map(<[u8]>::to_vec).collect::<Vec<_>>();
            // The preface of a client is not part of an input.
            save(
                "etcd_http2",
                &format!("{name}-requests"),
                &[&[2], &records(&pieces(&asked[24..]))[..]].concat(),
            );
            save(
                "etcd_http2",
                &format!("{name}-replies"),
                &[&[3], &records(&pieces(&answered))[..]].concat(),
            );
        }
        _ if asked.starts_with(b"GET") || asked.starts_with(b"PUT") => {
            save("resource_http", &format!("{name}-requests"), &[&[1, CUTS], &asked[..]].concat());
        }
        _ => {}
    }
}

/// Returns what one end of a connection sent, up to the longest stream.
fn bytes(connection: &Connection, side: Side) -> Vec<u8> {
    let segments = connection.segments.iter().filter(|segment| segment.from == side);
    let mut bytes: Vec<u8> = segments.flat_map(|segment| segment.bytes.iter().copied()).collect();
    bytes.truncate(STREAM_BYTES_MAX);
    bytes
}

/// Splits a stream of ZooKeeper into its frames, without their lengths.
fn frames(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk() {
        let length = usize::try_from(u32::from_be_bytes(*head)).unwrap();
        let Some((frame, rest)) = rest.split_at_checked(length) else { break };
        frames.push(frame.to_vec());
        bytes = rest;
    }
    frames
}

/// Writes records, each after one byte for its length.
fn records(records: &[Vec<u8>]) -> Vec<u8> {
    let record = |record: &Vec<u8>| [&[u8::try_from(record.len()).unwrap()], &record[..]].concat();
    records.iter().filter(|record| record.len() < 256).flat_map(record).collect()
}

fn save(target: &str, name: &str, input: &[u8]) {
    let folder = root().join("corpus").join(target);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), input).unwrap();
}

fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).to_owned()
}
