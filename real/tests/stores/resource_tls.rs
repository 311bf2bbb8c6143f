//! The resource over TLS: the programs, and who is refused with which words.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use real::servers::{Persistence, Redis, Stage};

use crate::certificates::Authority;

/// A resource that is killed at the end of the test.
struct Served(Child, String);

impl Drop for Served {
    fn drop(&mut self) {
        // Fails only if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn serve(arguments: &[&str]) -> Served {
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(["resource", "--store", "memory", "--listen", "127.0.0.1:0"]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on ").expect("an address").to_owned();
    Served(child, address)
}

/// Writes a file of a test; returns its path.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path: PathBuf = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs a worker of one round; returns whether it succeeded, and all that it printed.
fn worker(redis: &Redis, resource: &str, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(["worker", "--servers", &redis.address(), "--resource", resource, "--work", "0"]);
    let output = command.args(arguments).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(printed).unwrap())
}

#[test]
fn a_worker_writes_to_the_resource_over_tls() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let identity = servers.issue(&["127.0.0.1"]);
    let folder = stage.subdirectory("files").unwrap();
    let certificate = file(&folder, "resource.pem", &identity.certificates);
    let key = file(&folder, "resource.key", &identity.key);
    let roots = file(&folder, "roots.pem", &servers.root);
    let own = ["--tls-certificate", &certificate, "--tls-key", &key];
    let served = serve(&own);
    assert!(served.1.starts_with("https://127.0.0.1:"), "{}", served.1);
    let (done, printed) = worker(&redis, &served.1, &["--tls-roots", &roots]);
    assert!(done && printed.contains("written; released"), "{printed}");
    let (done, printed) = worker(&redis, &served.1, &[]);
    assert!(!done && printed.contains("of an unknown issuer"), "{printed}");
    let plain = served.1.trim_start_matches("https://");
    let (done, printed) = worker(&redis, plain, &["--tls-roots", &roots]);
    assert!(!done && printed.contains("write https://host:port"), "{printed}");

    let issuers = file(&folder, "clients.pem", &clients.root);
    let served = serve(&[&own[..], &["--tls-clients", &issuers]].concat());
    let (done, printed) = worker(&redis, &served.1, &["--tls-roots", &roots]);
    assert!(!done && printed.contains("it demands a certificate of the client"), "{printed}");
    let identity = clients.issue(&["worker"]);
    let shown = file(&folder, "worker.pem", &identity.certificates);
    let key = file(&folder, "worker.key", &identity.key);
    let with = ["--tls-roots", &roots, "--tls-certificate", &shown, "--tls-key", &key];
    let (done, printed) = worker(&redis, &served.1, &with);
    assert!(done && printed.contains("written; released"), "{printed}");
}

#[test]
fn files_that_hold_no_certificate_are_named() {
    let stage = Stage::new().unwrap();
    let folder = stage.subdirectory("files").unwrap();
    let empty = file(&folder, "empty.pem", "");
    let missing = folder.join("missing.pem").to_str().unwrap().to_owned();
    for (certificate, words) in [(&empty, "no certificate in the text"), (&missing, "missing.pem: ")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
        command.args(["resource", "--store", "memory", "--listen", "127.0.0.1:0"]);
        command.args(["--tls-certificate", certificate, "--tls-key", &empty]);
        let output = command.output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(words), "{printed}");
    }
}
