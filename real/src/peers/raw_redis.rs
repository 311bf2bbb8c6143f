//! The fastest that a Redis allows: the library's scripts through the redis crate, the same over a blocking
//! socket, a lease without a token, and redis-benchmark's pipelines.
//!
//! An acquire is compared with the crate, as a lock on etcd is compared with a transaction of etcd-client:
//! the same client library on the same runtime, without a lock. The socket shows the cost of library and
//! runtime: it parses nothing, sends one request at a time, has no deadlines, and waits in the kernel.
#![allow(clippy::disallowed_methods, reason = "the yardstick is measured on the machine's own clock")]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Instant;

use dlock::LockKey;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, RedisResult, cmd};
use tokio::runtime::Builder;

use super::PeerError;
use super::slice::{Job, Peer, Scenario, Slice, nanos};

/// The script with which [`dlock::redis`] acquires.
const ACQUIRE: &str = include_str!("../../../dlock/src/redis/acquire.lua");
/// The script with which it releases.
const RELEASE: &str = include_str!("../../../dlock/src/redis/release.lua");
/// An owner token of the library's length.
const OWNER: &str = "0123456789abcdef0123456789abcdef";

/// The keys that our lock uses, and the channel of its release notifications.
struct Keys {
    owner: String,
    fence: String,
    freed: String,
}

impl Keys {
    /// Returns the keys of the job's lock with this id.
    fn of(job: &Job, id: &str) -> io::Result<Self> {
        let key = LockKey::new(&job.name, id).map_err(io::Error::other)?;
        Ok(Self { owner: key.owner_key(), fence: key.fence_key(), freed: key.freed_channel() })
    }
}

/// Acquires and releases through the redis crate over one connection, as our locks do, without timeouts,
/// retries or new owner tokens.
pub(super) struct RedisCrate {
    pub(super) server: String,
    pub(super) acquires: Acquires,
}

/// The command that acquires a lease; the script of [`dlock::redis`] releases it.
pub(super) enum Acquires {
    /// The script of [`dlock::redis`].
    Evalsha,
    /// The SET command, as in locks without fencing tokens. The difference is the cost of the token.
    Set,
}

impl Peer for RedisCrate {
    fn name(&self) -> &'static str {
        match self.acquires {
            Acquires::Evalsha => "raw EVALSHA, redis crate",
            Acquires::Set => "raw SET, redis crate",
        }
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        let failed = |what: String| PeerError::Failed { name: self.name(), what };
        let executor = Builder::new_current_thread().enable_all().build();
        let executor = executor.map_err(|error| failed(error.to_string()))?;
        executor.block_on(self.uncontended(job)).map_err(|error| failed(error.to_string()))
    }
}

/// Connects to the Redis at `server`, without timeouts.
pub(super) async fn connect(server: &str) -> RedisResult<MultiplexedConnection> {
    let info = format!("redis://{server}").into_connection_info()?;
    let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
    Client::open(info)?.get_multiplexed_async_connection_with_config(&config).await
}

impl RedisCrate {
    async fn uncontended(&self, job: &Job) -> RedisResult<Slice> {
        let mut connection = connect(&self.server).await?;
        let acquire: String = cmd("SCRIPT").arg("LOAD").arg(ACQUIRE).query_async(&mut connection).await?;
        let release: String = cmd("SCRIPT").arg("LOAD").arg(RELEASE).query_async(&mut connection).await?;
        let keys = Keys::of(job, "0")?;
        let mut slice = Slice { completed: job.operations, ..Slice::default() };
        let begun = Instant::now();
        for _ in 0..job.operations {
            let called = Instant::now();
            self.acquire(&mut connection, &acquire, &keys, job.ttl_ms).await?;
            let granted = Instant::now();
            let mut command = cmd("EVALSHA");
            command.arg(&release).arg(1).arg(&keys.owner).arg(OWNER).arg(&keys.freed);
            let _released: bool = command.query_async(&mut connection).await?;
            slice.acquire_ns.push(nanos(granted - called));
            slice.release_ns.push(nanos(granted.elapsed()));
        }
        slice.elapsed_ns = nanos(begun.elapsed());
        Ok(slice)
    }

    async fn acquire(
        &self,
        connection: &mut MultiplexedConnection,
        digest: &str,
        keys: &Keys,
        ttl_ms: u64,
    ) -> RedisResult<()> {
        match self.acquires {
            Acquires::Evalsha => {
                let mut command = cmd("EVALSHA");
                command.arg(digest).arg(2).arg(&keys.owner).arg(&keys.fence).arg(OWNER).arg(ttl_ms);
                command.query_async::<u64>(connection).await.map(drop)
            }
            Acquires::Set => {
                let mut command = cmd("SET");
                command.arg(&keys.owner).arg(OWNER).arg("NX").arg("PX").arg(ttl_ms);
                command.query_async::<String>(connection).await.map(drop)
            }
        }
    }
}

/// Sends one EVALSHA after the other: a write, and a blocking read.
pub(super) struct SocketEvalsha {
    pub(super) server: String,
}

impl Peer for SocketEvalsha {
    fn name(&self) -> &'static str {
        "raw EVALSHA, bare socket"
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        self.uncontended(job)
            .map_err(|error| PeerError::Failed { name: self.name(), what: error.to_string() })
    }
}

impl SocketEvalsha {
    fn uncontended(&self, job: &Job) -> io::Result<Slice> {
        let mut wire = Wire::open(&self.server)?;
        let Keys { owner, fence, freed } = Keys::of(job, "0")?;
        let (acquire, release) = (wire.load(ACQUIRE)?, wire.load(RELEASE)?);
        let ttl = job.ttl_ms.to_string();
        let acquire = command(&["EVALSHA", &acquire, "2", &owner, &fence, OWNER, &ttl]);
        let release = command(&["EVALSHA", &release, "1", &owner, OWNER, &freed]);
        let mut slice = Slice { completed: job.operations, ..Slice::default() };
        let begun = Instant::now();
        for _ in 0..job.operations {
            let called = Instant::now();
            wire.ask(&acquire, 1, ":")?;
            let granted = Instant::now();
            wire.ask(&release, 1, ":1\r\n")?;
            slice.acquire_ns.push(nanos(granted - called));
            slice.release_ns.push(nanos(granted.elapsed()));
        }
        slice.elapsed_ns = nanos(begun.elapsed());
        Ok(slice)
    }
}

struct Wire {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Wire {
    fn open(server: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, answer: Vec::with_capacity(256) })
    }

    /// Loads a script and returns its digest.
    fn load(&mut self, script: &str) -> io::Result<String> {
        self.ask(&command(&["SCRIPT", "LOAD", script]), 2, "$40\r\n")?;
        Ok(String::from_utf8_lossy(&self.answer[5..45]).into_owned())
    }

    /// Sends a command and reads an answer of `lines` lines, which must begin with `begins`.
    fn ask(&mut self, command: &[u8], lines: usize, begins: &str) -> io::Result<()> {
        self.stream.write_all(command)?;
        self.answer.clear();
        let mut part = [0; 256];
        while self.answer.iter().filter(|byte| **byte == b'\n').count() < lines {
            let count = self.stream.read(&mut part)?;
            self.answer.extend_from_slice(&part[..count]);
            let is_error = self.answer.starts_with(b"-");
            if count == 0 || (is_error && self.answer.ends_with(b"\n")) {
                break;
            }
        }
        if self.answer.starts_with(begins.as_bytes()) {
            return Ok(());
        }
        Err(io::Error::other(format!("the Redis answered {:?}", String::from_utf8_lossy(&self.answer))))
    }
}

fn command(words: &[&str]) -> Vec<u8> {
    let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    let count = words.len();
    format!("*{count}\r\n{}", words.collect::<String>()).into_bytes()
}

/// [`OWNER`] with a placeholder, which redis-benchmark replaces by twelve digits, so that each acquire has a
/// token of its own. A constant token would cost the server less: Lua interns the string.
const OWNERS: &str = "0123456789abcdef0123__rand_int__";

/// redis-benchmark with 64 commands in flight on each of its 50 connections.
pub(super) struct RedisBenchmark {
    pub(super) server: String,
}

impl Peer for RedisBenchmark {
    fn name(&self) -> &'static str {
        "redis-benchmark -P 64"
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        debug_assert_eq!(job.scenario, Scenario::Take);
        self.evalsha(job).map_err(|error| PeerError::Failed { name: self.name(), what: error.to_string() })
    }
}

impl RedisBenchmark {
    fn evalsha(&self, job: &Job) -> io::Result<Slice> {
        let digest = Wire::open(&self.server)?.load(ACQUIRE)?;
        let (host, port) = self.server.split_once(':').unwrap_or((&self.server, "6379"));
        let commands = job.takes();
        let keys = Keys::of(job, "__rand_int__")?;
        let output = Command::new("redis-benchmark")
            .args(["-h", host, "-p", port, "-P", "64", "--csv", "-r", "1000000000"])
            .args(["-n", &commands.to_string(), "EVALSHA", &digest, "2"])
            .args([&keys.owner, &keys.fence, OWNERS, &job.ttl_ms.to_string()])
            .output()?;
        let told = String::from_utf8_lossy(&output.stdout);
        let rate = requests_per_second(&told).ok_or_else(|| {
            let error = String::from_utf8_lossy(&output.stderr);
            io::Error::other(format!("it printed no rate: {told}{error}"))
        })?;
        let elapsed_ns = (commands as f64 / rate * 1e9) as u64;
        Ok(Slice { completed: commands, elapsed_ns, ..Slice::default() })
    }
}

/// Returns the second field of the last line: `"EVALSHA …","136054.42","0.4",…`.
fn requests_per_second(csv: &str) -> Option<f64> {
    let line = csv.lines().rfind(|line| line.starts_with("\"EVALSHA"))?;
    let rate: f64 = line.split("\",\"").nth(1)?.parse().ok()?;
    (rate > 0.0).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_bulk_strings() {
        assert_eq!(command(&["GET", "k:1"]), b"*2\r\n$3\r\nGET\r\n$3\r\nk:1\r\n");
    }

    #[test]
    fn the_rate_is_the_field_after_the_command() {
        let told = "\"test\",\"rps\",\"avg_latency_ms\"\n\"EVALSHA abc 2 a b\",\"136054.42\",\"0.392\"\n";
        assert_eq!(requests_per_second(told), Some(136_054.42));
        assert_eq!(requests_per_second("ERROR: no such script"), None);
    }
}
