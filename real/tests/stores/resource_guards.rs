//! The guards of `real resource`, as a process: jumps of tokens, operators, bearer tokens, rates and
//! connections.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use dlock::Runtime;
use dlock::TokioRuntime;
use dlock::tls::{TlsConnector, TlsOptions};
use real::servers::{Persistence, Postgres, Redis, Stage, ask_http};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::certificates::Authority;
use crate::eventually::eventually;

const CLIENT: &str = "9f86d081884c7d659a2feaa0c55ad015";
const OPERATOR: &str = "a3bf4f1b2b0b822cd15d6c15b0f00a08";
const POISON: u64 = u64::MAX;
const SET_BACK: &str = r#"{"from":18446744073709551615,"to":34,"reason":"a test wrote it"}"#;

/// A resource that is killed at the end of the test, and its port.
struct Served(Child, u16);

impl Drop for Served {
    fn drop(&mut self) {
        // Fails only if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn real(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(arguments);
    command
}

fn serve(arguments: &[&str]) -> Served {
    start(real(&["resource", "--listen", "127.0.0.1:0"]).args(arguments))
}

fn start(command: &mut Command) -> Served {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().rsplit(':').next().unwrap().parse().unwrap();
    Served(child, port)
}

fn run(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

/// Writes a file of a test; returns its path.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

impl Served {
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let answer = ask_http(self.1, method, path, headers, body).unwrap();
        (status(&answer), answer)
    }

    fn put(&self, token: u64) -> u16 {
        self.ask("PUT", "/r/orders:42", &format!("X-Fence-Token: {token}\r\n"), "x").0
    }

    fn set_back(&self, secret: &str) -> u16 {
        let headers = format!("Authorization: Bearer {secret}\r\n");
        self.ask("POST", "/admin/fence/orders:42", &headers, SET_BACK).0
    }

    /// Returns what an operator sees of the key.
    fn fence(&self) -> Value {
        let headers = format!("Authorization: Bearer {OPERATOR}\r\n");
        body(&self.ask("GET", "/admin/fence/orders:42", &headers, "").1)
    }
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

fn body(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// Poisons a key of a resource started with `arguments`, sets its fence back, and starts it again.
fn set_back_outlives_a_restart(stage: &Stage, arguments: &[&str], is_durable: bool) {
    let operators = file(stage.directory(), "operators", &format!("alice {OPERATOR}\n"));
    let arguments = [arguments, &["--admin-token-file", &operators]].concat();
    let served = serve(&arguments);
    assert_eq!([served.put(34), served.put(POISON), served.put(35)], [200, 200, 409]);
    assert_eq!([served.set_back(CLIENT), served.put(35)], [401, 409]);
    assert_eq!([served.set_back(OPERATOR), served.set_back(OPERATOR)], [200, 409], "the fence has moved");
    assert_eq!([served.put(34), served.put(35)], [409, 200]);
    let fence = served.fence();
    assert_eq!(fence["max_fence"], 35);
    let mut change = fence["changes"][0].clone();
    let at = change.as_object_mut().unwrap().remove("at_millis").unwrap().as_u64().unwrap();
    // The beginning of 2024.
    assert!(at > 1_704_067_200_000, "{at}");
    let kept = json!({"from": POISON, "to": 34, "who": "alice at 127.0.0.1", "reason": "a test wrote it"});
    assert_eq!((change, fence["changes"].as_array().unwrap().len()), (kept, 1));
    drop(served);
    if is_durable {
        assert_eq!(serve(&arguments).fence(), fence);
    }
}

#[test]
fn an_operator_sets_a_poisoned_fence_of_a_file_back() {
    let stage = Stage::new().unwrap();
    let path = stage.directory().join("resource.redb");
    set_back_outlives_a_restart(&stage, &["--store", "redb", "--path", path.to_str().unwrap()], true);
    set_back_outlives_a_restart(&stage, &["--store", "memory"], false);
}

#[test]
fn an_operator_sets_a_poisoned_fence_in_postgresql_back() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    set_back_outlives_a_restart(&stage, &["--store", "postgres", "--postgres", &postgres.url()], true);
}

#[test]
fn a_token_that_the_source_can_not_give_is_refused() {
    let stage = Stage::new().unwrap();
    let postgres = Postgres::start(&stage).unwrap();
    let path = stage.directory().join("resource.redb");
    let stores: [&[&str]; 3] = [
        &["--store", "memory"],
        &["--store", "redb", "--path", path.to_str().unwrap()],
        &["--store", "postgres", "--postgres", &postgres.url()],
    ];
    for store in stores {
        let served = serve(&[store, &["--max-jump", "counter:100"]].concat());
        assert_eq!([served.put(101), served.put(100), served.put(POISON)], [422, 200, 422], "{store:?}");
        let claim = served.ask("GET", "/r/orders:42", "X-Fence-Token: 201\r\n", "");
        assert_eq!(claim.0, 422, "{store:?}");
        let (_, answer) = served.ask("PUT", "/r/orders:42", "X-Fence-Token: 201\r\n", "x");
        assert!(answer.contains(r#""seen":100,"got":201,"max":200"#), "{answer}");
        assert_eq!([served.put(200), served.put(150)], [200, 409], "{store:?}");
    }
    let served = serve(&["--store", "memory", "--max-jump", "zxid"]);
    assert_eq!([served.put(7 << 32 | 1), served.put((1006 << 32) + 1), served.put(POISON)], [200, 200, 422]);
}

#[test]
fn a_worker_sends_its_token_and_nobody_shows_it() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let folder = stage.directory();
    let accepted = file(folder, "accepted", &format!("# workers\nbilling {CLIENT}\n"));
    let (own, other) = (file(folder, "own", &format!("{CLIENT}\n")), file(folder, "other", OPERATOR));
    let (log, history) = (folder.join("log"), folder.join("resource.jsonl"));
    let mut resource = real(&["resource", "--listen", "127.0.0.1:0", "--store", "memory"]);
    resource.args(["--bearer-token-file", &accepted, "--history"]).arg(&history);
    resource.env("RUST_LOG", "trace").stderr(fs::File::create(&log).unwrap());
    let served = start(&mut resource);
    let address = format!("127.0.0.1:{}", served.1);
    let servers = redis.address();
    let worker = |arguments: &[&str]| {
        let mut command = real(&["worker", "--servers", &servers, "--resource", &address, "--work", "0"]);
        run(command.args(arguments).env("RUST_LOG", "trace"))
    };
    let (code, with) = worker(&["--resource-token-file", &own]);
    assert!(code == Some(0) && with.contains("written; released"), "{with}");
    let (code, without) = worker(&[]);
    assert_eq!(code, Some(1), "{without}");
    let (code, wrong) = worker(&["--resource-token-file", &other]);
    assert!(code == Some(2) && wrong.contains("the request has no accepted bearer token"), "{wrong}");
    assert_eq!(served.ask("GET", "/metrics", "", "").0, 401);
    let logged = fs::read_to_string(log).unwrap() + &fs::read_to_string(history).unwrap();
    assert!(logged.contains("write_accepted"), "{logged}");
    for shown in [&with, &without, &wrong, &logged] {
        assert!(!shown.contains(&CLIENT[..8]) && !shown.contains(&OPERATOR[..8]), "{shown}");
    }
}

#[test]
fn flags_that_can_not_be_used_are_explained_without_the_secret() {
    let stage = Stage::new().unwrap();
    let folder = stage.directory();
    let short = file(folder, "short", "alice 9f86d081\n");
    let empty = file(folder, "empty", "\n");
    let missing = folder.join("missing").to_str().unwrap().to_owned();
    let table: [(&[&str], &str); 6] = [
        (&["--bearer-token-file", &short], "short: line 1: the bearer token has 8 characters"),
        (&["--admin-token-file", &empty], "empty: no bearer token is given"),
        (&["--bearer-token-file", &missing], "missing: "),
        (&["--max-jump", "clock"], "give counter, revision, zxid or time"),
        (&["--max-jump", "counter", "--fence", "off"], "--max-jump needs --fence on"),
        (&["--max-connections", "0"], "--max-connections"),
    ];
    for (arguments, words) in table {
        let mut command = real(&["resource", "--store", "memory", "--listen", "127.0.0.1:0"]);
        let (code, printed) = run(command.args(arguments));
        assert_eq!(code, Some(2), "{arguments:?}: {printed}");
        assert!(printed.contains(words) && !printed.contains("9f86"), "{arguments:?}: {printed}");
    }
}

#[test]
fn a_connection_beyond_the_limit_is_answered_with_503() {
    let served = serve(&["--store", "memory", "--max-connections", "2"]);
    let connect = || {
        let mut client = TcpStream::connect(("127.0.0.1", served.1)).unwrap();
        client.write_all(b"GET /r/orders:42 HTTP/1.1\r\nHost: r\r\n\r\n").unwrap();
        let mut start = [0; 12];
        client.read_exact(&mut start).unwrap();
        (client, String::from_utf8(start.to_vec()).unwrap())
    };
    let (first, second) = (connect(), connect());
    assert_eq!([&*first.1, &*second.1], ["HTTP/1.1 200", "HTTP/1.1 200"]);
    let (mut third, status) = connect();
    assert_eq!(status, "HTTP/1.1 503");
    let mut rest = String::new();
    third.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("retry-after: 1\r\n") && rest.contains("nothing was applied"), "{rest}");
    drop(second);
    eventually("a place is free", || (served.ask("GET", "/r/orders:42", "", "").0 == 200).then_some(()));
    let (_, metrics) = served.ask("GET", "/metrics", "", "");
    assert!(!metrics.contains("\nresource_connections_refused_total 0\n"), "{metrics}");
    drop(first);
}

#[test]
fn requests_beyond_the_rate_are_answered_with_429() {
    let served = serve(&["--store", "memory", "--rate", "1"]);
    let read = || served.ask("GET", "/r/orders:42", "", "");
    let (status, refused) = eventually("the second of two requests comes at once", || {
        Some(read()).filter(|(status, _)| *status == 429)
    });
    assert!(status == 429 && refused.contains("retry-after: 1\r\n"), "{refused}");
    eventually("the bucket is full again", || (read().0 == 200).then_some(()));
}

#[tokio::test]
async fn a_change_over_mutual_tls_names_the_certificate() {
    let stage = Stage::new().unwrap();
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let (server, client) = (servers.issue(&["127.0.0.1"]), clients.issue(&["alice"]));
    let folder = stage.directory();
    let served = serve(&[
        "--store",
        "memory",
        "--tls-certificate",
        &file(folder, "resource.pem", &server.certificates),
        "--tls-key",
        &file(folder, "resource.key", &server.key),
        "--tls-clients",
        &file(folder, "clients.pem", &clients.root),
        "--admin-token-file",
        &file(folder, "operators", &format!("alice {OPERATOR}")),
    ]);
    let mut options = TlsOptions::default();
    options.roots = Some(servers.root.clone());
    options.identity = Some(client);
    let connector = TlsConnector::new(&options).unwrap();
    let address = format!("127.0.0.1:{}", served.1);
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let stream = runtime.connect(&address).await.unwrap();
    let mut stream = connector.connect(stream, &address).await.unwrap();
    let order = r#"{"from":0,"to":9,"reason":"r"}"#;
    let head = format!("Host: r\r\nAuthorization: Bearer {OPERATOR}\r\n");
    let post =
        format!("POST /admin/fence/k HTTP/1.1\r\n{head}Content-Length: {}\r\n\r\n{order}", order.len());
    let get = format!("GET /admin/fence/k HTTP/1.1\r\n{head}Connection: close\r\n\r\n");
    stream.write_all(format!("{post}{get}").as_bytes()).await.unwrap();
    let mut answers = Vec::new();
    // Without a notice of the end, TLS reports it as an error.
    let _ = stream.read_to_end(&mut answers).await;
    let answers = String::from_utf8(answers).unwrap();
    let who = answers.split("\"who\":\"").nth(1).unwrap_or_else(|| panic!("{answers}"));
    let who = who.split('"').next().unwrap();
    let digest = who.strip_prefix("alice at 127.0.0.1 with the certificate sha256:");
    let is_digest = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(digest.is_some_and(is_digest), "{who}");
}
