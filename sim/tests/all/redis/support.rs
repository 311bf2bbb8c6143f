//! A server in a world whose clock the test moves, and a client that reads replies with a decoder that is not ours.
#![allow(clippy::disallowed_methods, reason = "a test")]

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::types::OwnedFrame;
use sim::servers::redis::{AppendFile, Effect, Observer, Server, ServerOptions, ServerWorld};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Notify;

/// 2023-11-14T22:13:20Z.
pub const START_MS: u64 = 1_700_000_000_000;

/// A clock that stands still until the test moves it.
#[derive(Clone)]
pub struct Clock {
    micros: Arc<AtomicU64>,
    moved: Arc<Notify>,
    /// How often somebody went to sleep.
    pub sleeps: Arc<AtomicU64>,
}

impl Clock {
    pub fn new() -> Self {
        let micros = Arc::new(AtomicU64::new(START_MS * 1000));
        Self { micros, moved: Arc::default(), sleeps: Arc::default() }
    }

    /// Lets time pass, and everyone act on it.
    pub async fn advance_ms(&self, millis: u64) {
        self.micros.fetch_add(millis * 1000, Ordering::SeqCst);
        self.moved.notify_waiters();
        settle().await;
    }

    pub fn step_back_ms(&self, millis: u64) {
        self.micros.fetch_sub(millis * 1000, Ordering::SeqCst);
    }
}

impl ServerWorld for Clock {
    fn wall_micros(&self) -> u64 {
        self.micros.load(Ordering::SeqCst)
    }

    async fn sleep(&self, duration: Duration) {
        self.sleeps.fetch_add(1, Ordering::SeqCst);
        let end = self.wall_micros() + u64::try_from(duration.as_micros()).unwrap();
        loop {
            let moved = self.moved.notified();
            if self.wall_micros() >= end {
                return;
            }
            moved.await;
        }
    }
}

/// Lets every task run until all of them wait.
pub async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Runs a test's body on a runtime without a clock.
pub fn run(body: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(body);
}

pub fn server(clock: &Clock) -> Server<Clock> {
    Server::new(ServerOptions::new("redis"), clock.clone())
}

/// Runs the server's background task beside the test.
pub fn start_background(server: &Server<Clock>) -> tokio::task::JoinHandle<()> {
    let server = server.clone();
    tokio::spawn(async move { server.background().await })
}

/// A stream to `server`.
pub fn connect(server: &Server<Clock>, client: &'static str) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let server = server.clone();
    tokio::spawn(async move { server.serve_connection(theirs, client).await });
    ours
}

/// A client that sends texts and shows replies as texts: `+OK`, `-ERR …`, `:1`, `"bulk"`, `nil`, `[…]`.
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

    /// Sends a line as people type it.
    pub async fn type_line(&mut self, line: &str) -> String {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).await.unwrap();
        self.reply().await
    }

    /// The next reply, or `closed`.
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

/// A file on a disk that forgets what was not synced when its machine crashes.
#[derive(Default)]
pub struct CrashFile {
    written: Mutex<Vec<u8>>,
    synced: Mutex<usize>,
    pub syncs: AtomicU64,
}

impl CrashFile {
    /// The machine loses power.
    pub fn crash(&self) {
        self.written.lock().unwrap().truncate(*self.synced.lock().unwrap());
    }

    /// The last `bytes` bytes are lost, whatever was promised.
    pub fn tear(&self, bytes: usize) {
        let mut written = self.written.lock().unwrap();
        let left = written.len() - bytes;
        written.truncate(left);
    }
}

impl AppendFile for CrashFile {
    fn append(&self, bytes: &[u8]) {
        self.written.lock().unwrap().extend_from_slice(bytes);
    }

    fn sync(&self) {
        *self.synced.lock().unwrap() = self.written.lock().unwrap().len();
        self.syncs.fetch_add(1, Ordering::SeqCst);
    }

    fn contents(&self) -> Vec<u8> {
        self.written.lock().unwrap().clone()
    }

    fn truncate(&self, bytes: usize) {
        self.written.lock().unwrap().truncate(bytes);
    }
}

/// Writes down what it is told, a line each.
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
            };
            self.0.lock().unwrap().push(format!("{client}: {line}"));
        }
    }

    fn executed(&self, client: &str, command: &'static str) {
        self.0.lock().unwrap().push(format!("{client}: executed {command}"));
    }
}
