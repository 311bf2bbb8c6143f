//! Runtimes of a simulated process: their metrics, numbers and names, and runtimes for local tasks.

use std::cell::Cell;
use std::io::{Error, ErrorKind};
use std::rc::Rc;
use std::time::Duration;

use sim::faults::{Crash, Fault, Trigger};
use sim::{Process, Sim, Span};
use tokio::runtime::{Builder, Handle, LocalOptions, LocalRuntime, Runtime};
use tokio::runtime::{is_rt_shutdown_err, worker_index};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet, spawn_blocking, spawn_local};
use tokio::time::{Instant, sleep};

/// Runs a process `a`, which must get to the end of `main`.
fn run<F: Future<Output = ()> + Send + 'static>(main: impl Fn() -> F + Send + Sync + 'static) -> String {
    let mut sim = Sim::new(7);
    sim.process("a", move |_| {
        let main = main();
        async move {
            main.await;
            sim::point("done");
        }
    });
    let trace = sim.run().unwrap().trace();
    assert!(trace.contains("done"), "{trace}");
    trace
}

/// Runs code that blocks in a process.
fn run_blocking(main: fn()) -> String {
    let mut sim = Sim::new(7);
    sim.process("a", move |process: Process| async move {
        process.blocking(main).await;
        sim::point("done");
    });
    let trace = sim.run().unwrap().trace();
    assert!(trace.contains("done"), "{trace}");
    trace
}

fn alive() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

#[test]
fn metrics_count_the_tasks_of_their_process() {
    let mut sim = Sim::new(7);
    sim.service("b", |_| async {
        tokio::spawn(std::future::pending::<()>());
        std::future::pending::<()>().await;
    });
    sim.process("a", |_| async {
        sleep(Duration::from_millis(1)).await;
        assert_eq!(alive(), 0);
        let ended = tokio::spawn(async { alive() });
        assert_eq!(alive(), 1);
        assert_eq!(ended.await.unwrap(), 1);
        assert_eq!(alive(), 0);
        let panicked = tokio::spawn(async { panic!("lost") });
        let aborted = tokio::spawn(std::future::pending::<()>());
        let blocked = spawn_blocking(|| Handle::current().block_on(sleep(Duration::from_secs(1))));
        assert_eq!(alive(), 2);
        panicked.await.unwrap_err();
        assert_eq!(alive(), 1);
        aborted.abort();
        aborted.await.unwrap_err();
        assert_eq!(alive(), 0);
        let mut set: JoinSet<()> = (0..3).map(|_| std::future::pending()).collect();
        set.spawn_on(std::future::pending(), &Handle::current());
        assert_eq!(alive(), 4);
        set.shutdown().await;
        assert_eq!(alive(), 0);
        blocked.await.unwrap();
        sim::point("done");
    });
    let trace = sim.run().unwrap().trace();
    assert!(trace.contains("done"), "{trace}");
}

#[test]
fn a_crash_ends_all_counted_tasks() {
    let mut sim = Sim::new(7);
    sim.process("a", |process: Process| async move {
        sim::point(&format!("life {} begins with {}", process.life(), alive()));
        for _ in 0..3 {
            tokio::spawn(std::future::pending::<()>());
        }
        sleep(Duration::from_secs(1)).await;
        sim::point(&format!("life {} ends with {}", process.life(), alive()));
    });
    let crash = Crash { restart_after: Some(Span::from_secs(1)), ..Crash::of("a") };
    sim.fault(Fault::new(Trigger::At(Span::from_millis(500)), crash));
    let trace = sim.run().unwrap().trace();
    assert!(trace.contains("life 0 begins with 0") && !trace.contains("life 0 ends"), "{trace}");
    assert!(trace.contains("life 1 begins with 0") && trace.contains("life 1 ends with 3"), "{trace}");
}

#[test]
fn other_metrics_are_those_of_one_worker_without_a_queue() {
    run(|| async {
        tokio::spawn(async {}).await.unwrap();
        let runtime = Runtime::new().unwrap();
        let metrics = runtime.metrics();
        assert_eq!((metrics.num_workers(), metrics.global_queue_depth()), (1, 0));
        assert_eq!(metrics.worker_total_busy_duration(0), Duration::ZERO);
        assert_eq!((metrics.worker_park_count(0), metrics.worker_park_unpark_count(0)), (0, 0));
        let other = tokio::spawn(async move { metrics.worker_park_count(1) }).await.unwrap_err();
        assert!(other.is_panic());
    });
}

#[test]
fn the_worker_runs_tasks_and_no_code_that_blocks() {
    assert_eq!(worker_index(), None);
    run(|| async {
        assert_eq!(worker_index(), Some(0));
        assert_eq!(tokio::spawn(async { worker_index() }).await.unwrap(), Some(0));
        assert_eq!(spawn_blocking(worker_index).await.unwrap(), None);
        let within = spawn_blocking(|| Handle::current().block_on(async { worker_index() }));
        assert_eq!(within.await.unwrap(), Some(0));
    });
}

#[test]
fn processes_and_local_sets_have_numbers_of_their_own() {
    let traces = [0, 1].map(|_| {
        let mut sim = Sim::new(7);
        for name in ["a", "b"] {
            sim.process(name, move |_| async move {
                let (one, other) = (LocalSet::new(), LocalSet::new());
                let runtime = Handle::current().id();
                assert_eq!(runtime, Runtime::new().unwrap().handle().id());
                assert_eq!(one.id(), one.id());
                assert!(one.id() != other.id() && one.id() != runtime);
                sim::point(&format!("{name} has {runtime} {} {}", one.id(), other.id()));
            });
        }
        sim.run().unwrap().trace()
    });
    // The seed draws which process asks first.
    assert!(traces[0].contains("b has 1 2 3") && traces[0].contains("a has 4 5 6"), "{}", traces[0]);
    assert_eq!(traces[0], traces[1]);
}

#[test]
fn a_runtime_has_the_name_of_its_builder() {
    run(|| async {
        let runtime = Builder::new_multi_thread().name("workers").build().unwrap();
        assert_eq!(runtime.handle().name(), Some("workers"));
        assert_eq!(runtime.handle().clone().name(), Some("workers"));
        assert_eq!(Handle::current().name(), None);
    });
}

#[test]
fn a_local_runtime_runs_tasks_that_can_not_be_sent() {
    let trace = run_blocking(|| {
        let runtime = LocalRuntime::new().unwrap();
        let count = Rc::new(Cell::new(0));
        let add = |count: &Rc<Cell<u32>>| {
            let count = Rc::clone(count);
            async move {
                sleep(Duration::from_millis(100)).await;
                count.set(count.get() + 1);
            }
        };
        let outer = runtime.spawn_local(add(&count));
        let guard = runtime.enter();
        let entered = spawn_local(add(&count));
        drop(guard);
        let begun = Instant::now();
        runtime.block_on(async {
            let inner = spawn_local(add(&count));
            let (sender, receiver) = oneshot::channel();
            runtime.handle().spawn(async { sender.send(5).unwrap() });
            assert_eq!(receiver.await.unwrap(), 5);
            outer.await.unwrap();
            entered.await.unwrap();
            inner.await.unwrap();
        });
        assert_eq!(count.get(), 3);
        assert_eq!(runtime.metrics().num_workers(), 1);
        sim::point(&format!("took {} ms", begun.elapsed().as_millis()));
    });
    assert!(trace.contains("took 100 ms"), "{trace}");
}

#[test]
fn a_local_runtime_drops_its_tasks() {
    run_blocking(|| {
        let runtime = Builder::new_current_thread().build_local(LocalOptions::default()).unwrap();
        let kept = Rc::new(());
        let task = Rc::clone(&kept);
        let ended = runtime.spawn_local(async move {
            let _task = task;
            std::future::pending::<()>().await;
        });
        runtime.block_on(sleep(Duration::from_millis(1)));
        assert_eq!(Rc::strong_count(&kept), 2);
        runtime.shutdown_background();
        assert_eq!(Rc::strong_count(&kept), 1);
        assert!(Handle::current().block_on(ended).unwrap_err().is_cancelled());
    });
}

#[test]
fn a_local_runtime_has_one_thread() {
    run(|| async {
        let built = tokio::spawn(async {
            drop(Builder::new_multi_thread().build_local(LocalOptions::default()));
        });
        let panic = built.await.unwrap_err().into_panic();
        let words = panic.downcast_ref::<&str>().unwrap();
        assert!(words.contains("multi_thread is not supported for LocalRuntime"), "{words}");
    });
}

#[test]
fn the_error_of_a_shut_down_runtime_is_known_by_its_words() {
    let words = "A Tokio 1.x context was found, but it is being shutdown.";
    assert!(is_rt_shutdown_err(&Error::other(words)));
    assert!(!is_rt_shutdown_err(&Error::other("the process is dead")));
    assert!(!is_rt_shutdown_err(&Error::new(ErrorKind::NotConnected, words)));
    assert!(!is_rt_shutdown_err(&ErrorKind::Other.into()));
}
