//! Many tasks of one process use different locks at the same time, over one connection and in shared
//! transactions. Each gets the answer that it would get alone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::etcd::{Etcd as Locks, EtcdOptions};
use dlock::{
    AcquireError, BackendError, Handle, Lock, LockKey, Options, ReleaseError, Released, Runtime,
    TryAcquireError, timeout_at,
};
use sim::faults::{Crash, Cut, Partition, Pause};
use sim::servers::etcd::{Cluster, ClusterOptions};
use sim::servers::host::Host;
use sim::world::runtime::SimRuntime;
use sim::{Control, Name, Process, Report, Rules, Sim, Span};

use super::lab::{Client, LONG, Lab, SESSION, TTL, key};
use super::support::{Etcd, MEMBERS, add_members, in_cluster, in_cluster_of};

const CROWD: usize = 50;

/// The result of an acquire; `None` if its caller dropped it.
type Answer = Option<Result<Handle<Locks<SimRuntime>>, TryAcquireError>>;

fn numbered(number: usize) -> LockKey {
    LockKey::new("crowd", &number.to_string()).unwrap()
}

/// Runs [`CROWD`] acquires at once, each for its own key and with its own timeout; returns the answers of the
/// next `millis` milliseconds.
async fn crowd(
    etcd: &Etcd,
    client: &Client,
    millis: u64,
    timeout: fn(usize) -> Option<Duration>,
) -> BTreeMap<usize, Answer> {
    let answers = Arc::new(Mutex::new(BTreeMap::new()));
    for number in 0..CROWD {
        let (client, answers) = (client.clone(), Arc::clone(&answers));
        let process = client.process.clone();
        process.spawn(async move {
            let key = numbered(number);
            let acquire = client.lock.try_acquire(&key);
            let answer = match timeout(number) {
                Some(timeout) => timeout_at(&client.runtime, client.within(timeout), acquire).await.ok(),
                None => Some(acquire.await),
            };
            answers.lock().unwrap().insert(number, answer);
        });
    }
    etcd.pass(millis).await;
    std::mem::take(&mut *answers.lock().unwrap())
}

/// Releases all at once; returns the results after 500 ms.
async fn release_all(
    etcd: &Etcd,
    client: &Client,
    handles: Vec<Handle<Locks<SimRuntime>>>,
) -> Vec<Result<Released, ReleaseError>> {
    let results = Arc::new(Mutex::new(Vec::new()));
    for handle in handles {
        let results = Arc::clone(&results);
        client.process.spawn(async move {
            let released = handle.release().await;
            results.lock().unwrap().push(released);
        });
    }
    etcd.pass(500).await;
    std::mem::take(&mut *results.lock().unwrap())
}

/// Returns a client with an open session.
async fn opened(lab: &Lab) -> Client {
    let client = lab.client("a");
    client.lock.try_acquire(&key()).await.unwrap().release().await.unwrap();
    client
}

/// The numbers of transactions that a crowd may take: four claims are sent by themselves, the others in
/// batches of 16 or, since the order of tasks is random, in smaller ones.
const CALLS: std::ops::Range<u64> = 7..25;

#[test]
fn a_crowd_acquires_and_releases_in_few_transactions() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let client = opened(&lab).await;
        let before = etcd.cluster.executed();
        let answers = crowd(&etcd, &client, 500, |_| None).await;
        let handles: Vec<_> = answers.into_values().map(|answer| answer.unwrap().unwrap()).collect();
        let acquired = etcd.cluster.executed();
        assert!(CALLS.contains(&(acquired - before)), "{}", acquired - before);
        for (number, handle) in handles.iter().enumerate() {
            assert_eq!(Some(handle.fence().as_u64()), lab.create_revision(&numbered(number), handle).await);
        }
        let before = etcd.cluster.executed();
        let released = release_all(&etcd, &client, handles).await;
        assert_eq!(released, vec![Ok(Released::Done); CROWD]);
        let calls = etcd.cluster.executed() - before;
        assert!(CALLS.contains(&calls), "{calls}");
        assert_eq!(lab.keys().await, 0);
    });
}

#[test]
fn a_call_with_too_little_time_fails_alone() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let client = opened(&lab).await;
        let held = lab.client("b").lock.try_acquire(&key()).await.unwrap();
        let waiter = client.spawn_acquire(&key(), LONG);
        etcd.pass(100).await;
        let by_others =
            || MEMBERS[1..].iter().map(|name| etcd.cluster.member(name).unwrap().executed()).sum::<u64>();
        let before = by_others();
        // A round trip takes 2 ms.
        let mut options = Options::new(TTL);
        options.request_timeout = Duration::from_millis(1);
        let hasty = Lock::new(client.lock.backend().clone(), options).unwrap();
        let error =
            hasty.acquire(&numbered(1), client.within(Duration::from_micros(1500))).await.unwrap_err();
        assert_eq!(error, AcquireError::Unavailable(BackendError::NoAnswer));
        etcd.pass(100).await;
        assert_eq!(by_others(), before, "the connection goes on: no call went to another member");
        assert_eq!(held.release().await, Ok(Released::Done));
        waiter.wait(&etcd.control).await.unwrap();
    });
}

#[test]
fn a_held_lock_is_taken_for_its_own_claim_only() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let client = opened(&lab).await;
        let held = lab.client("b").lock.try_acquire(&numbered(20)).await.unwrap();
        let answers = crowd(&etcd, &client, 500, |_| None).await;
        let mut taken = Vec::new();
        for (number, answer) in answers {
            match answer.unwrap() {
                Ok(handle) => handle.leave(),
                Err(error) => taken.push((number, error)),
            }
        }
        assert_eq!(taken, [(20, TryAcquireError::Taken { retry_after: None })]);
        assert_eq!(held.release().await, Ok(Released::Done));
    });
}

#[test]
fn a_cluster_that_refuses_batches_gets_single_transactions() {
    let few = |options| ClusterOptions { txn_ops_max: 3, ..options };
    in_cluster_of(few, |etcd| async move {
        let lab = Lab::new(&etcd);
        let client = opened(&lab).await;
        // A round trip takes 2 ms. The first batches are refused, then each claim is sent by itself; later
        // ones are not shared at all.
        for millis in [5, 3] {
            let before = etcd.cluster.executed();
            let answers = crowd(&etcd, &client, millis, |_| None).await;
            let handles: Vec<_> = answers.into_values().map(|answer| answer.unwrap().unwrap()).collect();
            assert_eq!(handles.len(), CROWD, "within {millis} ms");
            assert_eq!(etcd.cluster.executed() - before, CROWD as u64);
            assert_eq!(release_all(&etcd, &client, handles).await, vec![Ok(Released::Done); CROWD]);
        }
    });
}

#[test]
fn a_dropped_acquire_leaves_no_key_and_others_are_unaffected() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let client = opened(&lab).await;
        // Every second acquire is dropped: some at once, some while the batch is sent, executed or answered.
        let answers = crowd(&etcd, &client, 500, |number| {
            let step = Duration::from_micros(100) * u32::try_from(number).unwrap();
            number.is_multiple_of(2).then_some(step)
        })
        .await;
        let dropped = answers.values().filter(|answer| answer.is_none()).count();
        assert!(dropped >= 5, "{dropped}");
        for (number, answer) in answers {
            let handle = answer.map(Result::unwrap);
            let owner = handle.as_ref().map(|handle| handle.owner().as_str().to_owned());
            assert_eq!(lab.owner_of(&numbered(number)).await, owner);
        }
    });
}

#[test]
fn waiters_of_one_client_for_one_lock_have_places_of_their_own() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let client = opened(&lab).await;
        let tokens = Arc::new(Mutex::new(BTreeMap::<usize, Vec<u64>>::new()));
        for number in 0..CROWD {
            let (client, tokens) = (client.clone(), Arc::clone(&tokens));
            client.process.clone().spawn(async move {
                let lock = number % 5;
                let handle = client.lock.acquire(&numbered(lock), client.within(LONG)).await.unwrap();
                tokens.lock().unwrap().entry(lock).or_default().push(handle.fence().as_u64());
                client.runtime.sleep_until(client.within(Duration::from_millis(5))).await;
                handle.release().await.unwrap();
            });
        }
        etcd.pass(5000).await;
        let tokens = std::mem::take(&mut *tokens.lock().unwrap());
        assert_eq!(tokens.values().map(Vec::len).sum::<usize>(), CROWD);
        for tokens in tokens.values() {
            assert!(tokens.is_sorted_by(|one, other| one < other), "{tokens:?}");
        }
        assert_eq!(lab.keys().await, 0);
    });
}

#[test]
fn a_revoked_session_fails_its_claims_as_if_sent_alone() {
    in_cluster(|etcd| async move {
        let lab = Lab::new(&etcd);
        let client = opened(&lab).await;
        lab.revoke_all().await;
        for answer in crowd(&etcd, &client, 500, |_| None).await.into_values() {
            let lost = BackendError::SessionLost { reported: true };
            assert!(answer.unwrap().is_err_and(|error| error == TryAcquireError::Backend(lost)));
        }
        // The next acquire opens another session.
        for (number, answer) in crowd(&etcd, &client, 500, |_| None).await {
            let handle = answer.unwrap().unwrap();
            assert_eq!(lab.owner_of(&numbered(number)).await.as_deref(), Some(handle.owner().as_str()));
        }
        assert_eq!(lab.leases().await, 1);
    });
}

/// A task of a process: acquires, works and releases locks drawn from 20, until `end`.
async fn work(process: Process, lock: Lock<Locks<SimRuntime>>, end: Duration) {
    let runtime = process.runtime();
    while process.now().as_nanos() < u64::try_from(end.as_nanos()).unwrap() {
        let key = numbered(usize::try_from(process.random() % 20).unwrap());
        let within = Duration::from_millis(100 + process.random() % 3000);
        let Ok(handle) = lock.acquire(&key, process.now() + within).await else { continue };
        let section = process.section_with_token(key.name(), handle.fence().as_u64());
        process.sleep(Duration::from_millis(process.random() % 20)).await;
        drop(section);
        if process.random().is_multiple_of(3) {
            // The caller gives up: the release goes on in the background.
            let limit = process.now() + Duration::from_millis(1);
            let _ = timeout_at(&runtime, limit, handle.release()).await;
        } else {
            let _ = handle.release().await;
        }
    }
}

/// Runs 50 tasks in each of two processes while `faults` strike; returns the report of the audit.
fn under(seed: u64, faults: impl FnOnce(&Control) + Send) -> Report {
    let cluster = Cluster::new(ClusterOptions::new("etcd", MEMBERS));
    let mut sim = Sim::new(seed);
    add_members(&mut sim, &cluster);
    sim.empty_process("a").empty_process("b").rules(Rules {
        fifo: true,
        ttl: Some(TTL),
        grace: SESSION,
        sessions: true,
        servers: vec![Name::from("etcd")],
        exact: true,
        longest_retry: Some(Duration::from_secs(2)),
        ..Rules::default()
    });
    let (report, ()) = sim
        .run_script(|control| async move {
            for name in ["a", "b"] {
                let process = control.process(name);
                let addresses = MEMBERS.map(|member| format!("{member}:2379"));
                let locks = Locks::new(process.runtime(), &addresses, EtcdOptions::new(SESSION)).unwrap();
                let lock = Lock::new(locks, Options::new(TTL)).unwrap();
                for _ in 0..CROWD {
                    process.spawn(work(process.clone(), lock.clone(), Duration::from_secs(12)));
                }
            }
            control.sleep(Duration::from_secs(2)).await;
            faults(&control);
            control.sleep(Duration::from_secs(28)).await;
        })
        .unwrap();
    report
}

fn lasts(millis: u64) -> Option<Span> {
    Some(Span::from_millis(millis))
}

#[test]
fn a_hundred_tasks_keep_every_rule_under_faults() {
    for seed in 0..3 {
        let cut_off = Partition {
            groups: vec![vec![MEMBERS[0].to_owned()], [MEMBERS[1], MEMBERS[2]].map(str::to_owned).to_vec()],
            lasts: lasts(3000),
        };
        let crash = Crash { restart_after: lasts(1500), ..Crash::of(MEMBERS[0]) };
        let lost_answers = Cut { lasts: lasts(1500), ..Cut::one_way(MEMBERS[0], "a") };
        let pause = Pause { lasts: lasts(1000), ..Pause::of("b") };
        let reports = [
            under(seed, |control| _ = control.strike(cut_off)),
            under(seed, |control| _ = control.strike(crash)),
            under(seed, |control| _ = control.strike(lost_answers)),
            under(seed, |control| _ = control.strike(pause)),
        ];
        for report in reports {
            assert_eq!(report.verdicts, [], "seed {seed}");
        }
    }
}
