//! The peer rslock on one Redis, with its default settings. Reads jobs and prints results as lines of JSON.

#[path = "../../../src/timer.rs"]
mod timer;

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rslock::LockManager;
use serde::{Deserialize, Serialize};
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout_at};

#[derive(Deserialize)]
struct Job {
    scenario: String,
    name: String,
    operations: u64,
    contenders: u64,
    work_ms: u64,
    ttl_ms: u64,
    millis: u64,
}

#[derive(Default, Serialize)]
struct Slice {
    acquire_ns: Vec<u64>,
    release_ns: Vec<u64>,
    completed: u64,
    elapsed_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("give the address of a Redis")?;
    let locks = LockManager::new(vec![format!("redis://{address}")]);
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for line in stdin().lock().lines() {
        let job: Job = serde_json::from_str(&line?)?;
        let slice = LocalSet::new().block_on(&executor, run(&locks, Rc::new(job)));
        let slice =
            slice.unwrap_or_else(|error| Slice { error: Some(error.to_string()), ..Slice::default() });
        writeln!(stdout(), "{}", serde_json::to_string(&slice)?)?;
    }
    Ok(())
}

async fn run(locks: &LockManager, job: Rc<Job>) -> Result<Slice, Box<dyn Error>> {
    match job.scenario.as_str() {
        "uncontended" => uncontended(locks, &job).await,
        "hot" => contended(locks, job).await,
        "space" => spread(locks, job).await,
        other => Err(format!("no such scenario: {other}").into()),
    }
}

async fn uncontended(locks: &LockManager, job: &Job) -> Result<Slice, Box<dyn Error>> {
    let (name, ttl) = (format!("{}:0", job.name), Duration::from_millis(job.ttl_ms));
    let mut slice = Slice { completed: job.operations, ..Slice::default() };
    // The first round opens the connection and loads the scripts.
    for round in 0..=job.operations {
        let begun = Instant::now();
        let lock = locks.acquire_no_guard(name.as_str(), ttl).await?;
        let granted = Instant::now();
        locks.unlock(&lock).await;
        if round > 0 {
            slice.acquire_ns.push(nanos(granted - begun));
            slice.release_ns.push(nanos(granted.elapsed()));
        }
    }
    slice.elapsed_ns = slice.acquire_ns.iter().chain(&slice.release_ns).sum();
    Ok(slice)
}

async fn contended(locks: &LockManager, job: Rc<Job>) -> Result<Slice, Box<dyn Error>> {
    let slice = Rc::new(RefCell::new(Slice::default()));
    let begun = Instant::now();
    let end = begun + Duration::from_millis(job.millis);
    let contend = |_| {
        let (locks, job, slice) = (locks.clone(), Rc::clone(&job), Rc::clone(&slice));
        tokio::task::spawn_local(async move {
            let (name, ttl) = (format!("{}:0", job.name), Duration::from_millis(job.ttl_ms));
            while Instant::now() < end {
                let called = Instant::now();
                let asked = timeout_at(end.into(), locks.acquire_no_guard(name.as_str(), ttl)).await;
                let Ok(Ok(lock)) = asked else { return };
                let waited = nanos(called.elapsed());
                timer::sleep(Duration::from_millis(job.work_ms)).await;
                let before = Instant::now();
                locks.unlock(&lock).await;
                note(&mut slice.borrow_mut(), waited, nanos(before.elapsed()), nanos(begun.elapsed()));
                sleep(Duration::from_millis(job.work_ms)).await;
            }
        })
    };
    let contenders: Vec<_> = (0..job.contenders).map(contend).collect();
    for contender in contenders {
        contender.await?;
    }
    Ok(slice.take())
}

fn note(slice: &mut Slice, acquire_ns: u64, release_ns: u64, elapsed_ns: u64) {
    slice.acquire_ns.push(acquire_ns);
    slice.release_ns.push(release_ns);
    slice.completed += 1;
    slice.elapsed_ns = elapsed_ns;
}

async fn spread(locks: &LockManager, job: Rc<Job>) -> Result<Slice, Box<dyn Error>> {
    let count = Rc::new(Cell::new(0));
    let begun = Instant::now();
    let end = begun + Duration::from_millis(job.millis);
    let take = |_| {
        let (locks, job, count) = (locks.clone(), Rc::clone(&job), Rc::clone(&count));
        tokio::task::spawn_local(async move {
            while Instant::now() < end {
                count.set(count.get() + 1);
                let name = format!("{}:{}", job.name, count.get());
                let Ok(lock) = locks.acquire_no_guard(name.as_str(), Duration::from_millis(job.ttl_ms)).await
                else {
                    return;
                };
                locks.unlock(&lock).await;
            }
        })
    };
    let tasks: Vec<_> = (0..job.contenders).map(take).collect();
    for task in tasks {
        task.await?;
    }
    Ok(Slice { completed: count.get(), elapsed_ns: nanos(begun.elapsed()), ..Slice::default() })
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
