//! Leader election: one of several processes leads and writes, and another takes over when it ends, stands
//! still or is cut off. All of them see who leads. The term is the fencing token. Each write carries it,
//! since a leader that pauses does not know that it was replaced: the resource refuses the old term.
//!
//! Start a resource, `cargo run -p fencepost-real -- resource`. Run this in two terminals, and stop one:
//! `cargo run --example leader -- redis://127.0.0.1:6379 127.0.0.1:8080`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a live program")]

use std::error::Error;
use std::time::Duration;

use dlock::election::Election;
use dlock::{AcquireError, AnyBackend, Cap, FencingToken, Lock, LockKey, Options, TokioRuntime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};

/// A term ends after an hour at the latest, so that a leader that hangs is replaced.
const TERM_MAX: Cap = Cap(Duration::from_secs(3600));

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let resource = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let mut options = Options::new(Duration::from_secs(3));
    options.instance = Some(format!("process-{}", std::process::id()));
    let lock = Lock::connect(&url, options).await?;
    let election = Election::new(lock.clone(), LockKey::new("leader", "scheduler")?, TERM_MAX)?;
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = lead(&lock, &election, &resource) => ended?,
        () = observe(&election) => {}
        _ = terminated.recv() => println!("told to end"),
    }
    // The next leader need not wait for the end of the lease.
    lock.close(lock.deadline_in(Duration::from_secs(5))).await;
    Ok(())
}

/// Campaigns, leads until the term ends, and campaigns again.
async fn lead(
    lock: &Lock<AnyBackend<TokioRuntime>>,
    election: &Election<AnyBackend<TokioRuntime>>,
    resource: &str,
) -> Result<(), Box<dyn Error>> {
    loop {
        let leadership = match election.campaign(lock.deadline_in(Duration::from_secs(60))).await {
            Ok(leadership) => leadership,
            Err(AcquireError::Refused(error)) => return Err(error.into()),
            // Another one leads.
            Err(_) => continue,
        };
        let term = leadership.term();
        println!("leads in term {term}");
        match leadership.lead(act(term, resource)).await {
            Ok(refusal) => println!("leads no more: {refusal}"),
            Err(lost) => println!("leads no more: {lost}"),
        }
    }
}

/// The work of a leader: a write each second, until one is refused. Returns the refusal.
async fn act(term: FencingToken, resource: &str) -> String {
    for number in 1.. {
        match write(term, resource, &format!("decision {number}")).await {
            Ok(200) => println!("wrote decision {number} in term {term}"),
            Ok(409) => return format!("the resource has seen a newer term than {term}"),
            Ok(status) => println!("the resource answered {status}"),
            Err(error) => println!("no answer of the resource: {error}"),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    "all is decided".to_owned()
}

/// Sends `body` to the resource with the term; returns the status of the answer.
async fn write(term: FencingToken, resource: &str, body: &str) -> Result<u16, Box<dyn Error + Send + Sync>> {
    let mut connection = TcpStream::connect(resource).await?;
    let request = format!(
        "PUT /r/leader:scheduler HTTP/1.1\r\nHost: {resource}\r\nX-Fence-Token: {term}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    Ok(answer.split(' ').nth(1).ok_or("an empty answer")?.parse()?)
}

/// Prints each new leader.
async fn observe(election: &Election<AnyBackend<TokioRuntime>>) {
    let mut observer = election.observe();
    loop {
        match observer.next().await {
            Ok(seen) => println!("sees {} lead in term {}", seen.leader, seen.term),
            Err(error) => println!("sees no leader: {error}"),
        }
    }
}
