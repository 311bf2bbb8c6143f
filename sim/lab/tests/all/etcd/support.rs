//! Shared by the tests of the simulated etcd: a cluster of three members, and the real client over simulated
//! streams.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use dlock::{Runtime, timeout_at};
use etcd_client::{Channel, Client, ConnectOptions, Error};
use hyper_util::rt::TokioIo;
use sim::faults::Cut;
use sim::servers::etcd::{Cluster, ClusterOptions, LockChange, Observer};
use sim::world::runtime::SimRuntime;
use sim::world::stream::SimStream;
use sim::{Control, Process, Sim};
use tonic::transport::{Endpoint, Uri};

use crate::support::scripts::run_script;

/// A cluster of three members and two clients.
#[derive(Clone)]
pub(crate) struct Etcd {
    pub(crate) control: Control,
    pub(crate) cluster: Cluster,
    pub(crate) log: Arc<Log>,
}

/// The processes of the members.
pub(crate) const MEMBERS: [&str; 3] = ["etcd-1", "etcd-2", "etcd-3"];

/// Records the calls of the observer as texts.
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
pub(crate) fn in_cluster<T: Send, F: Future<Output = T>>(test: impl FnOnce(Etcd) -> F + Send) -> T {
    in_cluster_of(|options| options, test)
}

/// Like [`in_cluster`], with the options that `change` returns.
pub(crate) fn in_cluster_of<T: Send, F: Future<Output = T>>(
    change: fn(ClusterOptions) -> ClusterOptions,
    test: impl FnOnce(Etcd) -> F + Send,
) -> T {
    in_cluster_with(Duration::from_millis(1), change, test)
}

/// Like [`in_cluster_of`], in a world in which each segment takes `latency`.
pub(crate) fn in_cluster_with<T: Send, F: Future<Output = T>>(
    latency: Duration,
    change: fn(ClusterOptions) -> ClusterOptions,
    test: impl FnOnce(Etcd) -> F + Send,
) -> T {
    let log = Arc::new(Log::default());
    let options = ClusterOptions { observer: log.clone(), ..ClusterOptions::new("etcd", MEMBERS) };
    let cluster = Cluster::new(change(options));
    let build = |sim: &mut Sim| {
        add_members(sim, &cluster);
        sim.empty_process("a").empty_process("b");
    };
    let cluster = cluster.clone();
    let (_, result) = run_script(latency, build, |control| test(Etcd { control, cluster, log }));
    result
}

/// Adds the members of `cluster` to a world.
pub(crate) fn add_members(sim: &mut Sim, cluster: &Cluster) {
    for name in MEMBERS {
        sim.host(name, cluster.member(name).unwrap());
    }
}

impl Etcd {
    /// Returns the real client in process `a`, connected to `member`.
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
        connect(&self.control.process(process), member, options).await
    }

    pub(crate) fn runtime(&self, process: &str) -> SimRuntime {
        self.control.process(process).runtime()
    }

    pub(crate) async fn at(&self, millis: u64) {
        self.control.sleep_until(Duration::from_millis(millis)).await;
    }

    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.control.now().as_millis()).unwrap()
    }

    /// Sleeps for `millis` milliseconds of true time.
    pub(crate) async fn pass(&self, millis: u64) {
        self.at(self.now() + millis).await;
    }

    /// Cuts the process off from a member, in both directions.
    pub(crate) fn cut(&self, process: &str, member: usize) {
        self.control.strike(Cut::between(process, MEMBERS[member]));
    }

    pub(crate) fn heal(&self, process: &str, member: usize) {
        self.control.heal(Cut::between(process, MEMBERS[member]));
    }

    /// Awaits `future` for at most `millis` milliseconds on the clock of process `a`. Returns `None` if that
    /// is too short.
    pub(crate) async fn within<F: Future>(&self, millis: u64, future: F) -> Option<F::Output> {
        let runtime = self.runtime("a");
        timeout_at(&runtime, runtime.now() + Duration::from_millis(millis), future).await.ok()
    }

    pub(crate) fn recorded(&self) -> Vec<String> {
        self.log.0.lock().unwrap().clone()
    }
}

/// Returns the real client in `process`, connected to `member`.
pub(crate) async fn connect(process: &Process, member: usize, options: ConnectOptions) -> Client {
    let runtime = process.runtime();
    let uri = format!("http://{}:2379", MEMBERS[member]);
    let endpoint = Endpoint::from_shared(uri).unwrap().executor(Spawner(runtime.clone()));
    let channel = endpoint.connect_with_connector_lazy(Connector(runtime));
    Client::from_channel(Channel::Tonic(channel), Some(options)).await.unwrap()
}

/// Returns code and message of the error as text.
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
