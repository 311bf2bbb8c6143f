//! `inspect`, `clear`, `raise`, `worker` and `contend` on servers that are named by URL, over TLS and with
//! logins. No password appears in what they print or record.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dlock::tls::Identity;
use dlock::{ConnectOptions, Lock, LockKey, Options};
use etcd_client::{Client, Permission, PermissionType};
use real::servers::{EtcdCluster, Persistence, Redis, Stage, TlsFiles, ZooKeeper, ask};
use tokio::runtime::Builder;

use crate::certificates::Authority;
use crate::eventually::eventually;

/// A password with characters that a URL must escape, and its form there.
const PASSWORD: &str = "se-cret/@:";
const ESCAPED: &str = "se-cret%2F%40%3A";

/// Runs `real` in the folder of the stage; returns its exit code and all that it printed.
fn real(stage: &Stage, arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.args(arguments).envs(environment.iter().copied()).current_dir(stage.directory());
    let output = command.output().unwrap();
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!printed.contains("se-cret"), "{arguments:?}: {printed}");
    (output.status.code(), printed)
}

/// Acquires the lock orders:42 for a process that dies then.
fn dead(url: &str, servers: ConnectOptions) {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let handle = runtime.block_on(async {
        let mut options = Options::new(Duration::from_secs(600));
        options.instance = Some("worker-4".to_owned());
        let lock = Lock::connect_with(url, options, servers).await.unwrap();
        let deadline = lock.deadline_in(Duration::from_secs(30));
        lock.acquire(&LockKey::new("orders", "42").unwrap(), deadline).await.unwrap()
    });
    // Neither a release nor the end of a session is sent.
    std::mem::forget(handle);
    runtime.shutdown_background();
}

/// Writes a file of a test; returns its path.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The certificates of a server that demands one of its clients, and of a client.
struct Pki {
    servers: Authority,
    client: Identity,
    server: TlsFiles,
    /// The flags of a client that the server accepts.
    flags: Vec<String>,
}

impl Pki {
    fn new(stage: &Stage) -> Self {
        let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
        let client = clients.issue(&["operator"]);
        let identity = servers.issue(&["localhost", "127.0.0.1"]);
        let server = TlsFiles::write(stage, "certificates", &identity, Some(&clients.root)).unwrap();
        let folder = stage.subdirectory("operator").unwrap();
        let flags = [
            ("--servers-tls-roots", file(&folder, "roots.pem", &servers.root)),
            ("--servers-tls-certificate", file(&folder, "operator.pem", &client.certificates)),
            ("--servers-tls-key", file(&folder, "operator.key", &client.key)),
        ];
        let flags = flags.into_iter().flat_map(|(flag, path)| [flag.to_owned(), path]).collect();
        Self { servers, client, server, flags }
    }

    fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::default();
        options.tls.roots = Some(self.servers.root.clone());
        options.tls.identity = Some(self.client.clone());
        options
    }
}

/// Inspects and clears the lock of a dead holder over mutual TLS, and then works under it.
fn is_operated_over_tls(stage: &Stage, pki: &Pki, url: &str) {
    dead(url, pki.options());
    let with = |command: &[&str], flags: &[String]| {
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        real(stage, &[command, &["--servers", url], &flags[..]].concat(), &[])
    };
    let (code, printed) = with(&["inspect", "orders:42"], &pki.flags);
    assert!(printed.contains("worker-4:"), "{code:?} {printed}");
    let (code, printed) = with(&["inspect", "orders:42"], &[]);
    assert!(code == Some(2) && printed.contains("of an unknown issuer"), "{printed}");
    let (code, printed) = with(&["inspect", "orders:42"], &pki.flags[..2]);
    assert!(code == Some(2) && printed.contains("certificate of the client"), "{printed}");
    let (code, printed) = with(&["clear", "orders:42", "--watch", "300ms", "--yes"], &pki.flags);
    assert!(code == Some(0) && printed.contains("cleared: "), "{printed}");

    let _resource = serve(stage, &["--store", "memory", "--listen", "127.0.0.1:0"]);
    let address = listening(stage);
    let work = ["worker", "--key", "orders", "--work", "0", "--resource", &address];
    let (code, printed) = with(&work, &pki.flags);
    assert!(code == Some(0) && printed.contains("written; released"), "{printed}");
    let contend = ["contend", "--rate", "20", "--for", "1s", "--work", "1ms"];
    let (code, printed) = with(&contend, &pki.flags);
    assert!(code == Some(0) && printed.contains(" 0 failed"), "{printed}");
}

/// A process that is killed at the end of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Fails only if the process has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a resource, whose output goes to the file `resource.log` of the stage.
fn serve(stage: &Stage, arguments: &[&str]) -> Running {
    let log = fs::File::create(stage.directory().join("resource.log")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_real"));
    command.arg("resource").args(arguments).stdout(log).stderr(Stdio::null());
    Running(command.spawn().unwrap())
}

/// Returns the address of the resource, once it listens.
fn listening(stage: &Stage) -> String {
    eventually("the resource listens", || {
        let log = fs::read_to_string(stage.directory().join("resource.log")).ok()?;
        log.lines().find_map(|line| line.strip_prefix("listening on ")).map(str::to_owned)
    })
}

#[test]
fn redis_is_operated_over_tls() {
    let stage = Stage::new().unwrap();
    let pki = Pki::new(&stage);
    let (_redis, address, socket) = Redis::start_secured(&stage, "redis", &pki.server).unwrap();
    let url = format!("rediss://{address}");
    is_operated_over_tls(&stage, &pki, &url);
    let flags: Vec<_> = pki.flags.iter().map(String::as_str).collect();
    let (code, printed) =
        real(&stage, &[&["raise", "orders:42", "--to", "41", "--servers", &url], &flags[..]].concat(), &[]);
    assert!(code == Some(0) && printed.contains(&format!("raised: {address}: from 1 to 41")), "{printed}");
    // The same server by its socket, to which the files do not belong.
    let socket = format!("unix://{}", socket.display());
    let (code, printed) = real(&stage, &["inspect", "orders:42", "--servers", &socket], &[]);
    assert!(code == Some(0) && printed.contains("41"), "{printed}");
    let (code, printed) =
        real(&stage, &[&["inspect", "orders:42", "--servers", &socket], &flags[..]].concat(), &[]);
    assert!(code == Some(2) && printed.contains("the lock servers are without TLS"), "{printed}");
}

#[test]
fn etcd_is_operated_over_tls() {
    let stage = Stage::new().unwrap();
    let pki = Pki::new(&stage);
    let (_cluster, address) = EtcdCluster::start_secured(&stage, &pki.server).unwrap();
    is_operated_over_tls(&stage, &pki, &format!("etcds://{address}"));
}

#[test]
fn zookeeper_is_operated_over_tls() {
    let stage = Stage::new().unwrap();
    let pki = Pki::new(&stage);
    let (_server, address) = ZooKeeper::start_secured(&stage, &pki.server).unwrap();
    is_operated_over_tls(&stage, &pki, &format!("zookeepers://{address}"));
}

/// Makes the user `app` with the rights that docs/rights.md states, and forbids everything to others.
fn let_in(redis: &Redis) {
    let page = include_str!("../../../docs/rights.md");
    let says = |line: &str| ask(redis.port(), &format!("{line}\r\n"), |answer| answer.ends_with("\r\n"));
    for line in page.lines().filter(|line| line.starts_with("ACL SETUSER")) {
        let line = line.replace(">secret", &format!(">{PASSWORD}"));
        assert_eq!(says(&line).unwrap(), "+OK\r\n");
    }
    assert_eq!(says("ACL SETUSER default off").unwrap(), "+OK\r\n");
}

/// Inspects and clears the lock of a dead holder, logged in by a URL, by flags and by the environment. A
/// wrong password is refused with `words`.
fn is_operated_with_a_login(stage: &Stage, hosts: &str, scheme: &str, words: &str) {
    let url = format!("{scheme}://app:{ESCAPED}@{hosts}");
    dead(&url, ConnectOptions::default());
    let is_shown = |arguments: &[&str], environment: &[(&str, &str)]| {
        let (code, printed) = real(stage, &[&["inspect", "orders:42"], arguments].concat(), environment);
        assert!(code.is_some_and(|code| code < 2) && printed.contains("worker-4:"), "{printed}");
    };
    is_shown(&["--servers", &url], &[]);
    is_shown(&[], &[("DLOCK_SERVERS", &url)]);
    is_shown(&["--servers", &format!("{scheme}://app@{hosts}")], &[("DLOCK_PASSWORD", PASSWORD)]);
    let by_flag = [("DLOCK_PASSWORD", PASSWORD), ("DLOCK_USER", "app")];
    is_shown(&["--servers", &format!("{scheme}://{hosts}")], &by_flag);

    let wrong = format!("{scheme}://app:se-cret@{hosts}");
    let (code, printed) = real(stage, &["inspect", "orders:42", "--servers", &wrong], &[]);
    assert!(code == Some(2) && printed.contains(words), "{printed}");
    let clear = ["clear", "orders:42", "--watch", "300ms", "--yes", "--servers", &url];
    let (code, printed) = real(stage, &clear, &[]);
    assert!(code == Some(0) && printed.contains("cleared: "), "{printed}");
    let recorded = fs::read_to_string(stage.directory().join("dlock-audit.jsonl")).unwrap();
    assert!(recorded.contains(r#""command":"clear""#) && !recorded.contains("se-cret"), "{recorded}");
}

#[test]
fn redis_is_operated_with_the_rights_of_its_locks() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let_in(&redis);
    is_operated_with_a_login(&stage, &redis.address(), "redis", "Password authentication failed");
    let url = format!("redis://app:{ESCAPED}@{}", redis.address());
    let (code, printed) = real(&stage, &["raise", "orders:42", "--to", "9", "--servers", &url], &[]);
    assert!(code == Some(0) && printed.contains("from 1 to 9"), "{printed}");
}

#[test]
fn redlock_is_operated_with_the_rights_of_its_locks() {
    let stage = Stage::new().unwrap();
    let three = Redis::start_many(&stage, 3).unwrap();
    three.iter().for_each(let_in);
    let hosts: Vec<_> = three.iter().map(Redis::address).collect();
    is_operated_with_a_login(&stage, &hosts.join(","), "redis", "Password authentication failed");
    let url = format!("redis://app:{ESCAPED}@{}", hosts.join(","));
    let (code, printed) = real(&stage, &["raise", "orders:42", "--to", "9", "--servers", &url], &[]);
    // The dead holder had its grant once two had answered: the third may not have seen it.
    let (raised, granted) = (printed.matches(" to 9").count(), printed.matches("from 1 to 9").count());
    assert!(code == Some(0) && raised == 3 && granted >= 2, "{printed}");
}

/// Makes the user `app` with the rights that docs/rights.md states.
async fn admit(cluster: &EtcdCluster) {
    let mut admin = Client::connect(cluster.addresses(), None).await.unwrap();
    admin.user_add("root", "all", None).await.unwrap();
    admin.role_add("root").await.unwrap();
    admin.user_grant_role("root", "root").await.unwrap();
    admin.role_add("locks").await.unwrap();
    for prefix in ["lock/v1/", "lock/guard/"] {
        let right = Permission::new(PermissionType::Readwrite, prefix).with_prefix();
        admin.role_grant_permission("locks", right).await.unwrap();
    }
    admin.user_add("app", PASSWORD, None).await.unwrap();
    admin.user_grant_role("app", "locks").await.unwrap();
    admin.auth_enable().await.unwrap();
}

#[test]
fn etcd_is_operated_with_the_rights_of_its_locks() {
    let stage = Stage::new().unwrap();
    let cluster = EtcdCluster::start_one(&stage).unwrap();
    Builder::new_current_thread().enable_all().build().unwrap().block_on(admit(&cluster));
    is_operated_with_a_login(&stage, &cluster.addresses()[0], "etcd", "authentication failed");
}

#[test]
fn zookeeper_is_operated_with_the_rights_of_its_locks() {
    let stage = Stage::new().unwrap();
    let server = ZooKeeper::start(&stage).unwrap();
    // The client makes all nodes below the root, which are open to its user alone.
    is_operated_with_a_login(&stage, &server.address(), "zookeeper", "access list");
}

#[test]
fn a_resource_with_guards_is_read() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let (server, client) = (servers.issue(&["127.0.0.1"]), clients.issue(&["operator"]));
    let folder = stage.subdirectory("files").unwrap();
    let token = "0123456789abcdef0123456789abcdef";
    let written = |name: &str, text: &str| file(&folder, name, text);
    let (own, roots) = (written("own", token), written("roots.pem", &servers.root));
    let (shown, key) = (written("own.pem", &client.certificates), written("own.key", &client.key));
    let _resource = serve(
        &stage,
        &[
            "--store",
            "memory",
            "--listen",
            "127.0.0.1:0",
            "--bearer-token-file",
            &own,
            "--tls-certificate",
            &written("resource.pem", &server.certificates),
            "--tls-key",
            &written("resource.key", &server.key),
            "--tls-clients",
            &written("clients.pem", &clients.root),
        ],
    );
    let address = listening(&stage);
    let tls = ["--tls-roots", &roots, "--tls-certificate", &shown, "--tls-key", &key];
    let inspect = |flags: &[&str]| {
        let (lock, servers) = (["inspect", "orders:42", "--resource", &address], redis.address());
        real(&stage, &[&lock[..], &["--servers", &servers], flags].concat(), &[])
    };
    let (code, printed) = inspect(&[&tls[..], &["--resource-token-file", &own]].concat());
    assert!(code == Some(0) && printed.contains("highest token none"), "{printed}");
    let (code, printed) = inspect(&tls);
    assert!(code == Some(2) && printed.contains("bearer token"), "{printed}");
    let (code, printed) = inspect(&["--tls-roots", &roots, "--resource-token-file", &own]);
    assert!(code == Some(2) && printed.contains("certificate of the client"), "{printed}");
    assert!(!printed.contains(token), "{printed}");
}

#[test]
fn help_and_errors_show_no_password() {
    let stage = Stage::new().unwrap();
    for command in ["inspect", "clear", "raise", "worker", "contend"] {
        let url = [("DLOCK_SERVERS", "redis://app:se-cret@127.0.0.1:1"), ("DLOCK_PASSWORD", "se-cret-2")];
        let (code, _) = real(&stage, &[command, "--help"], &url);
        assert_eq!(code, Some(0), "{command}");
    }
    for (url, problem) in [
        ("redis://app:se-cret@127.0.0.1:1", "127.0.0.1:1 can't be read"),
        ("rediss://app:se-cret@127.0.0.1:1", "127.0.0.1:1 can't be read"),
        ("etcd://app:se-cret@127.0.0.1:1", "127.0.0.1:1 can't be read"),
        ("zookeeper://app:se-cret@127.0.0.1:1", "127.0.0.1:1 can't be read"),
        ("redis://app:se-cret@a,b:port", "`b:port` is no host"),
        ("mysql://app:se-cret@a", "its scheme is none of"),
        ("redis://app:se-cret@a", "--user is other"),
        ("app:se-cret@127.0.0.1:1", "begin it with one of"),
        ("127.0.0.1:1,redis://app:se-cret@127.0.0.1:2", "its scheme is none of"),
    ] {
        let user = if problem.starts_with("--user") { "other" } else { "app" };
        let arguments = ["inspect", "orders:42", "--servers", url, "--user", user];
        let (code, printed) = real(&stage, &arguments, &[]);
        assert!(code == Some(2) && printed.contains(problem), "{url}: {printed}");
    }
    let other = ["inspect", "orders:42", "--system", "etcd", "--servers", "redis://app:se-cret@127.0.0.1:1"];
    let (code, printed) = real(&stage, &other, &[]);
    assert!(code == Some(2) && printed.contains("that of redis, but --system is etcd"), "{printed}");
    let (code, printed) = real(&stage, &["gen", "--server", "redis://app:se-cret@127.0.0.1:1"], &[]);
    assert!(code == Some(2) && printed.contains("--server is host:port"), "{printed}");
}

#[test]
fn help_and_errors_show_no_password_of_postgresql() {
    let stage = Stage::new().unwrap();
    for command in ["worker", "contend", "resource"] {
        let url = [("DLOCK_POSTGRES", "postgresql://app:se-cret@h/db")];
        let (code, _) = real(&stage, &[command, "--help"], &url);
        assert_eq!(code, Some(0), "{command}");
    }
    for command in [
        &["resource", "--store", "postgres", "--postgres", "postgresql://app:se-cret@h:port/db"][..],
        &["contend", "--arm", "version", "--postgres", "app:se-cret@h/db?sslmode=disable"],
    ] {
        let (code, printed) = real(&stage, command, &[]);
        assert!(code == Some(2) && printed.contains("invalid connection string"), "{printed}");
    }
}
