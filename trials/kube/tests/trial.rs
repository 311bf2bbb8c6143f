//! kube 4.2: a leader is elected by a Lease, by code of few lines on the client, and by kube-leader-election
//! 0.44.

mod api;

use std::time::Duration;

use common::Form;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Config};
use kube_leader_election::{LeaseLock, LeaseLockParams, LeaseLockResult};
use serde_json::json;
use sim::Sim;
use sim::faults::Faults;

const NAME: &str = "leader";
const TTL: Duration = Duration::from_secs(2);

/// All faults but those of clocks: both elections compare another machine's time with their own.
const FAULTS: [&str; 6] = ["pause", "crash", "cut", "partition", "reset", "delay"];

fn client() -> kube::Result<Client> {
    let mut config = Config::new("http://api:8001".parse().expect("a URL"));
    (config.connect_timeout, config.read_timeout) = (Some(TTL), Some(TTL));
    Client::try_from(config)
}

/// Tries to become the leader, or to stay it. The correct form names the version of the Lease that it has
/// read.
async fn lead(leases: &Api<Lease>, me: &str, form: Form) -> kube::Result<bool> {
    let now = Timestamp::now();
    let spec = LeaseSpec {
        holder_identity: Some(me.to_owned()),
        lease_duration_seconds: Some(TTL.as_secs() as i32),
        renew_time: Some(MicroTime(now)),
        ..LeaseSpec::default()
    };
    let Some(mut lease) = leases.get_opt(NAME).await? else {
        let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
        let created = leases.create(&PostParams::default(), &Lease { metadata, spec: Some(spec) }).await;
        return created.map(|_| true);
    };
    let held = lease.spec.take().unwrap_or_default();
    let end = held.renew_time.map(|renewed| renewed.0 + SignedDuration::try_from(TTL).expect("short"));
    if held.holder_identity.as_deref() != Some(me) && end.is_some_and(|end| now <= end) {
        return Ok(false);
    }
    match form {
        Form::Correct => {
            lease.spec = Some(spec);
            leases.replace(NAME, &PostParams::default(), &lease).await?;
        }
        Form::Wrong => {
            let patch = Patch::Merge(json!({ "spec": spec }));
            leases.patch(NAME, &PatchParams::default(), &patch).await?;
        }
    }
    Ok(true)
}

/// An election, as a candidate sees it.
enum Election {
    ByHand(Api<Lease>, String, Form),
    ByLibrary(LeaseLock),
}

impl Election {
    fn by_hand(name: &str, form: Form) -> kube::Result<Self> {
        Ok(Self::ByHand(Api::default_namespaced(client()?), name.to_owned(), form))
    }

    fn by_library(name: &str) -> kube::Result<Self> {
        let (lease_name, holder_id) = (NAME.to_owned(), name.to_owned());
        let params = LeaseLockParams { lease_name, holder_id, lease_ttl: TTL };
        Ok(Self::ByLibrary(LeaseLock::new(client()?, "default", params)))
    }

    /// Tries to become the leader, or to stay it. An error means that the candidate does not lead.
    async fn leads(&self) -> bool {
        match self {
            Self::ByHand(leases, name, form) => lead(leases, name, *form).await.unwrap_or(false),
            Self::ByLibrary(lock) => {
                matches!(lock.try_acquire_or_renew().await, Ok(LeaseLockResult::Acquired(_)))
            }
        }
    }
}

/// The API server, and three candidates. After five tries each stops for longer than the lease, so that
/// another one takes over.
fn world(sim: &mut Sim, election: impl Fn(&str) -> kube::Result<Election> + Copy + Send + Sync + 'static) {
    let leases = api::Leases::default();
    sim.scale(TTL).service("api", move |_| {
        let leases = leases.clone();
        async move { api::serve(leases).await.expect("a free port") }
    });
    for name in ["a", "b", "c"] {
        sim.process(name, move |_| async move {
            let election = election(name).expect("a client");
            for round in 0..15 {
                if election.leads().await {
                    sim::point("leading");
                }
                tokio::time::sleep(if round % 5 == 4 { TTL * 2 } else { TTL / 4 }).await;
            }
        });
    }
}

fn faults() -> Faults {
    Faults::default().only(&FAULTS)
}

#[test]
fn a_client_elects_one_leader() {
    common::try_both_under(faults(), "kube", api::RULE, |sim, form| {
        world(sim, move |name| Election::by_hand(name, form));
    });
}

#[test]
fn the_library_elects_two_leaders() {
    common::expect_kept("kube_leader_election", api::RULE, faults(), |sim: &mut Sim| {
        world(sim, Election::by_library);
    });
}
