//! etcd after a restore from a backup: its revision is behind what the resource has seen. docs/runbook.md
//! says what to do: raise it by writes, or restore with a raised revision.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use etcd_client::Client;
use real::servers::{Etcd, EtcdCluster, Stage};
use tokio::runtime::Builder;

use crate::holders::{Crowd, Servers};

/// Runs `real` in the folder of the stage; returns its exit code and all that it printed.
fn real(stage: &Stage, crowd: &Crowd, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    let (servers, resource) = (member(crowd).address(), crowd.resource());
    command.args(arguments).args(["--system", "etcd", "--servers", &servers, "--resource", &resource]);
    let output = command.current_dir(stage.directory()).output().unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn member(crowd: &Crowd) -> &Etcd {
    let Servers::Etcd(cluster) = &crowd.servers else { panic!("it is not etcd") };
    &cluster.members[0]
}

fn member_mut(crowd: &mut Crowd) -> &mut Etcd {
    let Servers::Etcd(cluster) = &mut crowd.servers else { panic!("it is not etcd") };
    &mut cluster.members[0]
}

/// Works under the lock orders:0. Returns the exit code and the output.
fn work(stage: &Stage, crowd: &Crowd, rounds: &str) -> (Option<i32>, String) {
    real(stage, crowd, &["worker", "--key", "orders", "--work", "0", "--ttl", "30s", "--rounds", rounds])
}

/// Saves a snapshot as `etcdctl snapshot save` does; returns its path.
fn snapshot(stage: &Stage, crowd: &Crowd) -> PathBuf {
    let path = stage.directory().join("snapshot.db");
    let saved = Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let mut client = Client::connect([member(crowd).address()], None).await.unwrap();
        let (mut stream, mut saved) = (client.snapshot().await.unwrap(), Vec::new());
        while let Some(part) = stream.message().await.unwrap() {
            saved.extend_from_slice(part.blob());
        }
        saved
    });
    fs::write(&path, saved).unwrap();
    path
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Checks that the resource refuses every grant, and that `inspect` says why.
fn is_behind(stage: &Stage, crowd: &Crowd) {
    let (code, printed) = work(stage, crowd, "2");
    assert!(code == Some(1) && printed.contains("2 of 2 writes failed"), "{printed}");
    let (code, printed) = real(stage, crowd, &["inspect", "orders:0"]);
    assert!(code == Some(1) && printed.contains("- The cluster is at "), "{printed}");
}

/// Checks that writes go on.
fn is_ahead(stage: &Stage, crowd: &Crowd) {
    let (code, printed) = real(stage, crowd, &["inspect", "orders:0"]);
    assert!(code == Some(0) && printed.contains("Everything fits together"), "{printed}");
    let (code, printed) = work(stage, crowd, "2");
    assert!(code == Some(0) && printed.matches("written; released").count() == 2, "{printed}");
}

#[test]
fn writes_go_on_after_the_revision_is_raised_by_writes() {
    let stage = Stage::new().unwrap();
    let mut crowd = Crowd::new(&stage, Servers::start(&stage, "etcd"));
    assert_eq!(work(&stage, &crowd, "2").0, Some(0));
    // A backup of the files, taken while it does not run, as etcd 3.4 has no other that needs no etcdctl.
    let (data, backup) = (member(&crowd).data(), stage.directory().join("backup"));
    member_mut(&mut crowd).process().kill();
    copy(&data, &backup);
    member_mut(&mut crowd).restart().unwrap();
    assert_eq!(work(&stage, &crowd, "40").0, Some(0));
    member_mut(&mut crowd).process().kill();
    fs::remove_dir_all(&data).unwrap();
    copy(&backup, &data);
    member_mut(&mut crowd).restart().unwrap();

    is_behind(&stage, &crowd);
    let (code, printed) = real(&stage, &crowd, &["raise", "orders:0", "--reason", "restored"]);
    assert!(code == Some(0) && printed.contains("raised: "), "{printed}");
    is_ahead(&stage, &crowd);
    let (code, printed) = real(&stage, &crowd, &["raise", "orders:0", "--to", "5000000"]);
    assert!(code == Some(2) && printed.contains("--bump-revision"), "{printed}");
    let recorded = fs::read_to_string(stage.directory().join("dlock-audit.jsonl")).unwrap();
    assert_eq!(recorded.lines().count(), 2, "{recorded}");
}

#[test]
fn writes_go_on_after_a_restore_with_a_raised_revision() {
    let stage = Stage::new().unwrap();
    let newer = EtcdCluster::start_newer(&stage).unwrap();
    let mut crowd = Crowd::new(&stage, Servers::Etcd(newer));
    assert_eq!(work(&stage, &crowd, "2").0, Some(0));
    let saved = snapshot(&stage, &crowd);
    assert_eq!(work(&stage, &crowd, "40").0, Some(0));
    member_mut(&mut crowd).restore(&saved, None).unwrap();
    is_behind(&stage, &crowd);
    member_mut(&mut crowd).restore(&saved, Some(1_000_000)).unwrap();
    is_ahead(&stage, &crowd);
}
