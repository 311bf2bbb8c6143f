//! Lock servers, a resource, and holders of the lock orders:42: living, dead and waiting ones.

use std::fs;
use std::time::Duration;

use dlock::{AnyBackend, Cap, Lock, LockKey, Options, TokioRuntime};
use real::servers::{EtcdCluster, Launch, Persistence, Process, Redis, Stage, ZooKeeper, ask, ask_http};
use tokio::runtime::{Builder, Runtime};

/// The address of the resource on the page.
pub(crate) const RESOURCE: &str = "127.0.0.1:8080";

/// The servers of one system.
pub(crate) enum Servers {
    Redis(Vec<Redis>),
    Etcd(EtcdCluster),
    ZooKeeper(Box<ZooKeeper>),
}

impl Servers {
    /// Starts those of the system: one, for Redlock three.
    pub(crate) fn start(stage: &Stage, system: &str) -> Self {
        match system {
            "redis" => Self::Redis(vec![Redis::start(stage, "redis", Persistence::None).unwrap()]),
            "redlock" => Self::Redis(Redis::start_many(stage, 3).unwrap()),
            "etcd" => Self::Etcd(EtcdCluster::start_one(stage).unwrap()),
            "zookeeper" => Self::ZooKeeper(Box::new(ZooKeeper::start(stage).unwrap())),
            system => panic!("unknown system {system:?}"),
        }
    }

    pub(crate) fn kill(&mut self, number: usize) {
        let Self::Redis(servers) = self else { panic!("only servers of Redis are killed") };
        servers[number].process().kill();
    }

    /// Restarts all servers of Redis without their data.
    pub(crate) fn lose_data(&mut self) {
        let Self::Redis(servers) = self else { panic!("only servers of Redis lose data") };
        for server in servers {
            assert_eq!(
                ask(server.port(), "FLUSHALL\r\n", |answer| answer.ends_with("\r\n")).unwrap(),
                "+OK\r\n"
            );
        }
    }

    /// Returns the system, the addresses on the page, and the real ones.
    fn named(&self) -> (&'static str, Vec<&'static str>, Vec<String>) {
        match self {
            Self::Redis(servers) => {
                let real: Vec<_> = servers.iter().map(Redis::address).collect();
                match real.len() {
                    1 => ("redis", vec!["127.0.0.1:6379"], real),
                    _ => ("redlock", vec!["127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003"], real),
                }
            }
            Self::Etcd(cluster) => ("etcd", vec!["127.0.0.1:2379"], cluster.addresses()),
            Self::ZooKeeper(server) => ("zookeeper", vec!["127.0.0.1:2181"], vec![server.address()]),
        }
    }
}

/// Servers, a resource, and the contenders for the lock.
pub(crate) struct Crowd {
    pub(crate) servers: Servers,
    pub(crate) key: LockKey,
    /// The owner tokens of the holders.
    pub(crate) tokens: Vec<String>,
    _resource: Process,
    resource: u16,
    /// The runtimes of those who live.
    living: Vec<Runtime>,
}

impl Crowd {
    /// Starts a resource beside the servers.
    pub(crate) fn new(stage: &Stage, servers: Servers) -> Self {
        let arguments = ["resource", "--listen", "127.0.0.1:0", "--store", "memory"];
        let launch = Launch::new("resource", env!("CARGO_BIN_EXE_real"), stage.directory()).args(arguments);
        let process = stage.spawn(&launch).unwrap();
        let resource = super::eventually::eventually("the resource listens", || {
            let log = fs::read_to_string(process.log()).ok()?;
            log.lines().find_map(|line| line.strip_prefix("listening on ")?.rsplit(':').next()?.parse().ok())
        });
        let key = LockKey::new("orders", "42").unwrap();
        Self { servers, key, tokens: Vec::new(), _resource: process, resource, living: Vec::new() }
    }

    /// Returns the address of the resource.
    pub(crate) fn resource(&self) -> String {
        format!("127.0.0.1:{}", self.resource)
    }

    /// Returns pairs of an address on the page and the real one; for `redis-cli` also its port.
    pub(crate) fn addresses(&self) -> Vec<(String, String)> {
        let (_, page, real) = self.servers.named();
        let mut pairs: Vec<_> = page.into_iter().map(str::to_owned).zip(real).collect();
        pairs.push((RESOURCE.to_owned(), self.resource()));
        let port = |(page, real): &(String, String)| {
            let port = |address: &str| format!("-p {} ", address.rsplit(':').next().unwrap());
            (port(page), port(real))
        };
        let ports: Vec<_> = pairs.iter().map(port).collect();
        pairs.extend(ports);
        pairs
    }

    /// Returns the commands that name the servers, as the page writes them.
    pub(crate) fn exports(&self) -> String {
        let (system, servers, _) = self.servers.named();
        let servers = servers.join(",");
        format!("export DLOCK_SYSTEM={system} DLOCK_SERVERS={servers} DLOCK_RESOURCE={RESOURCE}")
    }

    /// Acquires the lock for a process that dies then. Returns the token.
    pub(crate) fn dead(&mut self, name: &str, ttl: Duration) -> u64 {
        let runtime = executor();
        let handle = runtime.block_on(async {
            let lock = self.connect(name, ttl).await;
            lock.acquire(&self.key, lock.deadline_in(Duration::from_secs(30))).await.unwrap()
        });
        let token = handle.fence().as_u64();
        self.tokens.push(handle.owner().as_str().to_owned());
        // Neither a release nor the end of a session is sent.
        std::mem::forget(handle);
        runtime.shutdown_background();
        token
    }

    /// Acquires the lock for a process that renews it. Returns the token.
    pub(crate) fn living(&mut self, name: &str, ttl: Duration) -> u64 {
        let runtime = executor();
        let handle = runtime.block_on(async {
            let lock = self.connect(name, ttl).await;
            lock.acquire(&self.key, lock.deadline_in(Duration::from_secs(30))).await.unwrap()
        });
        let token = handle.fence().as_u64();
        runtime.spawn(async move {
            // It ends with a loss when the test clears it.
            let _ = handle.while_held(Cap(Duration::from_secs(3600)), std::future::pending::<()>()).await;
            std::mem::forget(handle);
        });
        self.living.push(runtime);
        token
    }

    /// Lets a process wait for the lock, and returns once it does.
    pub(crate) fn waiting(&mut self, name: &str, ttl: Duration) {
        let runtime = executor();
        let lock = runtime.block_on(self.connect(name, ttl));
        let key = self.key.clone();
        runtime.spawn(async move {
            let held = lock.acquire(&key, lock.deadline_in(Duration::from_secs(3600))).await;
            std::mem::forget(held);
        });
        self.living.push(runtime);
        let program = env!("CARGO_BIN_EXE_real");
        let (system, _, servers) = self.servers.named();
        super::eventually::eventually("it waits", || {
            let mut inspect = std::process::Command::new(program);
            inspect.args(["inspect", self.key.name(), "--json", "--system", system]);
            let output = inspect.args(["--servers", &servers.join(",")]).output().unwrap();
            let report: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
            let listeners = report["servers"][0]["read"]["listeners"].as_u64().unwrap_or(0);
            let claims = report["queue"]["claims"].as_array().map_or(0, Vec::len);
            (listeners > 0 || claims > 1).then_some(())
        });
    }

    /// Sends a write to the resource, and returns the answer.
    pub(crate) fn put(&self, token: u64, value: &str) -> String {
        let (path, headers) = (format!("/r/{}", self.key.name()), format!("X-Fence-Token: {token}\r\n"));
        ask_http(self.resource, "PUT", &path, &headers, value).unwrap()
    }

    /// Writes to the resource.
    pub(crate) fn write(&self, token: u64, value: &str) {
        let answer = self.put(token, value);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    async fn connect(&self, name: &str, ttl: Duration) -> Lock<AnyBackend<TokioRuntime>> {
        let (system, _, servers) = self.servers.named();
        let scheme = if system == "redlock" { "redis" } else { system };
        let mut options = Options::new(ttl);
        options.instance = Some(name.to_owned());
        Lock::connect(&format!("{scheme}://{}", servers.join(",")), options).await.unwrap()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.living.drain(..).for_each(Runtime::shutdown_background);
    }
}

fn executor() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}
