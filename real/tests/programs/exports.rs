//! tshark reads the packet captures of simulated runs: it resolves the addresses, dissects all protocols, and
//! finds nothing malformed. Redis and HTTP need no hint, the others `tools/wireshark/dlock.lua`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use lab::Arm;
use lab::museum::{self, Museum};
use sim::Report;
use sim::trace::pcap::pcap;

/// Dissects ZooKeeper, and gRPC on etcd's port.
const SCRIPT: &str = concat!("lua_script:", env!("CARGO_MANIFEST_DIR"), "/../tools/wireshark/dlock.lua");

/// A capture in a file.
struct Captured {
    file: String,
    /// True if tshark is told of [`SCRIPT`].
    has_hints: bool,
}

/// Runs a schedule of `seeds/` and saves its capture.
fn capture(name: &str) -> (Captured, Report) {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds");
    let schedule = museum::load(&seeds.join(format!("{name}.toml"))).unwrap();
    let mut world = sim::sim::build(&Museum::new(Arm::Fenced), &schedule).unwrap();
    let report = world.record_messages().run().unwrap();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcapng"));
    std::fs::write(&file, pcap(report.capture.as_ref().unwrap())).unwrap();
    let has_hints = !matches!(name, "gc-pause" | "ambiguous-acquire-given-up");
    (Captured { file: file.display().to_string(), has_hints }, report)
}

impl Captured {
    /// Returns the `fields` of the packets that `filter` selects, a row for each packet.
    fn fields(&self, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
        let mut command = Command::new("tshark");
        // Checksums are checked, and addresses get the names that the capture has for them.
        command.args(["-r", &self.file, "-N", "n", "-Y", filter, "-T", "fields", "-E", "occurrence=a"]);
        command.args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
        if self.has_hints {
            command.args(["-X", SCRIPT]);
        }
        fields.iter().for_each(|field| {
            command.args(["-e", field]);
        });
        let output = command.output().expect("tshark is not installed: run `apt-get install tshark`");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    /// Returns the different values of a field.
    fn values(&self, filter: &str, field: &str) -> BTreeSet<String> {
        self.fields(filter, &[field]).into_iter().flat_map(|row| row.into_iter().next()).collect()
    }

    /// Returns the protocols that tshark names in its list of packets, each with the number of its packets.
    fn protocols(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for row in self.fields("tcp", &["_ws.col.Protocol"]) {
            *counts.entry(row[0].clone()).or_default() += 1;
        }
        counts
    }

    /// Asserts that tshark finds no fault with any packet.
    fn assert_sound(&self) {
        let faults = "_ws.malformed || _ws.expert.severity == error || ip.checksum.status == \"Bad\" \
                      || tcp.checksum.status == \"Bad\" || tcp.analysis.ack_lost_segment \
                      || tcp.analysis.lost_segment || tcp.analysis.window_full";
        let found = self.fields(faults, &["frame.number", "_ws.col.Protocol", "_ws.col.Info"]);
        assert_eq!(found, Vec::<Vec<String>>::new(), "{}", self.file);
    }
}

fn set(values: &[&str]) -> BTreeSet<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

#[test]
fn redis_and_http_are_dissected() {
    let (capture, report) = capture("gc-pause");
    capture.assert_sound();
    assert_eq!(capture.values("tcp.flags.syn == 1 && tcp.flags.ack == 0", "ip.src_host"), set(&["a", "b"]));
    assert_eq!(capture.values("resp && tcp.dstport == 6379", "ip.dst_host"), set(&["redis-1"]));
    let commands = capture.values("resp && tcp.dstport == 6379", "_ws.col.Info");
    assert!(commands.iter().any(|info| info.starts_with("Request: EVALSHA ")), "{commands:?}");
    let codes = capture.values("http.response && ip.src_host == \"resource\"", "http.response.code");
    assert_eq!(codes, set(&["200", "409"]));
    // The true time, from the epoch of the simulated wall clocks.
    let put = report.messages.iter().find(|message| message.words.starts_with("PUT")).unwrap();
    let sent = capture.fields("http.request.method == PUT", &["frame.time_epoch"]);
    let epoch = sim::world::clock::EPOCH_NANOS / 1_000_000_000;
    assert_eq!(
        sent[0][0],
        format!("{}.{:09}", epoch + put.sent.0 / 1_000_000_000, put.sent.0 % 1_000_000_000)
    );
}

#[test]
fn grpc_is_dissected() {
    let (capture, _) = capture("etcd-gc-pause");
    capture.assert_sound();
    assert!(capture.protocols().contains_key("GRPC"), "{:?}", capture.protocols());
    let paths: BTreeSet<String> = capture
        .values("http2.headers.path", "http2.headers.path")
        .iter()
        .flat_map(|paths| paths.split(',').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    for path in
        ["/etcdserverpb.KV/Txn", "/etcdserverpb.Lease/LeaseGrant", "/etcdserverpb.Lease/LeaseKeepAlive"]
    {
        assert!(paths.contains(path), "{paths:?}");
    }
}

#[test]
fn zookeeper_is_dissected() {
    let (capture, _) = capture("gc-pause-zookeeper");
    capture.assert_sound();
    let values = |field: &str| -> BTreeSet<String> {
        let values = capture.values(field, field);
        values.iter().flat_map(|values| values.split(',').map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    // create2, getChildren2, ping; no node.
    assert!(values("zookeeper.operation").is_superset(&set(&["15", "12", "11"])));
    assert!(values("zookeeper.error").is_superset(&set(&["0", "-101"])));
    assert!(values("zookeeper.path").contains("/locks/orders:42"), "{:?}", values("zookeeper.path"));
    assert_eq!(capture.values("zookeeper.event", "zookeeper.event"), set(&["2"]));
}

#[test]
fn a_segment_that_a_cut_link_holds_is_retransmitted() {
    let (capture, report) = capture("ambiguous-acquire-given-up");
    capture.assert_sound();
    let held = report.capture.unwrap().connections.into_iter().flat_map(|connection| connection.segments);
    let held =
        held.filter(|segment| matches!(segment.passage, sim::world::capture::Passage::Released { .. }));
    let retransmitted = capture.fields("tcp.analysis.retransmission && tcp.len > 0", &["frame.number"]);
    assert_eq!((held.count(), retransmitted.len()), (2, 2));
    let comments = capture.values("frame.comment", "frame.comment");
    assert!(comments.iter().any(|comment| comment.starts_with("held by a cut link until")), "{comments:?}");
}
