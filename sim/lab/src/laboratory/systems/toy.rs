//! A toy lock server: a table in memory behind a protocol of text lines. It is an example of the parts of a
//! system: its servers, their rules, and the lock of a worker.
//!
//! A request is `VERB KEY OWNER TTL` and ends with a line feed; TTL is in milliseconds. The answer to `LOCK`
//! is `GRANTED TOKEN LEFT` or `HELD LEFT`, the answer to `RENEW` and `FREE` is `OK` or `GONE`. A restart
//! forgets the table and the tokens. As a toy, it grants a late `LOCK` even after the `FREE` of its owner.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dlock::{
    Acquisition, Answer, Backend, BackendError, Claim, FencingToken, Instant, Released, Renewal, Runtime,
    owner_prefix, timeout_at,
};
use futures_util::future::BoxFuture;
use sim::servers::host::Host;
use sim::world::lock;
use sim::world::machine::Machine;
use sim::world::runtime::SimRuntime;
use sim::world::stream::SimStream;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

use super::super::given::StoredLock;
use super::super::options::Options;
use super::super::point::ProcessKind;
use super::super::rounds::{apart, work};
use super::super::seat::Seat;
use super::super::servers::Durability;
use super::super::system::System;
use super::redis::KEY_GRACE;
use super::{LockSystem, numbered};

const PORT: u16 = 7000;
const ADDRESS: &str = "server-1:7000";

/// Time between two checks of the server for expired leases.
const EXPIRY_CHECK: Duration = Duration::from_millis(100);

impl System {
    /// A toy lock server, a table in memory: an example of a system.
    pub const TOY: Self = Self("toy");
}

/// The system `toy`.
pub(super) struct Toy;

impl LockSystem for Toy {
    fn name(&self) -> System {
        System::TOY
    }

    fn title(&self) -> &'static str {
        "the toy"
    }

    /// Returns true: it grants a late request after its release, as no lock should.
    fn is_example(&self) -> bool {
        true
    }

    fn servers(&self, _: &Options) -> Vec<(String, ProcessKind)> {
        numbered("server", 1, ProcessKind::Server)
    }

    fn hosts(&self, options: &Options, _: &[(StoredLock, &str)]) -> Vec<(String, Arc<dyn Host>)> {
        let host = |(name, _)| (name, Arc::new(Server) as Arc<dyn Host>);
        self.servers(options).into_iter().map(host).collect()
    }

    fn addresses(&self, _: &Seat<'_>) -> Vec<String> {
        vec![ADDRESS.to_owned()]
    }

    fn work_with_own<'a>(&self, seat: Seat<'a>) -> BoxFuture<'a, ()> {
        let client = Client { runtime: seat.process.runtime() };
        apart(work(seat, client))
    }

    fn durability(&self, _: &Options) -> Durability {
        Durability::None("it keeps its leases in memory")
    }

    fn expires_keys(&self) -> bool {
        true
    }

    fn has_links(&self) -> bool {
        false
    }

    fn speakers(&self, options: &Options) -> Vec<String> {
        super::names(&self.servers(options))
    }

    fn key_grace(&self, _: &Options) -> Duration {
        KEY_GRACE
    }

    fn ttls_millis(&self) -> &'static [u64] {
        &[1000, 2000]
    }
}

/// The server.
struct Server;

impl<M: Machine> Host<M> for Server {
    fn noun(&self) -> &'static str {
        "a toy lock server"
    }

    fn start(&self, machine: M) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let table = Arc::new(Mutex::new(Table::default()));
            let (looking, clock) = (Arc::clone(&table), machine.clone());
            machine.spawn(async move {
                loop {
                    clock.sleep(EXPIRY_CHECK).await;
                    lock(&looking).expire(clock.monotonic_nanos());
                }
            });
            // It fails only if the process is dead.
            let _ = machine
                .serve(PORT, |stream, client| {
                    let (table, machine) = (Arc::clone(&table), machine.clone());
                    // The client handles a broken connection.
                    async move { drop(serve(stream, &client, &machine, &table).await) }
                })
                .await;
        })
    }
}

/// Answers the requests of one connection until it ends.
async fn serve<M: Machine>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    client: &str,
    machine: &M,
    table: &Mutex<Table>,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while stream.read_line(&mut line).await? > 0 {
        let answer = lock(table).answer(machine.monotonic_nanos(), client, &line);
        stream.write_all(answer.as_bytes()).await?;
        stream.flush().await?;
        line.clear();
    }
    Ok(())
}

/// All leases, and the last token.
#[derive(Default)]
struct Table {
    leases: BTreeMap<String, Lease>,
    token: u64,
}

struct Lease {
    owner: String,
    token: u64,
    /// The end of the lease on the server's monotonic clock, in nanoseconds.
    until: u64,
}

impl Table {
    fn answer(&mut self, now: u64, client: &str, line: &str) -> String {
        self.expire(now);
        let words: Vec<_> = line.split_whitespace().collect();
        let [verb, key, owner, ttl] = words[..] else { return "ERROR\n".to_owned() };
        let Ok(ttl) = ttl.parse::<u64>() else { return "ERROR\n".to_owned() };
        let until = now + ttl * 1_000_000;
        match (verb, self.leases.get_mut(key)) {
            ("LOCK", None) => {
                self.token += 1;
                let (owner, token) = (owner.to_owned(), self.token);
                emit_grant(key, &owner, token, ttl, client);
                self.leases.insert(key.to_owned(), Lease { owner, token, until });
                format!("GRANTED {token} {ttl}\n")
            }
            ("LOCK", Some(lease)) => {
                let left = (lease.until - now) / 1_000_000;
                match lease.owner == owner {
                    true => format!("GRANTED {} {left}\n", lease.token),
                    false => format!("HELD {left}\n"),
                }
            }
            ("RENEW", Some(lease)) if lease.owner == owner => {
                lease.until = until;
                emit_extension(key, owner, ttl, client);
                "OK\n".to_owned()
            }
            ("FREE", Some(lease)) if lease.owner == owner => {
                self.leases.remove(key);
                emit_end("key_deleted", key, owner, Some(client));
                "OK\n".to_owned()
            }
            _ => "GONE\n".to_owned(),
        }
    }

    fn expire(&mut self, now: u64) {
        self.leases.retain(|key, lease| {
            let is_over = lease.until <= now;
            if is_over {
                emit_end("key_expired", key, &lease.owner, None);
            }
            !is_over
        });
    }
}

fn emit_grant(key: &str, owner: &str, token: u64, ttl_millis: u64, client: &str) {
    tracing::info!(
        target: "server",
        event = "key_granted",
        resource_id_hash = key,
        owner_token_prefix = owner_prefix(owner),
        fencing_token = token,
        ttl_millis,
        client,
    );
}

fn emit_extension(key: &str, owner: &str, ttl_millis: u64, client: &str) {
    tracing::info!(
        target: "server",
        event = "key_extended",
        resource_id_hash = key,
        owner_token_prefix = owner_prefix(owner),
        ttl_millis,
        client,
    );
}

fn emit_end(event: &str, key: &str, owner: &str, client: Option<&str>) {
    tracing::info!(
        target: "server",
        event,
        resource_id_hash = key,
        owner_token_prefix = owner_prefix(owner),
        client,
    );
}

/// The lock of a worker, as a backend.
#[derive(Clone)]
struct Client {
    runtime: SimRuntime,
}

impl Backend for Client {
    type Runtime = SimRuntime;
    type Acquisition = Attempt;

    fn runtime(&self) -> &SimRuntime {
        &self.runtime
    }

    fn system(&self) -> &'static str {
        "toy"
    }

    fn open(&self, claim: Claim) -> Attempt {
        Attempt { runtime: self.runtime.clone(), claim, connection: None, is_open: false }
    }
}

/// One acquisition. Its requests go over one connection, so that none overtakes another.
struct Attempt {
    runtime: SimRuntime,
    claim: Claim,
    connection: Option<BufReader<SimStream>>,
    /// True if a `LOCK` was sent and not yet answered.
    is_open: bool,
}

impl Attempt {
    async fn ask(&mut self, verb: &str, deadline: Instant) -> Result<String, BackendError> {
        let Claim { key, owner, ttl, .. } = &self.claim;
        let request = format!("{verb} {} {} {}\n", key.id_hash(), owner.as_str(), ttl.as_millis());
        let (runtime, open) = (self.runtime.clone(), self.connection.take());
        let answer = timeout_at(&runtime, deadline, async {
            let mut connection = match open {
                Some(connection) => connection,
                None => BufReader::new(runtime.connect(ADDRESS).await?),
            };
            connection.write_all(request.as_bytes()).await?;
            connection.flush().await?;
            let mut answer = String::new();
            connection.read_line(&mut answer).await?;
            Ok::<_, io::Error>((connection, answer))
        });
        let (connection, answer) = match answer.await {
            Ok(Ok(answered)) => answered,
            Ok(Err(error)) => return Err(BackendError::Disconnected { reason: error.to_string() }),
            Err(_) => return Err(BackendError::NoAnswer),
        };
        self.connection = Some(connection);
        Ok(answer)
    }
}

impl Acquisition for Attempt {
    async fn request(&mut self, deadline: Instant) -> Result<Answer, BackendError> {
        let since = self.runtime.now();
        self.is_open = true;
        let answer = self.ask("LOCK", deadline).await?;
        let words: Vec<_> = answer.split_whitespace().collect();
        let millis = |text: &str| text.parse().ok().map(Duration::from_millis);
        let answer = match words[..] {
            ["GRANTED", token, left] => token
                .parse::<FencingToken>()
                .ok()
                .zip(millis(left))
                .map(|(token, left)| Answer::Granted { token, since, left }),
            ["HELD", left] => millis(left).map(|left| Answer::Taken { left: Some(left) }),
            _ => None,
        };
        self.is_open = answer.is_none();
        answer.ok_or(BackendError::NoAnswer)
    }

    async fn wait(&mut self, deadline: Instant) -> Result<(), BackendError> {
        self.runtime.sleep_until(deadline).await;
        Ok(())
    }

    async fn renew(&mut self, deadline: Instant) -> Result<Renewal, BackendError> {
        let since = self.runtime.now();
        match self.ask("RENEW", deadline).await?.as_str() {
            "OK\n" => Ok(Renewal::Extended { since, left: self.claim.ttl }),
            _ => Ok(Renewal::NotOwner),
        }
    }

    async fn release(&mut self, deadline: Instant) -> Result<Released, BackendError> {
        let answer = self.ask("FREE", deadline).await?;
        self.is_open = false;
        Ok(if answer == "OK\n" { Released::Done } else { Released::NotOwner })
    }

    fn needs_cleanup(&self) -> bool {
        self.is_open
    }
}
