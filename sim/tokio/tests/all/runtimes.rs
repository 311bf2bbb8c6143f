//! A runtime outside of every process is a world with one process.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use sim::{Process, Sim};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

/// Takes half an hour of simulated time, and no real one.
#[tokio::test]
async fn a_test_is_a_world() {
    assert!(sim::is_simulated());
    let began = Instant::now();
    sleep(Duration::from_secs(1_800)).await;
    assert_eq!(began.elapsed().as_secs(), 1_800);
}

#[tokio::test]
async fn a_test_talks_to_its_own_server() -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await?;
        stream.write_all(b"hello").await
    });
    let mut words = String::new();
    TcpStream::connect(address).await?.read_to_string(&mut words).await?;
    server.await??;
    assert_eq!(words, "hello");
    Ok(())
}

#[tokio::test]
#[should_panic(expected = "seven is not eight")]
async fn a_test_fails_with_its_own_message() {
    tokio::task::yield_now().await;
    assert_eq!(7, 8, "seven is not eight");
}

/// The code need not be `Send`, and may borrow.
#[test]
fn a_runtime_runs_code_that_stays_on_one_thread() {
    let shared = Rc::new(Cell::new(1));
    let mut seen = Vec::new();
    let number = Runtime::new().unwrap().block_on(async {
        sleep(Duration::from_secs(1)).await;
        seen.push(shared.get());
        shared.set(2);
        shared.get()
    });
    assert_eq!((number, seen, shared.get()), (2, vec![1], 2));
}

#[test]
#[should_panic(expected = "the sum is wrong")]
fn a_probe_that_fails_is_the_panic_of_a_runtime() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { sim::always!("the sum is wrong", 1 + 1 == 3) });
}

#[test]
#[should_panic(expected = "start a real thread")]
fn a_call_that_leaves_the_simulation_is_the_panic_of_a_runtime() {
    Runtime::new().unwrap().block_on(async { drop(std::thread::Builder::new().spawn(|| ())) });
}

#[test]
#[should_panic(expected = "Call the code in a process")]
fn a_task_needs_a_process() {
    drop(Runtime::new().unwrap().spawn(async {}));
}

/// In a process, a runtime is that of the process.
#[test]
fn a_runtime_in_a_process_has_its_clock() {
    fn main() {
        let runtime = Runtime::new().unwrap();
        runtime.block_on(sleep(Duration::from_secs(3)));
        sim::point("slept");
    }
    let mut sim = Sim::new(7);
    sim.process("a", |process: Process| async move { process.blocking(main).await });
    let trace = sim.run().unwrap().trace();
    assert!(trace.contains("3.0") && trace.contains("slept"), "{trace}");
}
