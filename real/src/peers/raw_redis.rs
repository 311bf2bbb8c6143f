//! What a Redis can do at best: the shipping scripts by one socket that blocks, and redis-benchmark's pipelines.
#![allow(clippy::disallowed_methods, reason = "the yardstick is measured on the machine's own clock")]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Instant;

use super::PeerError;
use super::slice::{Job, Peer, Scenario, Slice, nanos};

/// The script that [`dlock::redis`] acquires by.
const ACQUIRE: &str = include_str!("../../../dlock/src/redis/acquire.lua");
/// The script that it releases by.
const RELEASE: &str = include_str!("../../../dlock/src/redis/release.lua");
/// An owner token, as long as ours.
const OWNER: &str = "0123456789abcdef0123456789abcdef";

/// One EVALSHA after the other: a write, and a read that blocks.
pub(super) struct RawEvalsha {
    pub(super) server: String,
}

impl Peer for RawEvalsha {
    fn name(&self) -> &'static str {
        "raw EVALSHA"
    }

    fn run(&mut self, job: &Job) -> Result<Slice, PeerError> {
        self.uncontended(job)
            .map_err(|error| PeerError::Failed { name: self.name(), what: error.to_string() })
    }
}

impl RawEvalsha {
    fn uncontended(&self, job: &Job) -> io::Result<Slice> {
        let mut wire = Wire::open(&self.server)?;
        let key = format!("lock:v1:{{{}:0}}", job.name);
        let (owner_key, fence_key) = (format!("{key}:owner"), format!("{key}:fence"));
        let (acquire, release) = (wire.load(ACQUIRE)?, wire.load(RELEASE)?);
        let ttl = job.ttl_ms.to_string();
        let acquire = command(&["EVALSHA", &acquire, "2", &owner_key, &fence_key, OWNER, &ttl]);
        let release = command(&["EVALSHA", &release, "1", &owner_key, OWNER]);
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

    /// Loads a script, and returns its digest.
    fn load(&mut self, script: &str) -> io::Result<String> {
        self.ask(&command(&["SCRIPT", "LOAD", script]), 2, "$40\r\n")?;
        Ok(String::from_utf8_lossy(&self.answer[5..45]).into_owned())
    }

    /// Sends a command and reads an answer of so many lines, which must begin as it should.
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

/// redis-benchmark with 64 commands under way on each of its 50 connections.
pub(super) struct RedisBenchmark {
    pub(super) server: String,
}

/// About as many as it makes in a millisecond.
const COMMANDS_PER_MILLI: u64 = 150;

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
        let commands = (job.millis * COMMANDS_PER_MILLI).max(1000);
        let key = format!("lock:v1:{{{}:__rand_int__}}", job.name);
        let output = Command::new("redis-benchmark")
            .args(["-h", host, "-p", port, "-P", "64", "--csv", "-r", "1000000000"])
            .args(["-n", &commands.to_string(), "EVALSHA", &digest, "2"])
            .args([&format!("{key}:owner"), &format!("{key}:fence"), OWNER, &job.ttl_ms.to_string()])
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

/// The second field of the last line: `"EVALSHA …","136054.42","0.4",…`.
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
