//! What the tests of the simulated etcd share: a cluster of three, and the real client over simulated
//! streams.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use dlock::{Runtime, timeout_at};
use etcd_client::{Channel, Client, ConnectOptions, Error};
use futures_util::future::{Either, select};
use hyper_util::rt::TokioIo;
use sim::entropy::Entropy;
use sim::servers::etcd::{Cluster, ClusterOptions, LockChange, Observer};
use sim::servers::host::Host;
use sim::world::World;
use sim::world::machine::WorldMachine;
use sim::world::process::ProcessId;
use sim::world::runtime::SimRuntime;
use sim::world::stream::SimStream;
use tonic::transport::{Endpoint, Uri};

pub(crate) const MS: u64 = 1_000_000;

/// No test takes longer than an hour of simulated time.
const LIMIT_NANOS: u64 = 3_600_000 * MS;

/// A cluster of three members and two clients.
#[derive(Clone)]
pub(crate) struct Etcd {
    pub(crate) world: World,
    pub(crate) cluster: Cluster,
    pub(crate) members: Vec<ProcessId>,
    pub(crate) log: Arc<Log>,
}

/// What observers were told.
#[derive(Default)]
pub(crate) struct Log(pub(crate) Mutex<Vec<String>>);

impl Observer for Log {
    fn locks_changed(&self, client: &str, changes: &[LockChange]) {
        let texts = changes
            .iter()
            .map(|change| format!("{client}: {} {} {:?}", change.name, change.owner, change.what));
        self.0.lock().unwrap().extend(texts);
    }

    fn leader_changed(&self, member: usize, term: u64) {
        self.0.lock().unwrap().push(format!("leader {member} term {term}"));
    }
}

/// Runs `test` in a world in which each segment takes 1 ms.
pub(crate) fn in_cluster<F: Future>(test: impl FnOnce(Etcd) -> F) -> F::Output {
    in_cluster_of(|options| options, test)
}

/// As [`in_cluster`], with other options.
pub(crate) fn in_cluster_of<F: Future>(
    change: fn(ClusterOptions) -> ClusterOptions,
    test: impl FnOnce(Etcd) -> F,
) -> F::Output {
    let runtime = madsim::runtime::Runtime::with_seed_and_config(1, madsim::Config::default());
    runtime.block_on(async {
        let etcd = Etcd::start(Duration::from_millis(1), change);
        let limit = pin!(etcd.world.sleep_until(LIMIT_NANOS));
        let result = match select(pin!(test(etcd.clone())), limit).await {
            Either::Left((result, _)) => result,
            Either::Right(_) => panic!("the test hangs: simulated time is up"),
        };
        etcd.world.end().await;
        result
    })
}

impl Etcd {
    pub(crate) fn start(latency: Duration, change: fn(ClusterOptions) -> ClusterOptions) -> Self {
        let names = ["etcd-1", "etcd-2", "etcd-3", "a", "b"];
        let world = World::new(Entropy::new(1), &names, (latency, latency));
        let members: Vec<_> = names[..3].iter().map(|name| world.find(name).unwrap()).collect();
        let log = Arc::new(Log::default());
        let names = names[..3].iter().copied();
        let options = ClusterOptions { observer: log.clone(), ..ClusterOptions::new("etcd", names) };
        let etcd = Self { world, cluster: Cluster::new(change(options)), members, log };
        let mains: Vec<_> = (0..etcd.members.len()).map(|member| etcd.main(member)).collect();
        for (id, main) in etcd.members.iter().zip(mains) {
            etcd.world.spawn(*id, main);
        }
        etcd
    }

    /// What the process of a member runs.
    pub(crate) fn main(&self, member: usize) -> impl Future<Output = ()> + Send + use<> {
        let id = self.members[member];
        let host = self.cluster.member(self.world.process(id).name()).unwrap();
        host.start(WorldMachine::new(&self.world, id))
    }

    /// The real client, of the process `a`, connected to a member.
    pub(crate) async fn client(&self, member: usize) -> Client {
        self.client_of("a", member).await
    }

    pub(crate) async fn client_of(&self, process: &str, member: usize) -> Client {
        self.connect(process, member, ConnectOptions::new()).await
    }

    pub(crate) async fn client_that_needs_a_leader(&self, member: usize) -> Client {
        self.connect("a", member, ConnectOptions::new().with_require_leader(true)).await
    }

    async fn connect(&self, process: &str, member: usize, options: ConnectOptions) -> Client {
        let runtime = self.runtime(process);
        let uri = format!("http://etcd-{}:2379", member + 1);
        let endpoint = Endpoint::from_shared(uri).unwrap().executor(Spawner(runtime.clone()));
        let channel = endpoint.connect_with_connector_lazy(Connector(runtime));
        Client::from_channel(Channel::Tonic(channel), Some(options)).await.unwrap()
    }

    pub(crate) fn runtime(&self, process: &str) -> SimRuntime {
        SimRuntime::new(&self.world, self.world.find(process).unwrap())
    }

    pub(crate) async fn at(&self, millis: u64) {
        self.world.sleep_until(millis * MS).await;
    }

    pub(crate) fn now(&self) -> u64 {
        self.world.now() / MS
    }

    /// The result within so many milliseconds of the process's clock, or `None`.
    pub(crate) async fn within<F: Future>(&self, millis: u64, future: F) -> Option<F::Output> {
        let runtime = self.runtime("a");
        timeout_at(&runtime, runtime.now() + Duration::from_millis(millis), future).await.ok()
    }

    pub(crate) fn told(&self) -> Vec<String> {
        self.log.0.lock().unwrap().clone()
    }
}

/// Code and text of a refusal.
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    match result.unwrap_err() {
        Error::GRpcStatus(status) => format!("{:?}: {}", status.code(), status.message()),
        other => other.to_string(),
    }
}

/// Runs tonic's tasks in a process.
#[derive(Clone)]
pub(crate) struct Spawner(SimRuntime);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Spawner {
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

/// Opens simulated streams for tonic.
#[derive(Clone)]
pub(crate) struct Connector(SimRuntime);

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<SimStream>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let runtime = self.0.clone();
        Box::pin(async move {
            let address = uri.authority().map(ToString::to_string).unwrap_or_default();
            runtime.connect(&address).await.map(TokioIo::new)
        })
    }
}
