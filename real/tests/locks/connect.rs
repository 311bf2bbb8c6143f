//! `Lock::connect` on live servers: every form of a URL, and the words with which TLS and logins are refused.

use std::time::Duration;

use dlock::tls::{Identity, TlsOptions};
use dlock::{AnyBackend, ConnectOptions, Lock, LockKey, Options, TokioRuntime};
use real::servers::{EtcdCluster, Persistence, Redis, Stage, TlsFiles, ZooKeeper, ZooKeeperEnsemble};

use crate::certificates::Authority;

/// The name of this machine in the certificates.
const HERE: [&str; 2] = ["localhost", "127.0.0.1"];

fn options() -> Options {
    Options::new(Duration::from_secs(10))
}

/// Connects, and holds a lock once. Tries again while the server has not answered: the first handshake of a
/// JVM may take longer than the timeout on a busy machine.
async fn hold(url: &str, servers: &ConnectOptions) -> Result<(), String> {
    for _ in 0..20 {
        match hold_once(url, servers).await {
            Err(error) if error.contains("none has been opened yet") => {}
            answer => return answer,
        }
    }
    hold_once(url, servers).await
}

async fn hold_once(url: &str, servers: &ConnectOptions) -> Result<(), String> {
    let lock: Lock<AnyBackend<TokioRuntime>> =
        Lock::connect_with(url, options(), servers.clone()).await.map_err(|error| error.to_string())?;
    let key = LockKey::new("orders", "42").unwrap();
    let handle = lock
        .acquire(&key, lock.deadline_in(Duration::from_secs(5)))
        .await
        .map_err(|error| error.to_string())?;
    assert!(handle.fence().as_u64() > 0);
    handle.release().await.map_err(|error| error.to_string())?;
    Ok(())
}

async fn holds(url: &str) {
    hold(url, &ConnectOptions::default()).await.unwrap_or_else(|error| panic!("{url}: {error}"));
}

/// The authorities and the certificate of a server.
struct Pki {
    servers: Authority,
    clients: Authority,
}

impl Pki {
    fn new() -> Self {
        Self { servers: Authority::new("servers"), clients: Authority::new("clients") }
    }

    /// Options of a client that trusts the servers; changed by `change`.
    fn client(&self, change: impl FnOnce(&mut TlsOptions)) -> ConnectOptions {
        let mut options = ConnectOptions::default();
        options.tls.roots = Some(self.servers.root.clone());
        change(&mut options.tls);
        options
    }

    fn files(&self, stage: &Stage, identity: &Identity, demands: bool) -> TlsFiles {
        let clients = demands.then_some(self.clients.root.as_str());
        TlsFiles::write(stage, "certificates", identity, clients).unwrap()
    }
}

/// Starts a server with a port over TLS; returns a URL of that port, which holds for as long as the server.
type Start<S> = fn(&Stage, &TlsFiles) -> (S, String);

/// Checks a lock over TLS on the server that `start` starts, and every reason to refuse it.
async fn is_secured<S>(start: Start<S>) {
    let pki = Pki::new();
    let stage = Stage::new().unwrap();
    let (server, url) = start(&stage, &pki.files(&stage, &pki.servers.issue(&HERE), false));
    hold(&url, &pki.client(|_| ())).await.unwrap();
    let named = url.replace("127.0.0.1", "localhost");
    hold(&named, &pki.client(|_| ())).await.unwrap();
    let refused = async |options: ConnectOptions, words: &str| {
        let error = hold(&url, &options).await.expect_err("it is refused");
        assert!(error.contains(words), "{url}: {error}");
    };
    let stranger = Authority::new("strangers").root;
    refused(pki.client(|tls| tls.roots = Some(stranger)), "of an unknown issuer").await;
    refused(pki.client(|tls| tls.server_name = Some("other.example".to_owned())), "for another name").await;
    drop(server);

    let stage = Stage::new().unwrap();
    let (server, url) = start(&stage, &pki.files(&stage, &pki.servers.issue_for(&HERE, 2000..2001), false));
    let error = hold(&url, &pki.client(|_| ())).await.expect_err("it is refused");
    assert!(error.contains("its certificate has expired"), "{url}: {error}");
    drop(server);

    let stage = Stage::new().unwrap();
    let (server, url) = start(&stage, &pki.files(&stage, &pki.servers.issue(&HERE), true));
    let error = hold(&url, &pki.client(|_| ())).await.expect_err("it is refused");
    assert!(error.contains("certificate of the client"), "{url}: {error}");
    let worker = pki.clients.issue(&["worker"]);
    hold(&url, &pki.client(|tls| tls.identity = Some(worker))).await.unwrap();
    drop(server);
}

#[tokio::test]
async fn redis_is_reached_by_every_form_of_its_url() {
    let stage = Stage::new().unwrap();
    let pki = Pki::new();
    let files = pki.files(&stage, &pki.servers.issue(&HERE), false);
    let (redis, _, socket) = Redis::start_secured(&stage, "redis", &files).unwrap();
    let address = redis.address();
    holds(&format!("redis://{address}")).await;
    holds(&format!("redis://{address}/3")).await;
    holds(&format!("unix://{}", socket.display())).await;
    holds(&format!("unix://{}?db=3", socket.display())).await;
}

#[tokio::test]
async fn several_redis_are_a_redlock() {
    let stage = Stage::new().unwrap();
    let three = Redis::start_many(&stage, 3).unwrap();
    let addresses: Vec<_> = three.iter().map(Redis::address).collect();
    holds(&format!("redis://{}/1", addresses.join(","))).await;
}

#[tokio::test]
async fn etcd_is_reached_by_every_form_of_its_url() {
    let stage = Stage::new().unwrap();
    let cluster = EtcdCluster::start(&stage).unwrap();
    holds(&format!("etcd://{}", cluster.addresses().join(","))).await;
    holds(&format!("etcd://{}", cluster.members[0].address())).await;
}

#[tokio::test]
async fn zookeeper_is_reached_by_every_form_of_its_url() {
    let stage = Stage::new().unwrap();
    let ensemble = ZooKeeperEnsemble::start(&stage).unwrap();
    holds(&format!("zookeeper://{}", ensemble.addresses().join(","))).await;
    holds(&format!("zookeeper://{}/prod/eu", ensemble.members[0].address())).await;
    holds(&format!("zookeeper://app:secret@{}/app", ensemble.members[1].address())).await;
}

#[tokio::test]
async fn redis_is_reached_over_tls() {
    is_secured(|stage, files| {
        let (redis, address, _) = Redis::start_secured(stage, "redis", files).unwrap();
        (redis, format!("rediss://{address}"))
    })
    .await;
}

#[tokio::test]
async fn etcd_is_reached_over_tls() {
    is_secured(|stage, files| {
        let (cluster, address) = EtcdCluster::start_secured(stage, files).unwrap();
        (cluster, format!("etcds://{address}"))
    })
    .await;
}

#[tokio::test]
async fn zookeeper_is_reached_over_tls() {
    is_secured(|stage, files| {
        let (server, address) = ZooKeeper::start_secured(stage, files).unwrap();
        (server, format!("zookeepers://{address}"))
    })
    .await;
}

#[tokio::test]
async fn a_server_without_tls_is_named() {
    let stage = Stage::new().unwrap();
    let etcd = EtcdCluster::start_one(&stage).unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    // Redis waits for the end of a line that never comes.
    for (url, words) in [
        (format!("etcds://{}", etcd.addresses()[0]), "does this port speak TLS?"),
        (format!("rediss://{}", redis.address()), "a port without TLS may stay silent"),
    ] {
        let error = hold(&url, &Pki::new().client(|_| ())).await.unwrap_err();
        assert!(error.contains(words), "{url}: {error}");
    }
}

/// A Redis grants a lease without a token by a `SET`, which leaves no counter; the others give one that the
/// handle does not show.
#[tokio::test]
async fn leases_without_a_token_exclude_those_with_one() {
    let stage = Stage::new().unwrap();
    let redis = Redis::start(&stage, "redis", Persistence::None).unwrap();
    let etcd = EtcdCluster::start(&stage).unwrap();
    let zookeeper = ZooKeeper::start(&stage).unwrap();
    let key = LockKey::new("orders", "42").unwrap();
    for url in [
        format!("redis://{}", redis.address()),
        format!("etcd://{}", etcd.addresses().join(",")),
        format!("zookeeper://{}", zookeeper.address()),
    ] {
        let lock = Lock::connect(&url, options()).await.unwrap();
        let unfenced = lock.request(&key).without_token().try_acquire().await.unwrap();
        assert!(lock.try_acquire(&key).await.is_err(), "{url}");
        unfenced.renew().await.unwrap();
        unfenced.release().await.unwrap();
        let fenced = lock.try_acquire(&key).await.unwrap();
        if url.starts_with("redis") {
            assert_eq!(fenced.fence().as_u64(), 1, "the first grant that was counted");
        }
        let taken = lock.request(&key).without_token().try_acquire().await.unwrap_err();
        assert!(matches!(taken, dlock::TryAcquireError::Taken { .. }), "{url}: {taken}");
        fenced.release().await.unwrap();
    }
}
