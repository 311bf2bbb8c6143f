//! `gen` on an etcd that refuses writes says so, after it has reported and kept what there is.

use std::fs;
use std::process::Command;

use etcd_client::{AlarmAction, AlarmType, Client};
use real::servers::{EtcdCluster, Stage};
use serde_json::Value;
use tokio::runtime::Builder;

/// Raises the alarm with which a member refuses writes when its database has reached its quota.
fn refuse_writes(address: &str) {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let mut client = Client::connect([address], None).await.unwrap();
        client.alarm(AlarmAction::Activate, AlarmType::Nospace, None).await.unwrap();
    });
}

#[test]
fn a_fill_that_the_etcd_ends_is_reported_and_kept() {
    let stage = Stage::new().unwrap();
    let etcd = EtcdCluster::start_one(&stage).unwrap();
    let address = etcd.members[0].address();
    refuse_writes(&address);
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(["gen", "--system", "etcd", "--server", &address, "--keys", "100", "--out", "filled.json"]);
    let output = command.current_dir(stage.directory()).output().unwrap();
    let [printed, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(printed.starts_with("0 locks in "), "{printed}");
    assert!(error.contains("the etcd failed after 0 of 100 locks: ") && error.contains("2 GB"), "{error}");
    let kept = fs::read_to_string(stage.directory().join("filled.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["locks"], 0);
    assert!(kept["failed"].as_str().unwrap().contains("database space exceeded"), "{kept}");
}
