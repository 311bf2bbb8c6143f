//! Crashes and partitions at every step of a transaction with the check of the fence: all of it stands or
//! nothing does, the fence never goes back, and a stale writer is refused. On live servers: PostgreSQL with
//! both clients, and MariaDB.

use std::time::Duration;

use dlock::FencingToken;
use fence::{Entry, OwnerToken, ResourceKey, Stop, check};
use futures_util::future::join;
use real::faults::{Direction, Link, Proxy};
use serde_json::json;

use crate::fence_clients::{Client, Scene, Server, for_each_client};
use crate::relay::{Lost, Relay};

for_each_client!(
    a_transaction_stands_whole_or_not_at_all,
    a_connection_may_be_lost_at_each_request,
    a_partitioned_writer_gives_the_row_up_when_its_session_ends,
    a_partitioned_waiter_writes_nothing,
);

/// The point of the transaction at which the connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    BeforeCheck,
    AfterCheck,
    AfterStatement,
    /// The commit is sent, and does not reach the server.
    CommitLost,
    /// The commit is done, and its answer does not reach the client.
    AnswerLost,
}

const STEPS: [Step; 5] =
    [Step::BeforeCheck, Step::AfterCheck, Step::AfterStatement, Step::CommitLost, Step::AnswerLost];

/// The cause of the loss.
#[derive(Clone, Copy, Debug)]
enum Cause {
    /// The connection is reset on both sides.
    Reset,
    /// The server ends the session.
    Terminated,
    /// The whole server crashes, and recovers from its log.
    ServerCrash,
}

/// A link to the server that can be cut.
struct Network<C: Client> {
    scene: Scene<C>,
    proxy: Proxy,
}

impl<C: Client> Network<C> {
    async fn new() -> Self {
        let scene = Scene::<C>::new().await;
        let proxy = Proxy::start(&scene.server.address()).await.unwrap();
        Self { scene, proxy }
    }

    /// Returns a client behind the proxy, and the number of its session.
    async fn proxied(&self) -> (C, i64) {
        let mut client = C::open(&self.proxy.address()).await;
        let session = client.session().await;
        (client, session)
    }

    /// Ends the session; returns once the server has ended it, so that no later statement can reach it.
    async fn strike(&mut self, cause: Cause, session: i64) {
        match cause {
            Cause::Reset => {
                self.proxy.reset();
                await_end(&mut self.scene.connect().await, session).await;
            }
            Cause::Terminated => terminate(&mut self.scene.connect().await, session).await,
            Cause::ServerCrash => self.scene.server.restart().unwrap(),
        }
        // A cut link keeps the end of the connection from the client.
        self.proxy.reset();
    }

    /// Writes the order with token 34 and loses the connection at `step`.
    async fn lose_at(&mut self, step: Step, cause: Cause, key: &ResourceKey) -> Result<(), Stop<C::Error>> {
        let (mut client, session) = self.proxied().await;
        let mut tx = client.begin_tx().await?;
        if step == Step::BeforeCheck {
            self.strike(cause, session).await;
        }
        check(&mut tx, key, entry(34)).await?;
        if step == Step::AfterCheck {
            self.strike(cause, session).await;
        }
        C::put(&mut tx, key, 34).await?;
        match step {
            Step::CommitLost => self.proxy.set(Direction::ToServer, Link::Cut),
            Step::AnswerLost => self.proxy.set(Direction::ToClient, Link::Cut),
            _ => self.strike(cause, session).await,
        }
        let struck = async {
            if step == Step::AnswerLost {
                let mut client = self.scene.connect().await;
                while state(&mut client, key).await != [34; 3] {
                    pause().await;
                }
            }
            if matches!(step, Step::CommitLost | Step::AnswerLost) {
                self.strike(cause, session).await;
            }
        };
        let (committed, ()) = join(C::commit(tx), struck).await;
        self.proxy.set_both(Link::Open);
        Ok(committed?)
    }
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

async fn terminate<C: Client>(client: &mut C, session: i64) {
    client.end_session(session).await;
    await_end(client, session).await;
}

/// Waits until a session has ended and its locks are released.
async fn await_end<C: Client>(client: &mut C, session: i64) {
    while client.has_session(session).await {
        pause().await;
    }
}

fn entry(number: u64) -> Entry {
    let owner = OwnerToken::new(&format!("worker-{number}:28999649")).unwrap();
    Entry::new(FencingToken::new(number).unwrap()).owner(&owner).payload(json!({ "token": number }))
}

/// Returns the token in the user's row, that of the fence, and the highest in the audit log.
async fn state<C: Client>(client: &mut C, key: &ResourceKey) -> [i64; 3] {
    let queries = [
        "SELECT token FROM orders WHERE id = ",
        "SELECT token FROM fence_position WHERE resource_id = ",
        "SELECT token FROM fence_audit WHERE resource_id = ",
    ];
    // In one snapshot: a commit may come in between.
    client.isolate("repeatable read").await;
    let mut tx = client.begin_tx().await.unwrap();
    let mut found = [0; 3];
    for (query, token) in queries.iter().zip(&mut found) {
        *token = C::number(&mut tx, &format!("{query}'{key}' ORDER BY token DESC LIMIT 1")).await;
    }
    C::commit(tx).await.unwrap();
    found
}

/// Checks that all of the write with token 34 stands or nothing does, then runs it again as its writer does;
/// later a newer holder writes.
async fn assert_whole<C: Client>(client: &mut C, key: &ResourceKey, stands: bool) {
    assert_eq!(state(client, key).await, if stands { [34; 3] } else { [33; 3] }, "{key}");
    let stale = client.write(key, entry(32)).await;
    assert!(matches!(stale, Err(Stop::Refused(_))), "{key}: {stale:?}");

    // The writer does not know what stands: it runs its transaction again.
    let again = client.write(key, entry(34)).await;
    match stands {
        true => assert!(matches!(again, Err(Stop::Repeated(_))), "{key}: {again:?}"),
        false => assert!(again.is_ok(), "{key}: {again:?}"),
    }
    assert_eq!(state(client, key).await, [34; 3], "{key}");
    let stale = client.write(key, entry(33)).await;
    assert!(matches!(stale, Err(Stop::Refused(_))), "{key}: {stale:?}");
    client.write(key, entry(35)).await.unwrap();
    let stale = client.write(key, entry(34)).await;
    assert!(matches!(stale, Err(Stop::Refused(_))), "{key}: {stale:?}");
    assert_eq!(state(client, key).await, [35; 3], "{key}");
}

async fn a_transaction_stands_whole_or_not_at_all<C: Client>() {
    let mut network = Network::<C>::new().await;
    for cause in [Cause::Reset, Cause::Terminated, Cause::ServerCrash] {
        for step in STEPS {
            let key = ResourceKey::new(&format!("orders:{cause:?}-{step:?}")).unwrap();
            network.scene.connect().await.write(&key, entry(33)).await.unwrap();
            let lost = network.lose_at(step, cause, &key).await;
            assert!(matches!(lost, Err(Stop::Failed(_))), "{key}: {lost:?}");
            assert_whole(&mut network.scene.connect().await, &key, step == Step::AnswerLost).await;
        }
    }
}

/// From `BEGIN` to `COMMIT`, with each statement inside the check.
async fn a_connection_may_be_lost_at_each_request<C: Client>() {
    let scene = Scene::<C>::new().await;
    let relay = Relay::start(scene.server.address()).await;
    let mut control = scene.connect().await;
    for lost in [Lost::Request, Lost::Answer] {
        let mut standing = Vec::new();
        for requests in 0.. {
            let key = ResourceKey::new(&format!("orders:{lost:?}-{requests}")).unwrap();
            control.write(&key, entry(33)).await.unwrap();
            let mut client = C::open(relay.address()).await;
            let session = client.session().await;
            relay.lose_after(requests, lost);
            let written = client.write(&key, entry(34)).await;
            if !relay.has_lost() {
                written.unwrap();
                break;
            }
            assert!(matches!(written, Err(Stop::Failed(_))), "{key}: {written:?}");
            await_end(&mut control, session).await;
            let stands = state(&mut control, &key).await == [34; 3];
            standing.push(stands);
            assert_whole(&mut control, &key, stands).await;
        }
        // The last request is the commit.
        let (commit, others) = standing.split_last().unwrap();
        assert!(others.len() >= 3, "{others:?}");
        assert!(others.iter().all(|stands| !stands), "{lost:?}: {others:?}");
        assert_eq!(*commit, lost == Lost::Answer);
    }
}

async fn a_partitioned_writer_gives_the_row_up_when_its_session_ends<C: Client>() {
    let network = Network::<C>::new().await;
    let key = ResourceKey::new("orders:42").unwrap();
    let (mut control, mut newer) = (network.scene.connect().await, network.scene.connect().await);
    control.write(&key, entry(33)).await.unwrap();
    let (mut client, session) = network.proxied().await;
    let mut tx = client.begin_tx().await.unwrap();
    check(&mut tx, &key, entry(34)).await.unwrap();
    network.proxy.set_both(Link::Cut);

    // The newer holder waits for the row.
    let ended = async {
        while !control.somebody_waits().await {
            pause().await;
        }
        assert_eq!(state(&mut control, &key).await, [33; 3]);
        // As the server's timeout for idle transactions or a TCP keepalive does.
        terminate(&mut control, session).await;
    };
    let (written, ()) = join(newer.write(&key, entry(35)), ended).await;
    written.unwrap();

    network.proxy.set_both(Link::Open);
    let late = C::put(&mut tx, &key, 34).await;
    assert!(late.is_err(), "{late:?}");
    drop(tx);
    assert_eq!(state(&mut control, &key).await, [35; 3]);
    let stale = control.write(&key, entry(34)).await;
    assert!(matches!(stale, Err(Stop::Refused(_))), "{stale:?}");
}

/// The check waits for the row of another writer when the network splits.
async fn a_partitioned_waiter_writes_nothing<C: Client>() {
    let network = Network::<C>::new().await;
    let key = ResourceKey::new("orders:42").unwrap();
    let (mut control, mut holder) = (network.scene.connect().await, network.scene.connect().await);
    control.write(&key, entry(32)).await.unwrap();
    let mut held = holder.begin_tx().await.unwrap();
    check(&mut held, &key, entry(33)).await.unwrap();
    C::put(&mut held, &key, 33).await.unwrap();

    let (mut client, session) = network.proxied().await;
    let split = async {
        while !control.somebody_waits().await {
            pause().await;
        }
        network.proxy.set_both(Link::Cut);
        C::commit(held).await.unwrap();
        terminate(&mut control, session).await;
        network.proxy.reset();
    };
    let (written, ()) = join(client.write(&key, entry(34)), split).await;
    assert!(matches!(written, Err(Stop::Failed(_))), "{written:?}");
    network.proxy.set_both(Link::Open);
    assert_whole(&mut control, &key, false).await;
}
