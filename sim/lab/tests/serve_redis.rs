//! `sim serve-redis` over real sockets: clients that send without reading, and the memory that they cost.
#![allow(clippy::unwrap_used, reason = "a live test")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const MIB: usize = 1 << 20;

/// An exchange that takes longer than this hangs, on a busy machine too.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The kernel keeps so few replies for a client that does not read them. By itself it takes some 6 MiB.
const RECEIVE_BUFFER_BYTES: u32 = 64 * 1024;

/// The command, on a free port. Dropping it ends it.
struct Server {
    process: Child,
    address: SocketAddr,
}

impl Server {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(options: &[&str]) -> Self {
        let mut process = command(options).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_once("listens on ").unwrap().1.split_once(';').unwrap().0.parse().unwrap();
        Self { process, address }
    }

    fn connect(&self) -> Client {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES).unwrap();
            socket.connect(self.address).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        Client(BufReader::new(stream))
    }

    /// Returns the most memory that the process has had at once, in bytes; `None` on systems without `/proc`.
    fn peak_memory_bytes(&self) -> Option<usize> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).ok()?;
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(peak.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024)
    }

    /// Fails the test if the process has had more memory than this at once.
    fn expect_memory(&self, bytes_max: usize) {
        if let Some(peak) = self.peak_memory_bytes() {
            println!("peak of the memory: {} MiB", peak / MIB);
            assert!(peak < bytes_max, "{} MiB", peak / MIB);
        }
    }
}

/// Returns the command, on a free port.
fn command(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sim"));
    command.args(["serve-redis", "--port", "0"]).args(options);
    command
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails only if the process has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Returns the first line of the reply.
    fn call(&mut self, words: &[&str]) -> String {
        self.send(&request(words)).unwrap();
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }
}

/// Returns a request in the protocol of Redis.
fn request(words: &[&str]) -> Vec<u8> {
    let words: Vec<_> = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{}", words.len(), words.concat()).into_bytes()
}

#[test]
fn the_server_has_the_commands_of_the_chosen_version() {
    for (options, commands) in [
        (&[][..], ":170\r\n"),
        (&["--version", "redis-7"], ":170\r\n"),
        (&["--version", "redis-8.4"], ":185\r\n"),
        (&["--version", "valkey-9"], ":184\r\n"),
    ] {
        let server = Server::start_with(options);
        assert_eq!(server.connect().call(&["COMMAND", "COUNT"]), commands, "{options:?}");
    }
}

#[test]
fn an_unknown_version_is_refused_with_the_known_ones() {
    let refused = command(&["--version", "redis-9"]).output().unwrap();
    let text = String::from_utf8(refused.stderr).unwrap();
    let expected = "unknown version `redis-9`: known are redis-7, redis-8.4, valkey-9";
    assert!(!refused.status.success() && text.contains(expected), "{text}");
}

/// 120,000 requests of 15 MB, whose replies of 13 MB are more than the sockets keep.
#[test]
fn a_pipeline_is_answered_to_a_client_that_reads_later() {
    let server = Server::start();
    let mut client = server.connect();
    let value = "x".repeat(200);
    let pair = [request(&["SET", "k", &value]), request(&["GET", "k"])].concat();
    client.send(&pair.repeat(60_000)).unwrap();
    let reply = format!("+OK\r\n$200\r\n{value}\r\n");
    let mut replies = vec![0; reply.len()];
    for number in 0..60_000 {
        client.0.read_exact(&mut replies).unwrap();
        assert_eq!(replies, reply.as_bytes(), "pair {number}");
    }
    assert_eq!(client.call(&["PING"]), "+PONG\r\n");
}

#[test]
fn a_subscriber_that_sends_without_reading_is_closed_at_the_output_limit() {
    let server = Server::start();
    let (mut slow, mut other) = (server.connect(), server.connect());
    assert_eq!(slow.call(&["SUBSCRIBE", "news"]), "*3\r\n");
    let (message, pings) = ("x".repeat(MIB), request(&["PING"]).repeat(1000));
    let mut received = 0;
    while other.call(&["PUBLISH", "news", &message]) == ":1\r\n" {
        received += 1;
        assert!(received < 64, "the subscriber is still there");
        assert_eq!(other.call(&["PING"]), "+PONG\r\n");
        // Fails once the server has closed the connection.
        let _ = slow.send(&pings);
    }
    // The limit is 32 MiB; the sockets take some more.
    assert!((32..=44).contains(&received), "{received}");
    while slow.send(&pings).is_ok() {}
    server.expect_memory(128 * MIB);
}

/// As in Redis, the output of a client that only asks has no limit of its own. The server stops answering it
/// instead, and closes the connection once 1 GiB of requests waits.
#[test]
fn a_client_that_sends_without_reading_is_closed_at_the_input_limit() {
    let server = Server::start();
    let (mut slow, mut other) = (server.connect(), server.connect());
    assert_eq!(other.call(&["SET", "k", &"x".repeat(MIB)]), "+OK\r\n");
    let asks = request(&["GET", "k"]);
    let asks = asks.repeat(16 * MIB / asks.len());
    let mut sent = 0;
    while slow.send(&asks).is_ok() {
        sent += asks.len();
        assert!(sent < 1200 * MIB, "the client is still there");
        assert_eq!(other.call(&["PING"]), "+PONG\r\n");
    }
    assert!(sent > 1000 * MIB, "closed after {} MiB", sent / MIB);
    assert_eq!(other.call(&["PING"]), "+PONG\r\n");
    server.expect_memory(2500 * MIB);
}
