//! A server on a machine whose clock the test moves, and a client that reads replies with an independent
//! decoder.
#![allow(clippy::disallowed_methods, reason = "a test")]

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::{Buf, BytesMut};
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;
use sim::servers::redis::{Effect, Observer, Server, ServerOptions, Version};
use sim::world::disk::Disk;
use sim::world::machine::{Accept, Machine};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Notify;

/// 2023-11-14T22:13:20Z.
pub const START_MS: u64 = 1_700_000_000_000;

/// A machine without a network, whose clocks advance only when the test moves them.
#[derive(Clone)]
pub struct Clock {
    /// The monotonic clock.
    micros: Arc<AtomicU64>,
    /// The total by which the wall clock was set back.
    behind_micros: Arc<AtomicU64>,
    moved: Arc<Notify>,
    /// The number of sleeps that tasks have begun.
    pub sleeps: Arc<AtomicU64>,
    /// The disk of the machine.
    pub disk: Disk,
}

impl Clock {
    pub fn new() -> Self {
        let micros = Arc::new(AtomicU64::new(START_MS * 1000));
        let (behind_micros, moved, sleeps) = Default::default();
        Self { micros, behind_micros, moved, sleeps, disk: Disk::new() }
    }

    /// Returns a machine with the same clocks and an empty disk.
    pub fn with_empty_disk(&self) -> Self {
        Self { disk: Disk::new(), ..self.clone() }
    }

    /// Advances both clocks by `millis` milliseconds, and lets all tasks react.
    pub async fn advance_ms(&self, millis: u64) {
        self.micros.fetch_add(millis * 1000, Ordering::SeqCst);
        self.moved.notify_waiters();
        settle().await;
    }

    pub fn step_back_ms(&self, millis: u64) {
        self.behind_micros.fetch_add(millis * 1000, Ordering::SeqCst);
    }

    /// Undoes as much of [`Clock::step_back_ms`].
    pub fn step_forward_ms(&self, millis: u64) {
        self.behind_micros.fetch_sub(millis * 1000, Ordering::SeqCst);
    }
}

impl dlock_runtime::Probed for Clock {}

impl Machine for Clock {
    type Stream = DuplexStream;
    type Listener = Unlistened;

    fn name(&self) -> &str {
        "redis"
    }

    fn monotonic_nanos(&self) -> u64 {
        self.micros.load(Ordering::SeqCst) * 1000
    }

    fn wall_micros(&self) -> u64 {
        self.micros.load(Ordering::SeqCst) - self.behind_micros.load(Ordering::SeqCst)
    }

    async fn sleep_until(&self, nanos: u64) {
        self.sleeps.fetch_add(1, Ordering::SeqCst);
        loop {
            let moved = self.moved.notified();
            if self.monotonic_nanos() >= nanos {
                return;
            }
            moved.await;
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }

    fn is_running(&self) -> bool {
        true
    }

    fn reaches(&self, _: &str) -> bool {
        false
    }

    fn disk(&self) -> Disk {
        self.disk.clone()
    }

    fn listen(&self, _: u16) -> io::Result<Unlistened> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn connect(&self, _: &str) -> io::Result<DuplexStream> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn take_name(&self, _: &str) {}

    fn point(&self, _: &str) {}
}

/// The listener of a machine without a network: it has no value.
pub enum Unlistened {}

impl Accept for Unlistened {
    type Stream = DuplexStream;

    async fn accept(&mut self) -> (DuplexStream, String) {
        match *self {}
    }
}

/// Lets every task run until all of them wait.
pub async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Runs the body of a test on a tokio runtime without timers.
pub fn run(body: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(body);
}

pub fn server(clock: &Clock) -> Server<Clock> {
    Server::new(ServerOptions::new("redis"), clock.clone())
}

/// Creates a server of another version.
pub fn server_of(version: Version, clock: &Clock) -> Server<Clock> {
    let mut options = ServerOptions::new("redis");
    options.version = version;
    Server::new(options, clock.clone())
}

/// Starts the server's background task.
pub fn start_background(server: &Server<Clock>) -> tokio::task::JoinHandle<()> {
    let server = server.clone();
    tokio::spawn(async move { server.background().await })
}

/// Opens a connection of `client` to `server`.
pub fn connect(server: &Server<Clock>, client: &'static str) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let server = server.clone();
    tokio::spawn(async move { server.serve_connection(theirs, client).await });
    ours
}

/// A client that sends texts and formats replies as texts: `+OK`, `-ERR …`, `:1`, `"bulk"`, `nil`, `[…]`.
pub struct Client {
    pub stream: DuplexStream,
    buffer: BytesMut,
}

impl Client {
    pub fn new(server: &Server<Clock>) -> Self {
        Self::named(server, "test")
    }

    pub fn named(server: &Server<Clock>, name: &'static str) -> Self {
        Self { stream: connect(server, name), buffer: BytesMut::new() }
    }

    /// Sends the words of `line`, separated by spaces.
    pub async fn call(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        self.call_words(&words).await
    }

    pub async fn call_words(&mut self, words: &[&str]) -> String {
        self.stream.write_all(&encode(words)).await.unwrap();
        self.reply().await
    }

    /// Sends an inline command, as a person would type it.
    pub async fn type_line(&mut self, line: &str) -> String {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
        self.reply().await
    }

    /// Returns the next reply, or `closed` if the server has closed the connection.
    pub async fn reply(&mut self) -> String {
        loop {
            if let Some((frame, size)) =
                decode(&self.buffer).expect("a reply that an independent decoder reads")
            {
                self.buffer.advance(size);
                return show(&frame);
            }
            if self.stream.read_buf(&mut self.buffer).await.unwrap() == 0 {
                return "closed".into();
            }
        }
    }
}

pub fn encode(words: &[&str]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    request.into_bytes()
}

pub fn show(frame: &OwnedFrame) -> String {
    match frame {
        OwnedFrame::SimpleString(text) => format!("+{}", String::from_utf8_lossy(text)),
        OwnedFrame::Error(text) => format!("-{text}"),
        OwnedFrame::Integer(number) => format!(":{number}"),
        OwnedFrame::BulkString(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        OwnedFrame::Null => "nil".into(),
        OwnedFrame::Array(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(", ")),
    }
}

/// Records each observed effect and command as a text.
#[derive(Default)]
pub struct Diary(Mutex<Vec<String>>);

impl Diary {
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for Diary {
    fn changed(&self, client: &str, _: i64, effects: &[Effect]) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for effect in effects {
            let line = match effect {
                Effect::Set { key, value, .. } => format!("set {} {}", text(key), text(value)),
                Effect::Counted { key, value, by } => format!("counted {} by {by} to {value}", text(key)),
                Effect::Extended { key, .. } => format!("extended {}", text(key)),
                Effect::Removed { key, cause, .. } => format!("removed {} {cause:?}", text(key)),
                Effect::Flushed { entries } => format!("flushed {}", entries.len()),
                Effect::Changed { key } => format!("changed {}", text(key)),
                Effect::Selected { database } => format!("selected {database}"),
                // The effects that it repeats follow.
                Effect::Command { .. } => continue,
            };
            self.0.lock().unwrap().push(format!("{client}: {line}"));
        }
    }

    fn executed(&self, client: &str, command: &'static str) {
        self.0.lock().unwrap().push(format!("{client}: executed {command}"));
    }
}
