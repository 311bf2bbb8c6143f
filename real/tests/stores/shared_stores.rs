//! Stores that several processes share: a bucket on a live server, which is first proved to be atomic, and a
//! folder of files.

use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use dlock::{FencingToken, TokioRuntime};
use futures_util::future::join_all;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, RetryConfig, UpdateVersion};
use real::servers::{S3, Stage};
use resource::fence::{Fencing, Guard, Refusal, WriteOutcome};
use resource::store::{BucketStore, Read, ReadOutcome, Store, Write};
use resource::{OwnerToken, ResourceKey};
use serde_json::Value;
use tokio::runtime::Handle;

const BUCKET: &str = "orders";
const KEY_ID: &str = "AKIAFENCEPOSTTEST";
const SECRET: &str = "b7c2f1e09d5a4c3e8f6a";

fn client(server: &S3) -> Arc<AmazonS3> {
    let retries = RetryConfig { max_retries: 0, ..RetryConfig::default() };
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = AmazonS3Builder::new()
        .with_endpoint(server.url())
        .with_allow_http(true)
        .with_bucket_name(BUCKET)
        .with_access_key_id(KEY_ID)
        .with_secret_access_key(SECRET)
        .with_retry(retries);
    Arc::new(builder.build().unwrap())
}

async fn put(bucket: &AmazonS3, path: &Path, mode: PutMode, body: String) -> Option<UpdateVersion> {
    match bucket.put_opts(path, body.into(), mode.into()).await {
        Ok(put) => Some(put.into()),
        Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => None,
        Err(error) => panic!("the server failed: {error}"),
    }
}

/// Lets `racers` create one object; returns the number of those who did.
async fn race_to_create(bucket: &AmazonS3, round: u32, racers: u32) -> usize {
    let path = Path::from(format!("proof/created-{round}"));
    let puts = (0..racers).map(|racer| put(bucket, &path, PutMode::Create, format!("racer {racer}")));
    join_all(puts).await.iter().flatten().count()
}

/// Adds one to the number in an object, `times` times, each on the condition of the number that was read.
async fn count_up(bucket: &AmazonS3, path: &Path, times: u32) {
    for _ in 0..times {
        loop {
            let found = bucket.get(path).await.unwrap();
            let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: None };
            let text = String::from_utf8(found.bytes().await.unwrap().to_vec()).unwrap();
            let more = (text.parse::<u32>().unwrap() + 1).to_string();
            if put(bucket, path, PutMode::Update(version), more).await.is_some() {
                break;
            }
        }
    }
}

/// Proves that the server checks the condition of a put and stores it in one step; without that, no test of a
/// store on it would mean anything.
async fn prove_atomic(bucket: &AmazonS3) {
    for round in 0..10 {
        let winners = race_to_create(bucket, round, 100).await;
        assert_eq!(winners, 1, "the server is not atomic: of 100 racing creations {winners} succeeded");
    }
    let path = Path::from("proof/counter");
    put(bucket, &path, PutMode::Create, "0".to_owned()).await.unwrap();
    join_all((0..8).map(|_| count_up(bucket, &path, 10))).await;
    let counted = bucket.get(&path).await.unwrap().bytes().await.unwrap();
    assert_eq!(counted, "80", "the server is not atomic: of 80 racing updates some are lost");
}

fn key() -> ResourceKey {
    ResourceKey::new("acme/orders:42").unwrap()
}

fn write(number: u64, owner: &str, bytes: usize) -> Write {
    let body = owner.repeat(bytes).into();
    let owner = Some(OwnerToken::new(owner).unwrap());
    Write { guard: Guard::token(FencingToken::new(number).unwrap()), owner, body }
}

/// Writes with each token in turn, small values and large ones; returns (version, token) of the accepted
/// writes.
async fn climb(store: &BucketStore, owner: &str, tokens: u64) -> Vec<(u64, u64)> {
    let mut accepted = Vec::new();
    for number in 1..=tokens {
        let bytes = if number % 2 == 0 { 1 } else { 5000 };
        let outcome = store.write(&key(), &write(number, owner, bytes), Fencing::On).await.unwrap();
        if let WriteOutcome::Accepted(receipt) = outcome {
            accepted.push((receipt.version, number));
        }
    }
    accepted
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_stores_on_a_proven_server_accept_no_stale_write() {
    let stage = Stage::new().unwrap();
    let server = S3::start(&stage, BUCKET).unwrap();
    let bucket = client(&server);
    prove_atomic(&bucket).await;

    let process = || BucketStore::new(bucket.clone(), "resources", &TokioRuntime::new(Handle::current()));
    let stores = [process(), process(), process()];
    stores[0].check_conditional_puts().await.unwrap();
    let climbers = stores.iter().zip(["a", "b", "c"]).map(|(store, owner)| climb(store, owner, 30));
    let mut accepted: Vec<_> = join_all(climbers).await.into_iter().flatten().collect();
    accepted.sort_unstable();
    let is_later = |one: &(u64, u64), other: &(u64, u64)| one.0 < other.0 && one.1 < other.1;
    assert!(accepted.is_sorted_by(is_later), "{accepted:?}");
    let lost: u64 = stores.iter().map(BucketStore::lost_races).sum();
    assert!(lost > 0, "no process was ever overtaken between read and put: the race tests nothing");

    let ReadOutcome::Read(last) = stores[1].read(&key(), &Read::default(), Fencing::On).await.unwrap() else {
        panic!("nothing refuses a read without a claim");
    };
    assert_eq!((last.version, last.max_fence), (accepted.len() as u64, FencingToken::new(30)));
    let late = stores[2].write(&key(), &write(29, "c", 1), Fencing::On).await.unwrap();
    assert!(matches!(late, WriteOutcome::Refused(Refusal::Stale { .. })), "{late:?}");
    // The metadata as the server shows it.
    let record = Path::from("resources").join("acme/orders:42").join("record");
    let record = bucket.get(&record).await.unwrap();
    let token = record.attributes.get(&object_store::Attribute::Metadata("fencing-token".into()));
    assert_eq!(token, Some(&"30".into()));
}

/// A resource that is killed at the end of the test, and its port.
struct Served(Child, u16);

impl Served {
    fn start(arguments: &[&str]) -> Self {
        let mut child = real(arguments).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().unwrap().parse();
        Self(child, port.unwrap_or_else(|_| panic!("no port in {line:?}")))
    }

    /// Sends a request; returns the answer, which the load of the machine may delay.
    fn ask(&self, line: &str, headers: &str, body: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.1))?;
        let length = body.len();
        write!(
            stream,
            "{line} /r/orders:42 HTTP/1.1\r\nHost: r\r\nConnection: close\r\nContent-Length: {length}\r\n\
             {headers}\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Writes with a token; returns the status, unless the process dies.
    fn put(&self, token: u64) -> Option<u16> {
        let headers = format!("X-Fence-Token: {token}\r\nX-Lock-Owner: a:{token:08}\r\n");
        self.ask("PUT", &headers, "paid").ok()?.split(' ').nth(1)?.parse().ok()
    }

    fn get(&self) -> Value {
        let answer = self.ask("GET", "", "").unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Fails only if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn real(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(["resource", "--listen", "127.0.0.1:0"]).args(arguments);
    command.env("AWS_ACCESS_KEY_ID", KEY_ID).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command.stdout(Stdio::piped());
    command
}

/// Lets two processes share `store`, and kills one while it writes.
fn two_processes_share(store: &[&str]) {
    let (one, other) = (Served::start(store), Served::start(store));
    assert_eq!([one.put(33), other.put(34), one.put(33)], [200, 200, 409].map(Some));
    let last = std::thread::scope(|scope| {
        let writer = scope.spawn(|| (35..).take_while(|token| one.put(*token) == Some(200)).last());
        while other.get()["max_fence"].as_u64() < Some(40) {}
        let pid = rustix::process::Pid::from_child(&one.0);
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        writer.join().unwrap().unwrap()
    });
    let found = other.get();
    let seen = found["max_fence"].as_u64().unwrap();
    // The last write was killed before its answer, and may be applied.
    assert!(seen == last || seen == last + 1, "acknowledged {last}, found {found}");
    assert_eq!([other.put(last - 1), other.put(seen + 1)], [409, 200].map(Some));
    let again = Served::start(&[store, &["--sweep", "0s"]].concat());
    assert_eq!((again.get()["max_fence"].as_u64(), again.put(seen)), (Some(seen + 1), Some(409)));
}

#[test]
fn two_processes_share_a_folder_though_one_is_killed() {
    let stage = Stage::new().unwrap();
    let folder = stage.directory().join("resources");
    two_processes_share(&["--store", "files", "--dir", folder.to_str().unwrap()]);
}

#[test]
fn two_processes_share_a_bucket_though_one_is_killed() {
    let stage = Stage::new().unwrap();
    let server = S3::start(&stage, BUCKET).unwrap();
    two_processes_share(&["--store", "s3", "--s3-url", &server.url(), "--s3-bucket", BUCKET]);
}

/// Runs `real resource`, which must fail; returns all that it prints.
fn refused(arguments: &[&str]) -> String {
    let mut child = real(arguments).env("RUST_LOG", "trace").stderr(Stdio::piped()).spawn().unwrap();
    let mut printed = String::new();
    child.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert!(!child.wait().unwrap().success(), "{printed}");
    printed
}

#[test]
fn errors_of_a_bucket_say_what_to_do_and_show_no_credentials() {
    let stage = Stage::new().unwrap();
    let server = S3::start(&stage, BUCKET).unwrap();
    let nobody = real::servers::free_port().unwrap();
    let cases = [
        (server.url(), "other", "check its address, its name and the credentials"),
        (format!("http://127.0.0.1:{nobody}"), BUCKET, "check its address"),
        (format!("http://{KEY_ID}:{SECRET}@127.0.0.1"), BUCKET, "give them in the variables"),
        ("127.0.0.1:9000".to_owned(), BUCKET, "give http://host:port"),
    ];
    for (url, bucket, advice) in cases {
        let printed = refused(&["--store", "s3", "--s3-url", &url, "--s3-bucket", bucket]);
        assert!(printed.contains(advice), "{advice}: {printed}");
        assert!(!printed.contains(SECRET), "{advice}: {printed}");
    }
}

#[test]
fn the_name_of_a_store_shows_no_credentials() {
    let stage = Stage::new().unwrap();
    let server = S3::start(&stage, BUCKET).unwrap();
    let executor = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let runtime = TokioRuntime::new(executor.handle().clone());
    let text = format!("{:?}", BucketStore::new(client(&server), "resources", &runtime));
    assert!(text.contains(BUCKET), "{text}");
    assert!(!text.contains(SECRET) && !text.contains(KEY_ID), "{text}");
}
